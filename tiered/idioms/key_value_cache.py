"""Caches: keys and values of the past with new ones behind them, shared by groups of heads."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tiered.graph import Node, Value


class Cache(NamedTuple):
    """What adds new keys or values to those of the past, each [batch, groups, places, size]."""

    node: Node
    past: Value
    new: Value


def cache_of_heads(value: Value, heads: int, *, is_turned: bool) -> Cache | None:
    """Return the cache that heads read, each group of them one part; None if others read it.

    Args:
        value: [batch, heads, places, size].
        heads: their number.
        is_turned: whether it is k', of which the last two dims have changed places.
    """
    if value.dim(1) != heads:
        return None
    found = _unrepeated(value, is_turned=is_turned)
    node = None if found is None else found.producer
    if found is None or node is None or (node.op_type, node.domain) != ("Concat", ""):
        return None
    if len(node.inputs) != 2 or node.attr("axis") not in (2, -2) or len(found.users) != 1:
        return None
    past, new = node.inputs
    return None if past is None or new is None else Cache(node, past, new)


def _unrepeated(value: Value, *, is_turned: bool) -> Value | None:
    """Return what Unsqueeze, Expand and Reshape repeat for the heads of each group, upright.

    The last two dims may change places before or after that. What is not repeated is itself.
    """
    upright = _operand(value, "Transpose", (0, 1, 3, 2)) if is_turned else value
    value = upright or value
    repeated = _operand(value, "Reshape")
    apart = None if repeated is None else _operand(repeated, "Expand")
    if apart is None or repeated is None:
        return upright
    if upright is None:
        apart = _operand(apart, "Transpose", (0, 1, 2, 4, 3))
    shared = None if apart is None else _operand(apart, "Unsqueeze")
    if shared is None or shared.shape is None or apart is None or apart.shape is None:
        return upright
    groups, heads, rows = shared.shape, value.shape, repeated.shape
    inner = groups[2:] if upright is not None else groups[:1:-1]
    is_repeated = (
        len(groups) == 4
        and apart.shape == (*groups[:2], 1, *groups[2:])
        and rows is not None
        and (len(rows), rows[:2], rows[3:]) == (5, groups[:2], inner)
        and heads is not None
        and (heads[0], heads[2:]) == (groups[0], inner)
    )
    return shared if is_repeated else None


def _operand(value: Value, op_type: str, perm: tuple[int, ...] | None = None) -> Value | None:
    """Return the first operand of the operator that makes a value which is read once, or None."""
    node = value.producer
    if node is None or (node.op_type, node.domain) != (op_type, "") or not value.has_one_user:
        return None
    return node.inputs[0] if node.perm == perm else None
