"""Positions: counts in float, for which a narrower type has too few digits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tiered.analysis.roles.masks import mask_limits
from tiered.analysis.roles.role import Role, data_of, nodes_of
from tiered.graph import DataType, Model, Node, Value
from tiered.graph.intervals.interval import is_integer
from tiered.graph.queries.op_traits import (
    ARITHMETIC,
    CLAMPS,
    COMPARISONS,
    MOVES_ELEMENTS,
    RING,
    ROUNDINGS,
)

_ARITHMETIC: Final = (
    MOVES_ELEMENTS
    | RING
    | CLAMPS
    | {"Abs", "Div", "Pow", "Reciprocal"}
    | {"CumSum", "Einsum", "MatMul"}
    | {"Exp", "Log"}
)
"""Operators that compute positions, angles and distances of other positions."""

_LINEAR: Final = MOVES_ELEMENTS | {*ARITHMETIC, "Neg"}
"""Operators that compute angles of an input; what others compute is data, not a position."""

_PERIODIC: Final = frozenset({"Cos", "Sin", "Tan"})

_SENSITIVE: Final = _PERIODIC | {*COMPARISONS, *ROUNDINGS, "Exp", "Mod"}
"""Operators to which the absolute error of a large number matters."""


def position_roles(model: Model) -> dict[Node, Role]:
    """Return the nodes between integers, or inputs, and an operator that needs all their digits.

    That is the arithmetic from a Cast of integers or a Range to a sine, an exponential, a
    comparison or a rounding, as the angles of rotary positions, and scales and shifts from an
    input of floats to a sine, as the angles of a time step; not what carries a mask.

    Args:
        model: the model; its types are known.
    """
    masked = mask_limits(model)
    counts = {value: False for value in model.main.inputs if value.dtype == DataType.FLOAT}
    ends = list[Node]()
    for node in nodes_of(model):
        data = data_of(node)
        is_known = bool(data) and all(value in counts for value in data)
        is_count = _is_source(node) or (is_known and any(counts[value] for value in data))
        is_computed = any(value.producer is not None for value in data)
        if is_known and is_computed and node.op_type in (_SENSITIVE if is_count else _PERIODIC):
            ends.append(node)
        computes = node.op_type in (_ARITHMETIC if is_count else _LINEAR)
        if _is_source(node) or (is_known and (computes or _is_outer_product(node))):
            made = (value for value in node.outputs if value is not None and value not in masked)
            counts.update(dict.fromkeys(made, is_count))
    role = Role("position", "it needs more digits the longer the sequence is")
    return dict.fromkeys(_way(ends, counts), role)


def _is_source(node: Node) -> bool:
    """Return whether a node makes floats of integers, or counts."""
    if node.op_type == "Range":
        return node.output.dtype == DataType.FLOAT
    if node.op_type not in ("Cast", "CastLike"):
        return False
    source = node.given(0)
    is_count = is_integer(source.dtype) and source.dtype != DataType.BOOL
    return is_count and node.output.dtype == DataType.FLOAT


def _is_outer_product(node: Node) -> bool:
    """Return whether a node multiplies a column by a row, as positions by frequencies."""
    return node.op_type == "MatMul" and (node.given(0).shape or ())[-1:] == (1,)


def _way(ends: list[Node], counts: Mapping[Value, bool]) -> dict[Node, None]:
    """Return the nodes that compute positions for some others, and these."""
    found = dict[Node, None]()
    pending = list(ends)
    while pending:
        node = pending.pop()
        if node in found:
            continue
        found[node] = None
        read = (value for value in node.reads if value in counts)
        pending += [value.producer for value in read if value.producer is not None]
    return found
