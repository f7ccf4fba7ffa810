"""Masks: numbers that a Softmax makes 0, and which therefore must not decide a range."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np

from tiered.analysis.roles.role import Narrow, Role, graphs_of, numbers_of, readers_of
from tiered.graph import Model, Node, Value
from tiered.graph.queries.op_traits import CASTS, MOVES_ELEMENTS

LARGEST: Final = 1e30
"""From this magnitude on, a number is a mask, an overflow, or the lowest of its dtype."""

MASKED: Final = Role("mask", "an operand has masks")
"""Why a node keeps a wide type: the mask would become the lowest number of the range."""

_LEAST_MASK: Final = -1e4
"""Exporters mask scores with this number or a lower one, or subtract its opposite."""

_SUMS: Final = frozenset({"Add", "Clip", "Max", "Min"})
_SCALES: Final = frozenset({"Div", "Mul"})
_PATH: Final = MOVES_ELEMENTS | _SUMS | _SCALES | {*CASTS, "Neg", "Sub", "Trilu"}

_SCORES: Final = {"Attention": 3, "Exp": 0, "LogSoftmax": 0, "Softmax": 0}
"""Operators that make 0 of a mask, or ignore it, and the place of the operand that has one."""

_ON_THE_WAY: Final = _PATH | _SCORES.keys()

Sign = Literal[1, -1]
Signed = tuple[Value, Sign]
"""A value, with 1 if its numbers are added to scores, or -1 if they are subtracted."""

Samples = Sequence[Mapping[str, Any]]


def mask_limits(model: Model, samples: Samples = ()) -> Mapping[Value, float]:
    """Return, for each value with masked elements, the number below which an element is masked.

    A mask is a constant, or an input of the model, with a number of -10,000 or less that reaches a
    Softmax, an Exp or the mask of an Attention through sums, products, selections and movement of
    elements only; or one of 10,000 or more that is subtracted on the way. Of a value that is
    subtracted the limit is -Inf.

    Args:
        model: the model.
        samples: inputs by name; without any no input is a mask.
    """
    reaches = _before_softmax(model)
    found: dict[Signed, float] = {}
    for value, sign in reaches:
        arrays = [sample[value.name] for sample in samples if value.name in sample]
        if value.is_graph_input and value.owner.is_main and arrays:
            _add(found, (value, sign), _limit_of_arrays(arrays, sign))
        elif (tensor := value.default) is not None and not tensor.is_sparse:
            _add(found, (value, sign), _limit_of_arrays([tensor.numpy()], sign))
        elif (array := numbers_of(value)) is not None:
            _add(found, (value, sign), _limit_of_arrays([array], sign))
    for graph in graphs_of(model):
        for node in graph.topological_order():
            if node.domain or node.op_type not in _PATH:
                continue
            for output in (each for each in node.outputs if each is not None):
                for sign in _SIGNS:
                    if (output, sign) in reaches:
                        for place, operand in _operands(node, sign):
                            limit = found.get(operand)
                            scaled = None if limit is None else limit * _factor(node, place)
                            _add(found, (output, sign), scaled)
    limits = {value: -np.inf for value, sign in found if sign == -1}
    return {**limits, **{value: limit for (value, sign), limit in found.items() if sign == 1}}


def mask_roles(model: Model, narrow: Narrow) -> dict[Node, Role]:
    """Return the nodes that have to be float because two masks are added beyond a narrower type.

    These are the sums and all that reads them, up to the Softmax: a row of -Inf would be NaN there.
    Masks of no size, as the lowest float, are infinite together in float too.

    Args:
        model: the model.
        narrow: the narrower type.
    """
    limits, found = mask_limits(model), dict[Node, Role]()
    for graph in graphs_of(model):
        for node in graph.topological_order():
            if node.domain or node.op_type not in ("Add", "Sub"):
                continue
            # A limit is half the weakest mask; of what is subtracted it is not known.
            masks = [limits[value] for value in node.reads if value in limits]
            known = [2 * mask for mask in masks if mask > -np.inf]
            if len(masks) < 2 or not known or min(known) <= -LARGEST:
                continue
            if len(masks) == len(known) and -sum(known) <= narrow.largest:
                continue
            role = Role("mask", f"masks are added beyond {narrow.dtype.name.lower()}")
            pending = [node]
            while pending:
                at = pending.pop()
                if at not in found:
                    found[at] = role
                    readers = [reader for reader, _ in readers_of(at) if not reader.domain]
                    pending += [each for each in readers if each.op_type in _ON_THE_WAY]
    return found


_SIGNS: Final[tuple[Sign, Sign]] = (1, -1)


def _add(found: dict[Signed, float], key: Signed, limit: float | None) -> None:
    """Note the limit of the weakest mask of a value, as if it were added."""
    if limit is not None:
        found[key] = max(limit, found.get(key, -np.inf))


def _limit_of_arrays(arrays: Iterable[Any], sign: Sign) -> float | None:
    """Return half the weakest mask that arrays hold, as if it were added; None without one."""
    limits = []
    for array in arrays:
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fV" or not array.size:
            continue
        least = float(np.fmin.reduce(array.astype(np.float64) * sign, axis=None))
        if least <= _LEAST_MASK:
            limits.append(max(least / 2, -LARGEST))
    return max(limits, default=None)


def _operands(node: Node, sign: Sign) -> Iterator[tuple[int, Signed]]:
    """Yield the operands whose numbers become those of the results, by place, with their sign."""
    opposite: Sign = -1 if sign == 1 else 1
    for place, value in enumerate(node.inputs):
        if value is None or (node.op_type == "Div" and place):
            continue
        is_taken = node.op_type == "Neg" or (node.op_type == "Sub" and place == 1)
        yield place, (value, opposite if is_taken else sign)
        if node.op_type == "Mul" and value.is_constant:
            yield place, (value, opposite)  # (k - 1) * 10000 is 0 or a mask


def _factor(node: Node, place: int) -> float:
    """Return the positive number that a node multiplies an operand by, 1 if it is another."""
    other = node.input(1 - place) if node.op_type in _SCALES else None
    number = None if other is None else other.number
    if number is None or not 0 < number < np.inf:
        return 1.0
    return 1 / float(number) if node.op_type == "Div" else float(number)


def _before_softmax(model: Model) -> Mapping[Signed, None]:
    """Return the values that reach a Softmax, through elements' sums and movement only."""
    found: dict[Signed, None] = {}
    for graph in reversed(graphs_of(model)):  # bodies before what they capture
        for node in reversed(graph.topological_order()):
            if node.domain:
                continue
            if node.op_type in _SCORES:
                value = node.input(_SCORES[node.op_type])
                found.update([((value, 1), None)] if value is not None else [])
            elif node.op_type in _PATH:
                for sign in _SIGNS:
                    if any((value, sign) in found for value in node.outputs if value is not None):
                        found.update((operand, None) for _, operand in _operands(node, sign))
    return found
