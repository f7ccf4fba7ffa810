"""Marks that passes leave alone: metadata of nodes and of local functions.

`tiered.skip_optimization` keeps a node, or all nodes of a local function, as it is.
`tiered.compiler` names the device or compiler of a node, which nodes of another one never join; a
local function with this mark belongs to its compiler, and no pass looks inside.
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
"""The edits after which a node is not what it was."""


def mark_against(nodes: Iterable[Node]) -> str:
    """Return why these nodes are not to be rewritten together; "" if no mark says so."""
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
    """Return why the edits of a rewrite are to be undone; "" if no mark says so."""
    new = {entry[1].id for entry in edits if entry[0] is Edit.ADD_NODE}
    compiler = ""
    for entry in edits:
        if entry[0] not in _CHANGES or entry[1].id in new:
            continue
        # A proto that was exchanged is the third part of its entry, a graph that of the others.
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
        # What a function calls is put into it all the same: `inline` has its own rules.
        if graph.model.function(*node.callee) is None:
            return _INSIDE
    return ""


def is_left_alone(graph: Graph) -> bool:
    """Return whether a graph is, or is inside of, a local function that no pass looks into."""
    root = graph
    while root.owner is not None:
        if root.owner.graph is None:
            return False  # the node that it is a body of was removed
        root = root.owner.graph
    if not root.is_function:
        return False
    return any(entry.key in (SKIP, COMPILER) for entry in root.skeleton.metadata_props)


def _read(proto: onnx.NodeProto) -> tuple[str, str]:
    """Return why a node stays as it is ("" if it need not), and its compiler ("" for none)."""
    compiler = ""
    for entry in proto.metadata_props:
        if entry.key == SKIP:
            return _KEPT, ""
        if entry.key == COMPILER:
            compiler = entry.value
    return "", compiler
