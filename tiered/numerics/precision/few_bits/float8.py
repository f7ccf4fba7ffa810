"""float8: products whose operands go through QuantizeLinear and DequantizeLinear of float8."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from tiered.analysis.roles.masks import MASKED, mask_limits
from tiered.analysis.roles.model_roles import few_bit_roles
from tiered.analysis.roles.role import nodes_of
from tiered.graph import DataType, Model, Node, Tensor, Value
from tiered.graph.core.dtypes import float_info
from tiered.numerics.calibration.calibrate import calibrate
from tiered.numerics.precision.few_bits.codes import FLOAT8
from tiered.numerics.precision.few_bits.exponents import MEASURED, Exponents
from tiered.numerics.precision.few_bits.formats import float8_format
from tiered.numerics.precision.few_bits.returning import OutputBudget, convert_within
from tiered.numerics.precision.few_bits.stored import Encoded
from tiered.numerics.precision.few_bits.weights import store_weights
from tiered.numerics.precision.lower import OnFound, OnSkip
from tiered.numerics.precision.narrowing import (
    IR_OF_DEFAULTS,
    unmatched,
    why_no_weight,
    why_skipped,
)
from tiered.rewriter import Skip, Unable
from tiered.runtime.inputs.samples import Source
from tiered.support.amounts import counted

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
        exponents, weight_exponents: of scales that are powers of two; without one, the largest
            number is that of the type, for each value, and for each output channel of a weight.
        inputs, seed, samples: what ranges of data are measured on; made without any.
        min_elements: smaller weights stay.
        skip_op_types, skip_nodes: what stays float: operators, and globs of names of nodes.
        budget: the limit of the outputs, as `cosine>=0.999`; empty for none.
    """

    format: str = "E4M3FN"
    weight_format: str = "E4M3FN"
    exponents: Exponents = MEASURED
    weight_exponents: Exponents = MEASURED
    inputs: Sequence[Source] = ()
    seed: int = 0
    samples: int = 8
    min_elements: int = 1024
    skip_op_types: tuple[str, ...] = ()
    skip_nodes: tuple[str, ...] = ()
    budget: str = ""

    def keep(self, node: Node) -> str:
        """Return why the user keeps a node in float; empty if not."""
        return why_skipped(node, self.skip_op_types, self.skip_nodes)


def quantize_to_float8(
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
        UsageError: a file of inputs belongs to no input, or the budget is not readable.
        ModelError: a file of inputs cannot be read.
        RuntimeFailure: scales have to be measured, and onnxruntime does not run the model.
        VerificationError: the budget does not hold with all products of the main graph in float.
    """
    products = [node for node in _products(model) if not _is_constant_product(node)]
    if products and model.opset() < _OPSET:
        text = "float8 needs opset {}, the model has {}"
        on_skip(None, Unable(text, _OPSET, model.opset()))
        return
    budget = OutputBudget(
        limit=settings.budget,
        inputs=settings.inputs,
        seed=settings.seed,
        samples=settings.samples,
    )
    exponents = (*settings.exponents.by_node, *settings.weight_exponents.by_node)
    names = (*settings.skip_nodes, *(name for name, _ in exponents))
    for text in unmatched(model, settings.skip_op_types, names):
        on_found(text)
    conversion = _Conversion(model, settings)
    low = FLOAT8[settings.format]
    convert_within(model, conversion.run, budget, on_found, on_skip, what="product", low=low)


class _Planned(NamedTuple):
    """A value that is quantised, and the exponent of its scale; None to measure it."""

    value: Value
    exponent: int | None


class _Conversion:
    """A conversion that runs again without some nodes; scales and codes are computed once."""

    def __init__(self, model: Model, settings: Float8Settings) -> None:
        self.model = model
        self.settings = settings
        self.scales: dict[_Planned, float] = {}
        self.codes = Encoded() if settings.budget else None
        model.refresh_types()
        self.roles = few_bit_roles(model)
        self.masks = mask_limits(model)

    def run(self, kept: Mapping[Node, str], on_found: OnFound, on_skip: OnSkip) -> list[Node]:
        """Quantise all products but some, and return them."""
        settings, low = self.settings, FLOAT8[self.settings.format]

        def keep(node: Node) -> str:
            role = self.roles.get(node)
            return kept.get(node, "") or settings.keep(node) or (str(role) if role else "")

        planned: dict[_Planned, list[tuple[Node, int]]] = {}
        for node in _products(self.model):
            if _is_constant_product(node):
                continue
            if reason := keep(node):
                on_skip(node, Skip(reason))
                continue
            for place, value in _data(node):
                exponent = settings.exponents.for_node(node)
                if reason := str(MASKED) if value in self.masks else _refusal(value, exponent):
                    on_skip(node, Skip(reason))
                else:
                    planned.setdefault(_Planned(value, exponent), []).append((node, place))
        unknown = [each for each in planned if each not in self.scales]
        self.scales.update(_scales(self.model, unknown, settings))
        for each, uses in planned.items():
            _insert(each.value, uses, self.scales[each], low)
        if planned:
            count = len({each.value for each in planned})
            on_found(f"{counted(count, 'value')} quantised to {low.name.lower()}")
        form = float8_format(FLOAT8[settings.weight_format], settings.weight_exponents)

        def keep_weight(node: Node) -> str:
            return keep(node) or ("Gather multiplies nothing" if node.is_op("Gather") else "")

        readers = store_weights(
            self.model, form, on_found, on_skip, keep_weight, settings.min_elements, self.codes
        )
        edited = [node for uses in planned.values() for node, _ in uses]
        return list(dict.fromkeys(edited + readers))


def _products(model: Model) -> Iterator[Node]:
    return (node for node in nodes_of(model) if node.op_type in _OPERANDS)


def _is_constant_product(node: Node) -> bool:
    """Return whether all that a node multiplies is constant."""
    return all(value is None or value.is_constant for value in node.inputs)


def _data(node: Node) -> Iterator[tuple[int, Value]]:
    """Yield the operands that are no constants, and not quantised already."""
    for place in range(_OPERANDS[node.op_type]):
        value = node.given(place)
        producer = value.producer
        if not value.is_constant and (producer is None or producer.op_type != "DequantizeLinear"):
            yield place, value


def _refusal(value: Value, exponent: int | None) -> str:
    """Return why a value is not quantised; empty if it is."""
    if value.owner.model.ir_version < IR_OF_DEFAULTS and (refusal := why_no_weight(value)):
        return refusal
    if value.dtype not in (DataType.FLOAT, DataType.FLOAT16):
        return "the operand is neither float nor float16"
    if exponent is None and not value.owner.is_main:
        return "in a body, where ranges are not measured"
    return ""


def _scales(
    model: Model, planned: Sequence[_Planned], settings: Float8Settings
) -> dict[_Planned, float]:
    """Return the scale of each value: a power of two, or what makes the largest number fit."""
    known = {each: 2.0**each.exponent for each in planned if each.exponent is not None}
    measured = [each for each in planned if each.exponent is None]
    if not measured:
        return known
    found = calibrate(
        model,
        [each.value for each in measured],
        settings.inputs,
        method="minmax",
        seed=settings.seed,
        samples=settings.samples,
    )
    limit = float(float_info(FLOAT8[settings.format].numpy).max)
    for each in measured:
        low, high = found.interval(each.value.name) or (0.0, 0.0)
        known[each] = max(-low, high) / limit
    return known


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
