"""How much work it is to compute a node, told from shapes alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tiered.graph.node import Node
    from tiered.graph.value import Value

_CONVOLUTIONS: Final = frozenset({"Conv", "ConvInteger", "ConvTranspose", "QLinearConv"})
_PRODUCTS: Final = frozenset({"Gemm", "MatMul", "MatMulInteger", "QLinearMatMul"})

_FRAGILE: Final = frozenset(
    {
        "Attention", "AveragePool", "Col2Im", "Conv", "ConvInteger", "ConvTranspose", "DFT",
        "DeformConv", "GRU", "GridSample", "ImageDecoder", "LSTM", "LpPool", "MaxPool",
        "MaxRoiPool", "MaxUnpool", "QLinearConv", "RNN", "Resize", "RoiAlign",
        "STFT", "Upsample",
    }
)  # fmt: skip
"""Operators whose kernels trust attributes and operands: a group of 0 ends the program."""


def is_fragile(node: Node) -> bool:
    """Tell whether the kernel of a standard operator may end the program on odd operands."""
    return node.op_type in _FRAGILE and not node.domain


def work_of(node: Node) -> int | None:
    """Return about how many multiplications a node takes; None where a shape is not known.

    Where not even the order of magnitude follows from the operator, it is an upper bound.
    """
    reads = [_size(value) for value in node.inputs if value is not None]
    makes = [_size(value) for value in node.outputs if value is not None]
    sizes = [*reads, *makes]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return None
    largest = max(known, default=0)
    result = max((size for size in makes if size is not None), default=0)
    if node.op_type in _PRODUCTS:
        return result * _contracted(node)
    if node.op_type in _CONVOLUTIONS:
        weight = node.input(3 if node.op_type == "QLinearConv" else 1)
        return max(largest, largest * math.prod((weight and weight.static_shape) or ()))
    if node.op_type == "Einsum":
        return max(largest, math.prod(size for size in known if size))
    if node.op_type == "Det":
        return largest**2
    return largest


def _size(value: Value) -> int | None:
    if value.tensor is not None:
        return value.tensor.size
    return None if value.static_shape is None else math.prod(value.static_shape)


def _contracted(node: Node) -> int:
    """Return the size of the axis over which a product of matrices sums."""
    left = node.input(0)
    shape = left.static_shape if left is not None else None
    if not shape:
        return 1
    return shape[0] if node.op_type == "Gemm" and node.attr("transA", 0) else shape[-1]
