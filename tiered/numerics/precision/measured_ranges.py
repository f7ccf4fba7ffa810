"""Ranges on inputs: what leaves the range of a narrower type, as a value or inside of a node."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tiered.analysis.roles.masks import LARGEST, mask_limits
from tiered.analysis.roles.role import Narrow
from tiered.graph import DataType, Model, Node, Value
from tiered.graph.core.dtypes import float_info
from tiered.graph.intervals.range_analysis import ranges
from tiered.numerics.calibration.calibrate import Feeds, SampledModel
from tiered.numerics.calibration.observers import MinMax, Seen

_MEANS: Final = frozenset({"GlobalAveragePool", "ReduceMean"})
"""Operators that sum more than they return."""

_ROOTS: Final = frozenset({"LpPool", "ReduceL2"})
"""Operators that compute the root of a sum of squares."""

# The norms of layers and of roots compute in float by definition.
_SQUARES: Final = frozenset({"GroupNormalization", "InstanceNormalization", "LpNormalization"})
"""Operators that compute squares of what they read, in its type."""

_LOGARITHMS: Final = {"LogSoftmax": -1, "ReduceLogSum": 1}
"""Operators that take the logarithm of an inner number: e to the result, times this sign."""

_FEW_DIGITS: Final = 8
"""Numbers that are all below the normal ones of a type by this factor have three digits fewer."""


class Beyond(NamedTuple):
    """What does not fit into a narrower type.

    Attributes:
        values: those with numbers beyond its range, or with no number that it has enough digits
            for, and why.
        nodes: those that compute such numbers inside, and why.
    """

    values: Mapping[Value, str]
    nodes: Mapping[Node, str]


class _Found(NamedTuple):
    """What was seen of a value: the magnitude of its numbers, and the most elements."""

    magnitude: float
    size: int


def beyond_range(
    model: Model, nodes: Iterable[Node], feeds: Sequence[Feeds], low: DataType, *, margin: float
) -> Beyond:
    """Return what leaves the range of a narrower type on inputs, of nodes of the main graph.

    Masks, NaN and Inf do not count, nor does what range analysis proves to be in the range.

    Args:
        model: the model of floats; it is not edited.
        nodes: those that are to compute in the narrower type.
        feeds: the inputs of each run.
        low: the narrower type.
        margin: the factor by which numbers may be larger for other inputs.

    Raises:
        RuntimeFailure: onnxruntime does not run the model.
    """
    chosen = [node for node in nodes if node.owner.is_main]
    limit = float(float_info(low.numpy).max)
    seen, proven = _seen(model, chosen, feeds), model.analysis(ranges)
    least = float(float_info(low.numpy).smallest_normal) / _FEW_DIGITS
    values = {
        value: f"measured up to {found.magnitude:.3g}"
        for value, found in seen.items()
        if 0 < found.magnitude < least
        or (
            found.magnitude * margin > limit
            and not (proven.has_proof(value) and proven[value].magnitude <= limit)
        )
    }
    inner = {node: _inner(node, seen, Narrow(low, limit), margin) for node in chosen}
    return Beyond(values, {node: reason for node, reason in inner.items() if reason})


def _seen(model: Model, nodes: Sequence[Node], feeds: Sequence[Feeds]) -> Mapping[Value, _Found]:
    """Return what is seen of the values of floats that nodes read and compute."""
    planned = {
        value.name: value
        for node in nodes
        for value in (*node.inputs, *node.outputs)
        if value is not None and value.dtype == DataType.FLOAT and not value.is_constant
    }
    masks = mask_limits(model, feeds)
    seen = {
        # Only where a mask goes are numbers of no size none.
        name: Seen(MinMax(), masks.get(value, -np.inf), LARGEST if value in masks else np.inf)
        for name, value in planned.items()
    }
    sizes = dict.fromkeys(planned, 0)
    with SampledModel.of(model) as running:
        for each in feeds:
            defaults = _defaults(planned.values(), each)
            for name, array in (*defaults, *running.stream(each, planned)):
                if isinstance(array, np.ndarray):
                    seen[name].observe(array)
                    sizes[name] = max(sizes[name], array.size)
    found = ((value, seen[name].range(), sizes[name]) for name, value in planned.items())
    return {
        value: _Found(max(-each.least, each.most), size) for value, each, size in found if each.seen
    }


def _defaults(values: Iterable[Value], feeds: Feeds) -> list[tuple[str, Any]]:
    """Return the defaults of inputs that are not fed."""
    return [
        (value.name, value.default.numpy())
        for value in values
        if value.default is not None and value.name not in feeds
    ]


def _inner(node: Node, seen: Mapping[Value, _Found], narrow: Narrow, margin: float) -> str:
    """Return which numbers inside of a node may leave the range of a type; empty if none do."""
    if node.domain or node.op_type not in _MEANS | _ROOTS | _SQUARES | _LOGARITHMS.keys():
        return ""
    source, output = node.given(0), node.output
    if source not in seen or output not in seen:
        return ""
    read, made = seen[source], seen[output]
    total = made.magnitude * read.size / max(made.size, 1)
    if node.op_type in _MEANS and read.size > made.size and total * margin > narrow.largest:
        return f"a sum up to {total:.3g} inside"
    squared = {**dict.fromkeys(_ROOTS, made), **dict.fromkeys(_SQUARES, read)}.get(node.op_type)
    if squared is not None and squared.magnitude**2 * margin > narrow.largest:
        return f"squares up to {squared.magnitude**2:.3g} inside"
    sign = _LOGARITHMS.get(node.op_type)
    if sign is not None and not narrow.holds(math.exp(sign * min(made.magnitude, 700.0))):
        return f"e^{sign * made.magnitude:.3g} inside"
    return ""
