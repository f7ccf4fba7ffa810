"""Quantised models on a target: their form, the dtype of a QDQ unit, rules for floats before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from tiered.graph.core.dtypes import DataType
from tiered.targets.operator_rule import OperatorRule
from tiered.targets.shared_rules import QuantizationForm

if TYPE_CHECKING:
    from tiered.graph import Node, Value


class FixedScale(NamedTuple):
    """The scale and the zero point that a target prescribes for the results of an operator."""

    scale: float
    zero_point: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """The form of quantised models that the target runs.

    `form` qdq: a tensor between QuantizeLinear and DequantizeLinear counts with its quantised
    dtype; `operators`: quantised models consist of QLinear operators. The other fields say how
    a model is quantised for the target; see `tiered.numerics.quantization.scheme.Scheme`.
    """

    form: QuantizationForm = "none"
    per_channel: bool = False
    symmetric_weights: bool = False
    activations: DataType = DataType.UINT8
    weights: DataType = DataType.INT8
    symmetric_activations: bool = False
    reduce_range: bool = False
    operators: tuple[str, ...] = ()
    integer_results: tuple[str, ...] = ("Conv", "ConvTranspose")
    per_tensor: tuple[str, ...] = ()
    unsigned_weights: tuple[str, ...] = ()
    fixed_results: Mapping[str, FixedScale] = field(default_factory=dict)


class QuantizedDtypes(NamedTuple):
    """The dtypes of quantised models, where a model that is yet to be quantised has float32.

    Attributes:
        data: of activations.
        constants: of weights, and of the biases of 32 bits.
    """

    data: int
    constants: frozenset[int]

    def with_float(self, dtypes: frozenset[int]) -> frozenset[int]:
        """Add float32 to dtypes of quantised data, or to those of weights and biases alone."""
        is_constant = bool(dtypes) and dtypes <= {self.data, *self.constants}
        return dtypes | {int(DataType.FLOAT)} if self.data in dtypes or is_constant else dtypes

    def floating_rule(self, rule: OperatorRule) -> OperatorRule:
        """Return a rule that takes float32 wherever a rule takes quantised data."""
        if not any(self.data in each for each in (rule.dtypes, *rule.types.values())):
            return rule
        types = {key: self.with_float(dtypes) for key, dtypes in rule.types.items()}
        return replace(rule, dtypes=self.with_float(rule.dtypes), types=types)


def integers_of(node: Node) -> Value | None:
    """Return the integers that a QuantizeLinear makes or a DequantizeLinear reads; else None."""
    if node.op_type == "QuantizeLinear":
        return node.outputs[0]
    return node.input(0) if node.op_type == "DequantizeLinear" else None


def quantized_dtype(value: Value, *, is_input: bool) -> int | None:
    """Return the quantised dtype of a value next to a Q or DQ node; None without one."""
    if is_input:
        producer = value.producer
        if producer is None or producer.op_type != "DequantizeLinear":
            return None
        return producer.given(0).dtype
    readers = value.readers
    if not readers or any(node.op_type != "QuantizeLinear" for node in readers):
        return None
    return readers[0].output.dtype
