"""Quantised tensors: integers with their scales and zero points.

Shared by the passes that fuse DequantizeLinear, an operator and QuantizeLinear to one operator of
integers: which tensors they take, how a bias becomes integers, whether sums fit into 32 bits.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.types import Dim
from tiered.rewriter.skip import Skip

if TYPE_CHECKING:
    from tiered.graph import Graph, Node, Value

_BYTES: Final = (DataType.INT8, DataType.UINT8)

INTEGER_SPAN: Final = 1 << 16
"""The largest distance between two integers of 8 or 16 bits."""

_SAME: Final = 1e-5
"""The relative difference at which two scales are the same product, rounded differently."""

_SMALL: Final = 2.0**-8
"""The part of a step of the result by which the rounding of a bias may move it."""


_MOST: Final = np.iinfo(np.int32).max
"""The largest integer of the accumulators of kernels."""


class Quantized(NamedTuple):
    """A quantised tensor, (q - zero) * scale, with one scale or one for each index of an axis."""

    q: Value
    scale: Value
    zero: Value | None
    axis: int | None = None

    @property
    def dtype(self) -> int | None:
        return self.q.dtype

    @property
    def scales(self) -> NDArray[np.float64]:
        """The scales as float64: one, or one for each index of the axis."""
        array = self.scale.const
        assert array is not None
        return array.astype(np.float64).ravel()

    @property
    def zeros(self) -> NDArray[np.int64]:
        """The zero points: one, or one for each index of the axis."""
        array = None if self.zero is None else self.zero.const
        return np.zeros(1, np.int64) if array is None else array.astype(np.int64).ravel()

    @property
    def reach(self) -> int:
        """The largest distance of an integer from its zero point."""
        limits = np.iinfo(np.int8 if self.dtype == DataType.INT8 else np.uint8)
        least, most = self.zeros.min(initial=limits.max), self.zeros.max(initial=limits.min)
        return int(max(limits.max - least, most - limits.min))

    def operands(self, graph: Graph) -> tuple[Value, Value, Value]:
        """Return the integers, the scale and the zero point, as QLinear operators take them."""
        return (self.q, *self.parameters(graph))

    def parameters(self, graph: Graph) -> tuple[Value, Value]:
        """Return the scale and the zero point; an absent one becomes a constant 0.

        One number becomes a scalar: the type inference of onnxruntime takes no vector for it.
        """
        scale, zero = self.scale, self.zero
        assert self.dtype is not None
        assert scale.const is not None
        if scale.const.size == 1 and scale.const.ndim:
            scale = graph.constant(scale.const.reshape(()), scale.name)
        if zero is None:
            zeros = np.zeros(self.scales.shape if scale.rank else (), DataType(self.dtype).numpy)
            return scale, graph.constant(zeros, "zero_point")
        if zero.const is not None and zero.const.size == 1 and zero.const.ndim:
            zero = graph.constant(zero.const.reshape(()), zero.name)
        return scale, zero

    def has_parameters_of(self, other: Quantized) -> bool:
        """Return whether dtype, axis, scales and zero points are the same."""
        return (
            (self.dtype, self.axis) == (other.dtype, other.axis)
            and np.array_equal(self.scales, other.scales)
            and bool((self.zeros == other.zeros).all())
        )


def dequantized(x: Value | None, dtypes: Collection[DataType] = _BYTES) -> Quantized | Skip:
    """Return the input of the DequantizeLinear that produces a value, or why there is none.

    Args:
        x: the value.
        dtypes: the dtypes of the integers, by default those of kernels.
    """
    node = None if x is None else x.producer
    if node is None or not node.is_op("DequantizeLinear"):
        return Skip("an operand has no DequantizeLinear")
    return _unit(node, node.given(0), dtypes)


def quantized_by(node: Node, dtypes: Collection[DataType] = _BYTES) -> Quantized | Skip:
    """Return the output of a QuantizeLinear, or why it is not supported; `dtypes` as above."""
    return _unit(node, node.output, dtypes)


def quantized_unit(node: Node, *operands: Value | None) -> Sequence[Quantized] | Skip:
    """Return the quantised operands of an operator and last its quantised result, all per tensor.

    Args:
        node: the QuantizeLinear after the operator.
        operands: the operands of the operator, outputs of DequantizeLinear.
    """
    units = []
    for unit in (*map(dequantized, operands), quantized_by(node)):
        if isinstance(unit, Skip):
            return unit
        if unit.axis is not None:
            return Skip("the scale of data is per index")
        units.append(unit)
    if len({unit.dtype for unit in units}) > 1:
        return Skip("data and result are of different dtypes")
    return units


def kernel_unit(node: Node, x: Value, weight: Value, axis: int) -> Sequence[Quantized] | Skip:
    """Return the quantised data, weight and result of a product or convolution.

    Args:
        node: the QuantizeLinear.
        x: the data, dequantised.
        weight: the weight, dequantised.
        axis: the axis of the weight along which its scale may vary.
    """
    units = quantized_unit(node, x)
    if isinstance(units, Skip):
        return units
    kernel = weight_unit(units[0], weight, axis)
    return kernel if isinstance(kernel, Skip) else (units[0], kernel, units[1])


def weight_unit(data: Quantized, weight: Value, axis: int) -> Quantized | Skip:
    """Return the quantised weight that kernels multiply data by, or why they do not."""
    kernel = dequantized(weight)
    if isinstance(kernel, Skip):
        return kernel
    if kernel.axis not in (None, axis):
        return Skip("the weight has scales along another axis")
    if len(set(kernel.zeros.tolist())) > 1:
        return Skip("the zero points of the weight differ")
    if data.dtype == DataType.INT8 and kernel.dtype != DataType.INT8:
        return Skip("there is no kernel for signed data and unsigned weights")
    return kernel


def is_number_or_column(value: Value, columns: Dim) -> bool:
    """Return whether a scale or zero point is one number, or one for each column of a matrix.

    Args:
        value: the scale or zero point. A vector of unknown length broadcasts against the columns,
            so it has as many elements, or 1.
        columns: the last dim of the matrix.
    """
    if value.shape in ((), (1,)):
        return True
    if value.shape is None or len(value.shape) != 1:
        return False
    if value.shape == (columns,):
        return columns is not None
    # One column would become as many as there are scales.
    is_wide = isinstance(columns, int) and columns > 1
    return is_wide and not isinstance(value.shape[0], int)


def why_sums_nothing(a: Value, b: Value) -> Skip | None:
    """Return why the sums of a product of matrices may have no terms, None if they have some.

    Kernels of integers do not write such sums at all.
    """
    if any(isinstance(size, int) and size > 0 for size in (a.dim(-1), b.dim(-2))):
        return None
    return Skip("the sums may have no terms")


def integer_bias(
    graph: Graph, bias: Value | None, data: Quantized, kernel: Quantized, step: float
) -> Value | Skip | None:
    """Return a bias as int32, in units of the scale of the data times that of the weight.

    Args:
        graph: the graph of the operator.
        bias: a constant, or the output of a DequantizeLinear; None if there is no bias.
        data, kernel: the factors.
        step: the scale of the result, which bounds the rounding error; 0 for a float result.
    """
    if bias is None:
        return None
    scales = data.scales * kernel.scales
    numbers = _numbers_of(bias)
    if isinstance(numbers, Skip):
        return numbers
    if numbers.ndim != 1 or scales.size not in (1, numbers.size):
        return Skip("the bias is not one number a channel")
    source = _same_steps(bias, scales)
    if source is not None:
        return source
    steps = np.rint(numbers / scales)
    if not np.isfinite(numbers).all() or np.abs(steps).max(initial=0.0) > _MOST:
        return Skip("the bias does not fit 32 bits")
    if np.abs(steps * scales - numbers).max(initial=0.0) > _SMALL * step:
        return Skip("the scale of data times weight is too coarse for the bias")
    return graph.constant(steps.astype(np.int32), bias.name)


def why_may_overflow(
    data: Quantized, kernel: Quantized, summed: slice, bias: Value | None = None
) -> Skip | None:
    """Return why kernels may not sum products in int32, None if they always do.

    Only the final sum counts: intermediate sums may wrap around. Sums of no terms are not written.

    Args:
        data, kernel: the factors.
        summed: the axes of the weight that are summed over, of all its axes.
        bias: the int32 bias.
    """
    q, numbers = kernel.q, None if bias is None else bias.const
    assert bias is None or numbers is not None
    dims = None if q.shape is None else q.shape[summed]
    if dims is None or not all(isinstance(dim, int) for dim in dims):
        return Skip("the length of the sums is not known")
    added = np.zeros(1) if numbers is None else np.abs(numbers.astype(np.float64))
    depth = prod(dim for dim in dims if isinstance(dim, int))
    if depth == 0:
        return Skip("the sums may have no terms")
    if depth * data.reach * kernel.reach + added.max(initial=0.0) <= _MOST:
        return None
    if q.const is not None:
        # A constant weight has a tighter bound.
        sizes = np.abs(q.const.astype(np.int16) - kernel.zeros[:1].astype(np.int16))
        sums = sizes.sum(axis=tuple(range(sizes.ndim)[summed]), dtype=np.int64)
        if (sums * data.reach + added).max(initial=0.0) <= _MOST:
            return None
    return Skip("the sums may not fit 32 bits")


def _numbers_of(bias: Value) -> NDArray[np.float64] | Skip:
    """Return a bias as float64, or why it is not constant."""
    if bias.const is not None:
        return bias.const.astype(np.float64)
    node = bias.producer
    if node is None or not node.is_op("DequantizeLinear"):
        return Skip("the bias is not constant")
    integers, scales, zeros = (node.const(slot) for slot in range(3))
    if integers is None or scales is None or (zeros is None and node.input(2) is not None):
        return Skip("the bias is not constant")
    if zeros is not None and zeros.any():
        return Skip("the bias has a zero point")
    if scales.size not in (1, integers.size):
        return Skip("the bias is not one number a channel")
    return integers.astype(np.float64) * scales.astype(np.float64).ravel()


def _same_steps(bias: Value, scales: NDArray[np.float64]) -> Value | None:
    """Return the int32 input of the DequantizeLinear of a bias if it has these scales already."""
    node = bias.producer
    if node is None or bias.const is not None:
        return None
    q, steps = node.given(0), node.const(1)
    if steps is None or q.dtype != DataType.INT32:
        return None
    given = steps.astype(np.float64).ravel()
    return q if np.allclose(given, scales, rtol=_SAME, atol=0.0) else None


def _unit(node: Node, q: Value, dtypes: Collection[DataType]) -> Quantized | Skip:
    """Return the quantised tensor that a QuantizeLinear produces, or a DequantizeLinear reads."""
    if node.has_references:
        return Skip("{}", node.parameter_reason)
    if q.dtype not in dtypes:
        return Skip("the integers do not have 8 bits")
    scale, zero = node.given(1), node.input(2)
    if scale.const is None or (zero is not None and zero.const is None):
        return Skip("a scale or zero point is not a constant")
    if scale.dtype != DataType.FLOAT:
        return Skip("a scale is no float32")
    is_float = node.attr("output_dtype", 0) in (0, DataType.FLOAT)
    if node.op_type == "DequantizeLinear" and not is_float:
        return Skip("DequantizeLinear does not produce float32")
    if node.attr("precision", 0) not in (0, DataType.FLOAT):
        return Skip("the precision of QuantizeLinear is not float32")
    if node.attr("block_size", 0):
        return Skip("a scale is for a block")
    limits = np.finfo(np.float32)
    if not ((scale.const >= limits.tiny) & (scale.const < limits.max)).all():
        return Skip("a scale is not a positive normal number")
    if not (scale.const.astype(np.float64) * INTEGER_SPAN < limits.max).all():
        return Skip("a scale is so large that dequantised numbers may overflow")
    if scale.const.size == 1:
        return Quantized(q, scale, zero)
    axis, rank = int(node.attr("axis", 1)), q.rank
    if not rank:
        return Skip("the rank of the quantised tensor is not known")
    return Quantized(q, scale, zero, axis % rank)
