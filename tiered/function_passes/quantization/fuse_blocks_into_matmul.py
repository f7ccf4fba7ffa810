"""MatMul(x, DequantizeLinear(q, scale))  =>  MatMulNBits(x, q, scale), for scales of blocks"""

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tiered import DataType, Graph, Skip, Value, op, opt, rewrite, var

Numbers: TypeAlias = NDArray[Any]

_BLOCKS: Final = (16, 32, 64, 128, 256)
_MIDDLE: Final = 8
"""The zero point of the kernel if it has no zero points."""


@rewrite(
    op.MatMul(
        var.x,
        op.DequantizeLinear(
            var.q, var.scale, opt.zero, axis=lambda axis: axis in (0, -2), block_size=var.block
        ),
    ),
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    makes=["com.microsoft::MatMulNBits"],
    quantization="operators",
    numerics="reassociating",
)
def fuse_blocks_into_matmul(
    graph: Graph, x: Value, q: Value, scale: Value, zero: Value | None, block: int
) -> Value | Skip:
    """Multiply by a 4-bit matrix that the kernel dequantises by blocks.

    x keeps its dtype. Opt-in: onnxruntime's own optimiser makes the same fusion, but rounds x to 8
    bits, which is faster and far less exact.
    """
    if q.dtype not in (DataType.INT4, DataType.UINT4) or q.rank != 2:
        return Skip("the integers are not a 4-bit matrix")
    if block not in _BLOCKS:
        return Skip("the block size is unsupported")
    if x.rank is None or x.rank < 2:
        return Skip("x is not known to have matrices")
    if not q.has_one_user:
        return Skip("the integers have other consumers")
    integers, scales = q.const, scale.const
    zeros = None if zero is None else zero.const
    if integers is None or scales is None or (zero is not None and zeros is None):
        return Skip("integers, scales or zero points are not constant")
    rows, columns = integers.shape
    if rows % block or scales.shape != (rows // block, columns):
        return Skip("the block size does not divide the rows")
    shift = 0 if q.dtype == DataType.UINT4 else _MIDDLE
    offsets = np.zeros(scales.shape, np.int8) if zeros is None else zeros.astype(np.int8)
    packed = _packed(_shifted(integers, shift).reshape(columns, rows // block, block))
    made: Value = graph.op("com.microsoft").MatMulNBits(
        x,
        graph.constant(packed, q.name),
        graph.constant(np.ascontiguousarray(scales.T), scale.name),
        None if _is_middle(offsets, shift) else _packed(_shifted(offsets, shift)),
        K=rows,
        N=columns,
        bits=4,
        block_size=block,
    )
    return made


def _shifted(numbers: Numbers, shift: int) -> Numbers:
    """Return the matrix as [columns, rows] of non-negative numbers, uint8."""
    return np.ascontiguousarray((numbers.astype(np.int8) + np.int8(shift)).astype(np.uint8).T)


def _is_middle(zeros: Numbers, shift: int) -> bool:
    return bool((zeros + shift == _MIDDLE).all())


def _packed(numbers: Numbers) -> Numbers:
    """Return the last dim packed: two numbers per byte, the first one in the low half."""
    if numbers.shape[-1] % 2:
        numbers = np.concatenate([numbers, np.zeros_like(numbers[..., :1])], -1)
    packed: Numbers = numbers[..., 0::2] | (numbers[..., 1::2] << 4)
    return packed
