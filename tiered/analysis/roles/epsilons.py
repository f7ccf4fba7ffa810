"""Epsilons: small numbers that keep a divisor, a root or a logarithm away from 0."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from tiered.analysis.roles.role import (
    Array,
    Ignored,
    Narrow,
    Role,
    constants_of,
    largest_of,
    nodes_of,
    readers_of,
)
from tiered.graph import Model, Node
from tiered.graph.queries.op_traits import (
    AVERAGE_POOLS,
    CLAMPS,
    KEEPS_SMALL,
    MAX_POOLS,
    MOVES_ELEMENTS,
    RING,
)

_MOST_ELEMENTS: Final = 1 << 16
"""Constants with more elements are weights: only if all of them are lost is that looked at."""

_KEEPS_SIZE: Final = MOVES_ELEMENTS | RING | CLAMPS | AVERAGE_POOLS | MAX_POOLS | KEEPS_SMALL
"""Operators whose results may be as small as an operand."""

_STATISTICS: Final = frozenset(
    {"Abs", "Mul", "Pow", "ReduceL1", "ReduceL2", "ReduceMean", "ReduceSum", "ReduceSumSquare",
     "Relu", "Sqrt"}
)  # fmt: skip
"""Operators that compute the sums and squares that an epsilon is added to."""

_OF_MEAN_VARIANCE: Final = 1e-9
"""What a MeanVarianceNormalization adds to its divisor, by its definition."""

_VARIANCE: Final = 4
"""The place of the variance among the operands of a BatchNormalization."""


def epsilon_roles(model: Model, narrow: Narrow, ignored: Ignored) -> dict[Node, Role]:
    """Return the nodes that have to be float because a small constant is lost in a narrower type.

    These are the nodes that read such a constant; if its result reaches a divisor, a logarithm, a
    root or a negative power, also the nodes on the way, up to where the result is in the range of
    the type again; and the statistics that the constant is added to.

    Args:
        model: the model; its types are known.
        narrow: the narrower type.
        ignored: whether the constants of a node do not count.
    """
    found: dict[Node, Role] = {}
    for node in nodes_of(model):
        if ignored(node):
            continue
        why = _lost_attribute(node, narrow)
        if why:
            found.setdefault(node, Role("epsilon", why))
            continue
        for place, value, array in constants_of(node):
            number, is_whole = _smallest(array, narrow)
            if not number:
                continue
            way = _way(node, place, number, narrow)
            if not (way or is_whole):
                continue
            what = _what(number, narrow)
            found.setdefault(node, Role("epsilon", f"{number:g} {what}"))
            makers = [] if value.producer is None else [value.producer]
            for each in (*way, *makers):
                found.setdefault(each, Role("epsilon", f"it needs {number:g}, which {what}"))
            for each in statistics_of(node) if way else ():
                found.setdefault(each, Role("statistic", f"{number:g} is added to it"))
    return found


def _what(number: float, narrow: Narrow) -> str:
    """Return what a narrower type makes of a small number, in words."""
    name = narrow.dtype.name.lower()
    if narrow.holds(number):
        return f"has an inverse beyond {name}"
    rounded = float(np.array(number).astype(narrow.dtype.numpy))
    return f"is {rounded:.3g} in {name}"


def _smallest(array: Array, narrow: Narrow) -> tuple[float, bool]:
    """Return a number that is lost, or has an inverse that is, and whether all but 0 are lost.

    The number is 0 if there is none.
    """
    largest = largest_of(array)
    is_whole = bool(narrow.loses(np.array(largest)).any())
    if is_whole or array.size > _MOST_ELEMENTS:
        return (largest if is_whole else 0.0), is_whole
    lost = np.abs(array[narrow.loses(array)].astype(np.float64))
    if not lost.size:
        lost = np.abs(array[(array != 0) & np.isfinite(array)].astype(np.float64))
        lost = lost[lost * narrow.largest < 1]
    return (float(lost.min()) if lost.size else 0.0), False


def _lost_attribute(node: Node, narrow: Narrow) -> str:
    """Return what is lost of the attribute epsilon and a constant variance; empty if nothing is."""
    schema = node.schema
    if node.is_op("MeanVarianceNormalization") and narrow.loses(np.array(_OF_MEAN_VARIANCE)).any():
        return f"{_OF_MEAN_VARIANCE:g} {_what(_OF_MEAN_VARIANCE, narrow)}"
    if schema is None or "epsilon" not in schema.attributes or "stash_type" in schema.attributes:
        return ""
    variance = node.input(_VARIANCE) if node.is_op("BatchNormalization") else None
    number = float(node.attr("epsilon"))
    sums = np.array([number])
    if variance is not None and variance.const is not None:
        sums = variance.const.astype(np.float64).ravel() + number
    if not narrow.loses(sums).any():
        return ""
    worst = float(np.abs(sums[narrow.loses(sums)]).min())
    return f"{worst:g} {_what(worst, narrow)}"


_Step = tuple[float, bool]
"""The number that comes of a small one, 0 if none does, and whether a lost one would be felt."""


def _way(node: Node, place: int, number: float, narrow: Narrow) -> dict[Node, None]:
    """Return the nodes from a constant on to those that feel its loss; empty if none does."""
    came: dict[Node, list[Node]] = {node: []}
    feeling = list[Node]()
    pending = [(node, place, number)]
    while pending:
        at, slot, small = pending.pop()
        after, is_felt = _step(at, slot, small, narrow)
        if is_felt and not narrow.holds(small):
            feeling.append(at)
        if not after or 1 <= after * narrow.largest <= narrow.largest**2:
            continue
        for reader, slot in readers_of(at):
            if reader in came:
                came[reader].append(at)
            elif not reader.domain:
                came[reader] = [at]
                pending.append((reader, slot, after))
    found = dict[Node, None]()
    while feeling:
        at = feeling.pop()
        if at not in found:
            found[at] = None
            feeling += came[at]
    return found


def _step(node: Node, place: int, number: float, narrow: Narrow) -> _Step:
    """Return what a node makes of a small number, or of the large inverse of one."""
    others = [largest_of(array) for at, _, array in constants_of(node) if at != place]
    if node.op_type in _POWERS or (node.op_type == "Div" and place == 1):
        return _powered(node, place, number, others)
    is_inverse = number > narrow.largest
    if node.op_type in ("Div", "Mul"):
        if not others:
            is_product = node.op_type == "Mul" and not is_inverse
            return (number if is_product else 0.0), is_inverse
        factor = others[0] if node.op_type == "Mul" else 1 / (others[0] or np.inf)
        return number * factor, False
    if node.op_type in _GUARDS:
        return max(number, *others, 0.0), False
    is_kept = node.op_type in _KEEPS_SIZE or node.is_op("If")
    return (number if is_kept else 0.0), is_inverse


_LOGARITHMS: Final = frozenset({"Log", "ReduceLogSum"})
_POWERS: Final = _LOGARITHMS | {"Pow", "Reciprocal", "Sqrt"}
_GUARDS: Final = (RING - {"Mul", "Neg"}) | {"Clip", "Max"}  # these move no number away from 0


def _powered(node: Node, place: int, number: float, others: list[float]) -> _Step:
    """Return what an operator makes of a small number to which it is sensitive."""
    if node.op_type in _LOGARITHMS:
        return 0.0, True
    if node.op_type == "Div":  # the small number is the divisor
        return (others[0] / number if others else 0.0), True
    exponent = {"Reciprocal": -1.0, "Sqrt": 0.5}.get(node.op_type)
    if exponent is None:
        power = node.given(1)
        if place == 1 or power.number is None:
            return 0.0, place == 0
        exponent = float(power.number)
    with np.errstate(over="ignore"):
        return float(np.power(np.float64(number), exponent)), exponent < 1


def statistics_of(node: Node) -> Iterator[Node]:
    """Yield the nodes that compute the statistic that a node adds a small number to."""
    pending = [node]
    seen = {node}
    while pending:
        at = pending.pop()
        for value in at.inputs:
            producer = None if value is None else value.producer
            if producer is not None and producer not in seen and _is_statistic(producer):
                seen.add(producer)
                pending.append(producer)
                yield producer


def _is_statistic(node: Node) -> bool:
    """Return whether a node computes sums, squares or their roots."""
    if node.domain or node.op_type not in _STATISTICS:
        return not node.domain and node.op_type in MOVES_ELEMENTS
    if not node.is_op("Mul") or node.input(0) is node.input(1):
        return True
    producers = [value.producer for value in node.reads]
    return all(each is not None and each.op_type in _STATISTICS for each in producers)
