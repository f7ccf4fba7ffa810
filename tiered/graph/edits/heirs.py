"""The names of the nodes that a rewrite makes: those of the nodes that they stand for.

`Graph.replace` gives the name of the replaced node, which is the last one of a pattern. The author
of a model knows a Conv by the name of its Conv, not by that of the BatchNormalization after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
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
    made = [entry[1] for entry in edits if entry[0] is _ADD_NODE and _is_in_model(entry[1])]
    if not made:
        return False
    new = set(made)
    removed = {
        entry[1].name: entry[1]
        for entry in edits
        if entry[0] in _REMOVALS and entry[1].graph is None and entry[1] not in new
        if entry[1].name
    }
    if not removed or all(_fits(node, removed.get(node.name)) for node in made):
        return False
    chosen = _chosen([node for node in made if _is_given(node, removed)], removed)
    for node, name in chosen.items():
        _rename(node, name, made)
    return bool(chosen)


def _is_in_model(node: Node) -> bool:
    """Return whether a node is there still; a function that was inlined is not, with its nodes."""
    return node.graph is not None and is_attached(node.graph)


def _chosen(made: Sequence[Node], removed: dict[str, Node]) -> dict[Node, str]:
    """Return the new names of nodes."""
    free = {name: node for name, node in removed.items()
            if not any(_fits(each, node) and each.name == name for each in made)}  # fmt: skip
    waiting = [node for node in made if not _fits(node, removed.get(node.name))]
    chosen: dict[Node, str] = {}
    for fits in (_fits, _is_alike):
        for node in waiting:
            name = None if node in chosen else _first(free, node, fits)
            if name is not None:
                chosen[node] = name
                del free[name]
    return chosen


def _first(free: dict[str, Node], node: Node, fits: Callable[[Node, Node], bool]) -> str | None:
    return next((name for name, old in free.items() if fits(node, old)), None)


def _fits(node: Node, old: Node | None) -> bool:
    return old is not None and (node.op_type, node.domain) == (old.op_type, old.domain)


def _is_alike(node: Node, old: Node) -> bool:
    return is_product(node) and is_product(old)


def _is_given(node: Node, removed: dict[str, Node]) -> bool:
    """Return whether the engine gave a node its name: that of a removed one, or of its operator."""
    base = _NUMBERED.sub("", node.name)
    return node.name in removed or base in removed or base == node.op_type


def _rename(node: Node, name: str, made: Sequence[Node]) -> None:
    """Give a node a name that a removed node had; another new node that has it gets a number."""
    graph, names = node.owner, node.owner.model.node_names
    for holder in made:
        if holder is not node and holder.graph is graph and holder.name == name:
            graph.rename_node(holder, names.fresh(name))
    if name not in names:
        graph.rename_node(node, name)
