"""How much work it is to compute a node, told from shapes alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

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


# To start a node takes about as long as so many multiplications.
_START: Final = 1 << 10


def is_fragile(node: Node) -> bool:
    """Tell whether a node may end, block or fill the program that computes it.

    Kernels of some standard operators do on odd operands, and so may whatever is in a body.
    """
    return bool(node.bodies) or (node.op_type in _FRAGILE and not node.domain)


def work_of(node: Node) -> int | None:
    """Return about how many multiplications a node takes; None where a shape is not known.

    What is in a body counts as often as it runs; None where that is not known. Where not even the
    order of magnitude follows from the operator, it is an upper bound.
    """
    if node.bodies:
        turns = _turns(node)
        inner = [work_of(each) or 0 for body in node.bodies for each in body.nodes]
        return None if turns is None else turns * sum(size + _START for size in inner)
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


def _turns(node: Node) -> int | None:
    """Return how often a body runs at most; None where that is not known."""
    if node.op_type == "If":
        return 1
    if node.op_type == "Loop":
        most = node.input(0)
        known = None if most is None else most.const
        return None if known is None or known.size != 1 else max(int(known.item()), 1)
    if node.has_references:
        return None
    scanned = node.inputs[-node.attr("num_scan_inputs", 1) :] if node.op_type == "Scan" else ()
    axes = node.attr("scan_input_axes", None) or [0] * len(scanned)
    lengths = [value and value.dim(axis) for value, axis in zip(scanned, axes, strict=False)]
    return lengths[0] if lengths and isinstance(lengths[0], int) else None


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
