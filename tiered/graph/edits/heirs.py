"""The names of the nodes that a rewrite makes: those of the nodes that they stand for.

`Graph.replace` gives the name of the replaced node, which is the last one of a pattern. The author
of a model knows a Conv by the name of its Conv, not by that of the BatchNormalization after it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tiered.graph.core.edit import Edit, Entry
from tiered.graph.queries.attached import is_attached
from tiered.graph.queries.multiply_adds import is_product

if TYPE_CHECKING:
    from tiered.graph.core.node import Node

_ADD_NODE: Final = Edit.ADD_NODE
_REMOVALS: Final = (Edit.REMOVE_NODE, Edit.FOLD_TO_INITIALIZER)
_NUMBERED: Final = re.compile(r"_\d+$")


def inherit_names(edits: Sequence[Entry]) -> bool:
    """Name the nodes that a rewrite made after those that it removed; return whether any changed.

    A node takes the name of a removed one of its operator; a product takes that of a removed
    product, a Gemm that of its MatMul. Names that the pass gave itself stay.
    """
    new = {entry[1]: None for entry in edits if entry[0] is _ADD_NODE}
    made = [node for node in new if _is_in_model(node)]
    if not made:
        return False
    removed = {
        entry[1].name: entry[1]
        for entry in edits
        if entry[0] in _REMOVALS and entry[1].graph is None and entry[1] not in new
        if entry[1].name
    }
    if not removed or all(_fits(node, removed.get(node.name)) for node in made):
        return False
    chosen = _chosen([node for node in made if _is_given(node, removed)], removed)
    holders: dict[str, list[Node]] = {}
    for node in made if chosen else ():
        holders.setdefault(node.name, []).append(node)
    for node, name in chosen.items():
        _rename(node, name, holders)
    return bool(chosen)


def _is_in_model(node: Node) -> bool:
    """Return whether a node is there still; a function that was inlined is not, with its nodes."""
    return node.graph is not None and is_attached(node.graph)


def _chosen(made: Sequence[Node], removed: dict[str, Node]) -> dict[Node, str]:
    """Return the new names of nodes."""
    kept = {node.name for node in made if _fits(node, removed.get(node.name))}
    free = {name: node for name, node in removed.items() if name not in kept}
    waiting = [node for node in made if not _fits(node, removed.get(node.name))]
    chosen: dict[Node, str] = {}
    # A rewrite may make thousands of nodes, so that those of one kind queue for its names.
    for kind in (_operator, _product):
        queues: dict[object, deque[str]] = {}
        for name, node in free.items():
            queues.setdefault(kind(node), deque()).append(name)
        queues.pop(None, None)
        for node in waiting:
            queue = None if node in chosen else queues.get(kind(node))
            if queue:
                chosen[node] = queue.popleft()
                del free[chosen[node]]
    return chosen


def _operator(node: Node) -> tuple[str, str]:
    return node.op_type, node.domain


def _product(node: Node) -> bool | None:
    """Return one key for all products, None for other operators."""
    return is_product(node) or None


def _fits(node: Node, old: Node | None) -> bool:
    return old is not None and _operator(node) == _operator(old)


def _is_given(node: Node, removed: dict[str, Node]) -> bool:
    """Return whether the engine gave a node its name: that of a removed one, or of its operator."""
    base = _NUMBERED.sub("", node.name)
    return node.name in removed or base in removed or base == node.op_type


def _rename(node: Node, name: str, holders: dict[str, list[Node]]) -> None:
    """Give a node a name that a removed node had; another new node that has it gets a number.

    `holders` are the new nodes by their names.
    """
    graph, names = node.owner, node.owner.model.node_names
    for holder in list(holders.get(name, ())):
        if holder is not node and holder.graph is graph:
            _set_name(holder, names.fresh(name), holders)
    if name not in names:
        _set_name(node, name, holders)


def _set_name(node: Node, name: str, holders: dict[str, list[Node]]) -> None:
    holders[node.name].remove(node)
    node.owner.rename_node(node, name)
    holders.setdefault(name, []).append(node)
