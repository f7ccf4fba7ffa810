"""float8: products whose operands go through QuantizeLinear and DequantizeLinear of float8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tiered.calibration.calibrate import calibrate
from tiered.graph import DataType, Model, Node, Tensor, Value
from tiered.graph.core.dtypes import float_info
from tiered.precision.codes import FLOAT8
from tiered.precision.lower import OnFound, OnSkip
from tiered.precision.narrowing import why_skipped
from tiered.precision.weights import float8_format, quantise_weights
from tiered.rewriter import Skip
from tiered.verify.samples import Source

Array = np.ndarray[Any, Any]

_OPSET: Final = 19
"""The first one whose QuantizeLinear has float8."""

_OPERANDS: Final = {"Conv": 1, "ConvTranspose": 1, "Gemm": 2, "MatMul": 2}
"""The operators, and how many of their operands are multiplied but for constant weights."""


@dataclass(frozen=True, kw_only=True)
class Float8Settings:
    """How products are quantised to float8.

    Attributes:
        format, weight_format: names in `FLOAT8`, of data and of weights.
        exponent, weight_exponent: each scale is 2 to this power; without one, the largest number
            is that of the type, for each value, and for each output channel of a weight.
        inputs, seed, samples: what ranges of data are measured on; made without any.
        min_elements: smaller weights stay.
        skip_op_types, skip_nodes: what stays float: operators, and globs of names of nodes.
    """

    format: str = "E4M3FN"
    weight_format: str = "E4M3FN"
    exponent: int | None = None
    weight_exponent: int | None = None
    inputs: Iterable[Source] = field(default=())
    seed: int = 0
    samples: int = 8
    min_elements: int = 1024
    skip_op_types: tuple[str, ...] = ()
    skip_nodes: tuple[str, ...] = ()


def quantise_to_float8(
    model: Model, settings: Float8Settings, on_found: OnFound, on_skip: OnSkip
) -> None:
    """Quantise what Conv, ConvTranspose, Gemm and MatMul multiply to float8.

    A value has one pair of QuantizeLinear and DequantizeLinear, whatever the number of its readers;
    numbers beyond the type saturate.

    Args:
        model: the model, edited in place.
        settings: how.
        on_found: called with each finding.
        on_skip: called with each node that stays float in an operand, and the reason.

    Raises:
        UsageError: a file of inputs belongs to no input of the model.
        ModelError: a file of inputs cannot be read.
        RuntimeFailure: scales have to be measured, and onnxruntime does not run the model.
    """
    planned: dict[Value, list[tuple[Node, int]]] = {}
    products = [node for node in _products(model) if not _is_constant_product(node)]
    if products and model.opset() < _OPSET:
        text = "float8 needs opset {}, the model has {}"
        on_skip(None, Skip(text, _OPSET, model.opset()))
        return
    for node in products:
        if reason := why_skipped(node, settings.skip_op_types, settings.skip_nodes):
            on_skip(node, Skip(reason))
            continue
        for place, value in _data(node):
            if reason := _refusal(value, settings):
                on_skip(node, Skip(reason))
            else:
                planned.setdefault(value, []).append((node, place))
    scales = _scales(model, planned, settings)
    low = FLOAT8[settings.format]
    for value, uses in planned.items():
        _insert(value, uses, scales[value], low)
    if planned:
        on_found(f"{len(planned)} values are quantised to {low.name.lower()}")
    quantise_weights(
        model,
        float8_format(FLOAT8[settings.weight_format], settings.weight_exponent),
        on_found,
        on_skip,
        min_elements=settings.min_elements,
        skip_op_types=(*settings.skip_op_types, "Gather"),
        skip_nodes=settings.skip_nodes,
    )


def _products(model: Model) -> Iterator[Node]:
    for graph in model.graphs():
        if not graph.is_function:
            for node in graph.topological_order():
                if not node.domain and node.op_type in _OPERANDS:
                    yield node


def _is_constant_product(node: Node) -> bool:
    """Return whether all that a node multiplies is constant."""
    return all(value is None or value.is_constant for value in node.inputs)


def _data(node: Node) -> Iterator[tuple[int, Value]]:
    """Yield the operands that are no constants, and not quantised already."""
    for place in range(_OPERANDS[node.op_type]):
        value = node.input(place)
        if value is None or value.is_constant:
            continue
        producer = value.producer
        if producer is None or producer.op_type != "DequantizeLinear":
            yield place, value


def _refusal(value: Value, settings: Float8Settings) -> str:
    """Return why a value is not quantised; empty if it is."""
    if value.dtype not in (DataType.FLOAT, DataType.FLOAT16):
        return "the operand is neither float nor float16"
    if settings.exponent is None and not value.owner.is_main:
        return "in a body, where ranges are not measured"
    return ""


def _scales(
    model: Model, planned: Mapping[Value, object], settings: Float8Settings
) -> dict[Value, float]:
    """Return the scale of each value: a power of two, or what makes the largest number fit."""
    if settings.exponent is not None:
        return dict.fromkeys(planned, 2.0**settings.exponent)
    if not planned:
        return {}
    found = calibrate(
        model,
        planned,
        settings.inputs,
        method="minmax",
        seed=settings.seed,
        samples=settings.samples,
    )
    limit = float(float_info(FLOAT8[settings.format].numpy).max)
    measured = {value: found.interval(value.name) or (0.0, 0.0) for value in planned}
    return {value: max(-low, high) / limit for value, (low, high) in measured.items()}


def _insert(value: Value, uses: list[tuple[Node, int]], scale: float, low: DataType) -> None:
    """Let some uses of a value read it from float8."""
    graph = value.owner
    assert value.dtype is not None
    stored = np.array(scale).astype(DataType(value.dtype).numpy)
    if not 0 < stored < np.inf:
        stored = np.ones_like(stored)
    factor = graph.constant(stored, f"{value.name}_scale")
    zero = graph.constant(Tensor.of(np.zeros((), low.numpy)), f"{value.name}_zero_point")
    coded = graph.op.QuantizeLinear(value, factor, zero, saturate=1)
    made = graph.op.DequantizeLinear(coded, factor, zero)
    for node, place in uses:
        node.owner.set_input(node, place, made)
