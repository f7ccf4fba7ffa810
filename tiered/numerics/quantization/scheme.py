"""The scheme of a target: dtypes, symmetry, and the operators that it computes in integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tiered.graph import DataType, Node, Value

if TYPE_CHECKING:
    from tiered.targets import Backend
    from tiered.targets.quantized import FixedScale

PRODUCTS: Final = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
"""The operators that multiply two tensors, or a tensor by a weight."""

_BITS_OF_16: Final = frozenset({DataType.INT16, DataType.UINT16})

_FIRST_OPSET: Final = 10
_PER_CHANNEL_OPSET: Final = 13
_OPSET_OF_16: Final = 21

OperandsInIntegers = Callable[[Node], Sequence[Value]]
"""Returns the operands and results of a node that must be integers for the target to take it."""


@dataclass(frozen=True)
class Scheme:
    """How a model is quantised.

    Attributes:
        activations: the dtype of data.
        weights: the dtype of constant operands.
        symmetric: whether the zero point of data is in the middle of its dtype.
        per_channel: whether weights have a scale for each output channel.
        reduce_range: whether weights have 7 bits, for kernels that add pairs of products in
            16 bits, which saturate.
        keeps_pairs: whether neighbours in weights are limited instead, so that no pair saturates.
        operators: what is quantised.
        integer_results: the operators whose kernels have integer results only, so that these are
            quantised too.
        per_tensor: operators whose weights have one scale.
        unsigned_weights: operators whose weights are unsigned.
        fixed_results: operators whose results have a prescribed scale and zero point.
        in_integers: for a target that has no kernels of floats: what must be quantised around an
            operator; None for targets that compute the others in float.
        why_float: for such a target, why it does not take an operator in integers.
    """

    activations: DataType = DataType.UINT8
    weights: DataType = DataType.INT8
    symmetric: bool = False
    per_channel: bool = True
    reduce_range: bool = False
    keeps_pairs: bool = False
    operators: frozenset[str] = PRODUCTS
    integer_results: frozenset[str] = frozenset({"Conv", "ConvTranspose"})
    per_tensor: frozenset[str] = frozenset()
    unsigned_weights: frozenset[str] = frozenset()
    fixed_results: Mapping[str, FixedScale] = field(default_factory=dict)
    in_integers: OperandsInIntegers | None = field(default=None, compare=False)
    why_float: Callable[[Node], str] = field(default=lambda node: "", compare=False)

    @property
    def levels(self) -> int:
        """The steps between the ends of a range of data."""
        return (1 << self.activations.bits) - 1

    def refusal(self, opset: int) -> str:
        """Return why an opset does not have the operators of the scheme; empty if it has."""
        first = _OPSET_OF_16 if self.activations in _BITS_OF_16 else _FIRST_OPSET
        name = self.activations.name.lower()
        return "" if opset >= first else f"{name} needs opset {first}, the model has {opset}"

    def may_saturate(self, op_type: str) -> bool:
        """Return whether two products of an operator may exceed 16 bits: of uint8 by int8."""
        is_mixed = self.activations == DataType.UINT8 and self.weights == DataType.INT8
        is_limited = self.reduce_range or self.keeps_pairs
        return is_mixed and not is_limited and op_type not in self.unsigned_weights

    def has_channels(self, op_type: str, opset: int) -> bool:
        """Return whether the weights of an operator have a scale for each channel."""
        return self.per_channel and opset >= _PER_CHANNEL_OPSET and op_type not in self.per_tensor


def scheme_of(backend: Backend | None) -> Scheme:
    """Return the scheme of a backend; without one, that of most runtimes."""
    if backend is None:
        return Scheme()
    given = backend.quantization
    return Scheme(
        activations=given.activations,
        weights=given.weights,
        symmetric=given.symmetric_activations,
        per_channel=given.per_channel,
        reduce_range=given.reduce_range,
        operators=frozenset(given.operators) or PRODUCTS,
        integer_results=frozenset(given.integer_results),
        per_tensor=frozenset(given.per_tensor),
        unsigned_weights=frozenset(given.unsigned_weights),
        fixed_results=given.fixed_results,
        in_integers=None if backend.computes_floats else backend.operands_in_integers,
        why_float=lambda node: "; ".join(map(str, backend.before_quantization.refusals(node))),
    )
