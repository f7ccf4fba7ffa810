"""Large constants: numbers beyond the range of a narrower type that are no masks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tiered.analysis.roles.masks import LARGEST, mask_limits
from tiered.analysis.roles.role import (
    Ignored,
    Narrow,
    Role,
    constants_of,
    data_of,
    largest_of,
    nodes_of,
    readers_of,
)
from tiered.graph import Model, Node, Value
from tiered.graph.intervals.range_analysis import ranges
from tiered.graph.queries.op_traits import CLAMPS, MOVES_ELEMENTS, RING

_BOUNDS: Final = CLAMPS
"""Operators for which a number of no size, as the largest float, stands for no bound."""

# Exporters write Add, not Sum.
_STAYS_LARGE: Final = MOVES_ELEMENTS | (RING - {"Sum"}) | CLAMPS | {"Abs", "Relu"}
"""Operators whose results may be as large as an operand, if the others are constants."""

_DIVIDES: Final[dict[str, tuple[int, ...]]] = {"BatchNormalization": (4,), "Div": (1,)}
"""Operands whose large numbers make no large results, by operator."""


def large_roles(model: Model, narrow: Narrow, ignored: Ignored) -> dict[Node, Role]:
    """Return the nodes that have to be float because a constant is beyond a narrower type.

    These are the nodes that read it, those that compute what it is compared with or added to, and
    those that read the result, if it is not proven to be in the range of the type. Masks are not
    among these constants: they may be clamped; nor are bounds such as the largest float.

    Args:
        model: the model; its types are known.
        narrow: the narrower type.
        ignored: whether the constants of a node do not count.
    """
    found: dict[Node, Role] = {}
    if narrow.largest > LARGEST:
        return found
    masks = mask_limits(model)
    for node in nodes_of(model):
        for place, value, array in constants_of(node):
            number = largest_of(array)
            is_open = node.op_type in _BOUNDS and number >= LARGEST
            is_fine = number <= narrow.largest or is_open or ignored(node)
            if is_fine or _is_mask(node, value, masks):
                continue
            why = f"{number:g} is beyond {narrow.dtype.name.lower()}"
            found.setdefault(node, Role("large constant", why))
            beside = [*_producers(node)]
            if place not in _DIVIDES.get(node.op_type, ()):
                beside += _readers(model, node, narrow)
            near = Role("large constant", f"it computes or reads what meets {number:g}")
            for each in beside:
                found.setdefault(each, near)
        number = 0.0 if ignored(node) else _threshold(node)
        if number > narrow.largest:
            why = f"{number:g} is beyond {narrow.dtype.name.lower()}"
            found.setdefault(node, Role("large constant", why))
            near = Role("large constant", f"it computes or reads what meets {number:g}")
            for each in (*_producers(node), *_readers(model, node, narrow)):
                found.setdefault(each, near)
    return found


def _threshold(node: Node) -> float:
    """Return the magnitude of the largest attribute that data is compared with; 0 without one."""
    if node.is_op("ThresholdedRelu"):
        return abs(float(node.attr("alpha")))
    if node.is_op("Shrink"):
        return max(abs(float(node.attr(name))) for name in ("bias", "lambd"))
    return 0.0


def _is_mask(node: Node, value: Value, limits: Mapping[Value, float]) -> bool:
    """Return whether a node carries the mask that a constant is."""
    return value in limits and any(output in limits for output in node.outputs)


def _producers(node: Node) -> dict[Node, None]:
    """Return the nodes that compute the data of a node, and those that move it there."""
    found = dict[Node, None]()
    pending = data_of(node)
    while pending:
        producer = pending.pop().producer
        if producer is None or producer in found:
            continue
        found[producer] = None
        if not producer.domain and producer.op_type in MOVES_ELEMENTS:
            pending += data_of(producer)
    return found


def _readers(model: Model, node: Node, narrow: Narrow) -> dict[Node, None]:
    """Return the nodes that read a result that may be beyond the range."""
    found = dict[Node, None]()
    pending = [node]
    while pending:
        at = pending.pop()
        outputs = [output for output in at.outputs if output is not None]
        proven = model.analysis(ranges)
        if all(proven[output].magnitude <= narrow.largest for output in outputs):
            continue
        for reader, _ in readers_of(at):
            if reader in found or reader.domain:
                continue
            found[reader] = None
            is_move = reader.op_type in MOVES_ELEMENTS
            if is_move or (reader.op_type in _STAYS_LARGE and len(data_of(reader)) == 1):
                pending.append(reader)
    return found
