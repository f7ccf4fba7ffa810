"""Masks: numbers that a Softmax makes 0, and which therefore must not decide a range."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from tiered.graph import Graph, Model, Value

LARGEST: Final = 1e30
"""From this magnitude on, a number is a mask, an overflow, or the lowest of its dtype."""

_LEAST_MASK: Final = -1e4
"""Exporters mask scores with this number or a lower one."""

_ADDS: Final = frozenset({"Add", "Max", "Min", "Mul", "Sub", "Where"})
_MOVES: Final = frozenset(
    {
        *("Cast", "CastLike", "Concat", "Expand", "Flatten", "Gather", "Identity", "Reshape"),
        *("Slice", "Split", "Squeeze", "Tile", "Transpose", "Trilu", "Unsqueeze"),
    }
)


def mask_limits(
    model: Model, samples: Iterable[Mapping[str, Any]] = ()
) -> Mapping[Value, float]:
    """Return, for each value with masked elements, the number below which an element is masked.

    A mask is a constant, or an input of the model, with a number of -10,000 or less that reaches a
    Softmax through sums, products, selections and movement of elements only.

    Args:
        model: the model.
        samples: inputs by name; without any no input is a mask.
    """
    reaches = _before_softmax(model)
    found = {
        value: limit
        for value in model.main.inputs
        if value in reaches and (limit := _limit_of_samples(value.name, samples)) is not None
    }
    for graph in _graphs(model):
        for node in graph.topological_order():
            if node.domain or node.op_type not in (*_ADDS, *_MOVES, "Constant"):
                continue
            limits = [
                _limit_of(value, found)
                for value in node.inputs
                if value is not None and value in reaches
            ]
            masked = [limit for limit in limits if limit is not None]
            for output in node.outputs:
                if masked and output is not None and output in reaches:
                    found[output] = max(masked)
    return found


def _limit_of(value: Value, found: Mapping[Value, float]) -> float | None:
    """Return half the mask that a value holds, None without one."""
    if value in found:
        return found[value]
    if not value.is_constant or value.tensor is None or value.tensor.is_sparse:
        return None
    return _limit_of_array(value.tensor.numpy())


def _limit_of_array(array: np.ndarray[Any, Any]) -> float | None:
    """Return half the mask that an array holds, None without one."""
    if array.dtype.kind not in "fV" or not array.size:
        return None
    least = float(np.fmin.reduce(array.astype(np.float64), axis=None))
    return max(least / 2, -LARGEST) if least <= _LEAST_MASK else None


def _limit_of_samples(name: str, samples: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the limit of the mask that samples feed to an input: of the weakest one; or None."""
    arrays = (sample.get(name) for sample in samples)
    limits = (_limit_of_array(array) for array in arrays if isinstance(array, np.ndarray))
    return max((limit for limit in limits if limit is not None), default=None)


def _before_softmax(model: Model) -> set[Value]:
    """Return the values that reach a Softmax, through elements' sums and movement only."""
    found: set[Value] = set()
    for graph in _graphs(model):
        for node in reversed(graph.topological_order()):
            is_path = not node.domain and node.op_type in (*_ADDS, *_MOVES)
            is_end = node.op_type in ("LogSoftmax", "Softmax") and not node.domain
            if is_end or (is_path and any(value in found for value in node.outputs)):
                found.update(value for value in node.inputs if value is not None)
    return found


def _graphs(model: Model) -> list[Graph]:
    return [graph for graph in model.graphs() if not graph.is_function]
