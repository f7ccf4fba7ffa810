"""Metadata of nodes and local functions that keeps passes from rewriting them.

`tiered.skip_optimization` keeps a node, or all nodes of a local function, unchanged.
`tiered.compiler` names the compiler of a node, `tiered.region` its region, `tiered.device` its
device and `tiered.stage` its pipeline stage; nodes with different ones are never rewritten
together. `tiered.recomputed` numbers the run that made copies, which compute a tensor again: they
are not merged with nodes of another number or none. No pass edits a local function with a compiler:
it belongs to that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from tiered.graph.core.edit import Edit, Entry

if TYPE_CHECKING:
    import onnx

    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node

METADATA_SINCE: Final = 10
"""The IR version from which on nodes and functions have metadata."""

SKIP: Final = "tiered.skip_optimization"
COMPILER: Final = "tiered.compiler"
REGION: Final = "tiered.region"
DEVICE: Final = "tiered.device"
STAGE: Final = "tiered.stage"
RECOMPUTED: Final = "tiered.recomputed"

_KEPT: Final = "the node is marked tiered.skip_optimization"
_INSIDE: Final = "the function is marked to be left alone"
_APART: Final = {
    COMPILER: "the nodes are marked for different compilers",
    REGION: "the nodes are marked for different regions",
    DEVICE: "the nodes are marked for different devices",
    STAGE: "the nodes are marked for different pipeline stages",
}

_ADD_NODE: Final = Edit.ADD_NODE
_CHANGES: Final = frozenset({Edit.REMOVE_NODE, Edit.FOLD_TO_INITIALIZER, Edit.SET_PROTO})
"""The edits that change a node."""


def mark_against(nodes: Iterable[Node]) -> str:
    """Return why marks forbid rewriting these nodes together; "" if they do not."""
    marks: dict[str, str] = {}
    for node in nodes:
        reason = _read(node.proto, marks)
        if reason:
            return reason
        if node.graph is not None and is_left_alone(node.graph):
            return _INSIDE
    return ""


def mark_against_edits(edits: Sequence[Entry]) -> str:
    """Return why marks require undoing the edits of a rewrite; "" if they do not."""
    changes = [entry for entry in edits if entry[0] in _CHANGES]
    if not changes:
        return ""
    is_alone = len(edits) == 1
    new = set() if is_alone else {entry[1].id for entry in edits if entry[0] is _ADD_NODE}
    marks: dict[str, str] = {}
    for entry in changes:
        if entry[1].id in new:
            continue
        # The third item of an entry is the former proto for SET_PROTO, else the graph.
        is_exchange = entry[0] is Edit.SET_PROTO
        node: Node = entry[1]
        reason = _read(entry[2] if is_exchange else node.proto, marks)
        if reason:
            return reason
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
    while root.parent_node is not None:
        if root.parent_node.graph is None:
            return False  # the node of this body was removed
        root = root.parent_node.graph
    if not root.is_function:
        return False
    return any(entry.key in (SKIP, COMPILER) for entry in root.skeleton.metadata_props)


def _read(proto: onnx.NodeProto, marks: dict[str, str]) -> str:
    """Add the marks of a node to those of others; return why they forbid a rewrite, "" if not."""
    for entry in proto.metadata_props:
        if entry.key == SKIP:
            return _KEPT
        key, text = entry.key, entry.value
        if key in _APART and text and marks.setdefault(key, text) != text:
            return _APART[key]
    return ""
