"""Metadata of nodes and local functions that keeps passes from rewriting them.

`tiered.skip_optimization` keeps a node, or all nodes of a local function, unchanged.
`tiered.compiler` names the device or compiler of a node; nodes of different compilers are never
rewritten together. No pass edits a local function with this mark: it belongs to its compiler.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from tiered.graph.core.journal import Edit, Entry

if TYPE_CHECKING:
    import onnx

    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node

SKIP: Final = "tiered.skip_optimization"
COMPILER: Final = "tiered.compiler"

_KEPT: Final = "the node is marked tiered.skip_optimization"
_INSIDE: Final = "the function is marked to be left alone"
_APART: Final = "the nodes are marked for different compilers"

_CHANGES: Final = frozenset({Edit.REMOVE_NODE, Edit.FOLD_TO_INITIALIZER, Edit.SET_PROTO})
"""The edits that change a node."""


def mark_against(nodes: Iterable[Node]) -> str:
    """Return why marks forbid rewriting these nodes together; "" if they do not."""
    compiler = ""
    for node in nodes:
        reason, other = _read(node.proto)
        if reason:
            return reason
        if compiler and other and other != compiler:
            return _APART
        compiler = compiler or other
        if node.graph is not None and is_left_alone(node.graph):
            return _INSIDE
    return ""


def mark_against_edits(edits: Sequence[Entry]) -> str:
    """Return why marks require undoing the edits of a rewrite; "" if they do not."""
    new = {entry[1].id for entry in edits if entry[0] is Edit.ADD_NODE}
    compiler = ""
    for entry in edits:
        if entry[0] not in _CHANGES or entry[1].id in new:
            continue
        # The third item of an entry is the former proto for SET_PROTO, else the graph.
        is_exchange = entry[0] is Edit.SET_PROTO
        node: Node = entry[1]
        reason, other = _read(entry[2] if is_exchange else node.proto)
        if reason:
            return reason
        if compiler and other and other != compiler:
            return _APART
        compiler = compiler or other
        graph: Graph | None = node.graph if is_exchange else entry[2]
        if graph is None or not is_left_alone(graph):
            continue
        # Calls in a function may still be inlined: `inline` has its own rules.
        if graph.model.function(*node.callee) is None:
            return _INSIDE
    return ""


def is_left_alone(graph: Graph) -> bool:
    """Return whether a graph is, or is inside of, a local function that no pass edits."""
    root = graph
    while root.owner is not None:
        if root.owner.graph is None:
            return False  # the owner of this body was removed
        root = root.owner.graph
    if not root.is_function:
        return False
    return any(entry.key in (SKIP, COMPILER) for entry in root.skeleton.metadata_props)


def _read(proto: onnx.NodeProto) -> tuple[str, str]:
    """Return why a node stays unchanged ("" if it need not), and its compiler ("" for none)."""
    compiler = ""
    for entry in proto.metadata_props:
        if entry.key == SKIP:
            return _KEPT, ""
        if entry.key == COMPILER:
            compiler = entry.value
    return "", compiler
