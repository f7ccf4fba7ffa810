"""The cost of computing a node of constants: whether it can run, its memory and its work."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tiered.graph.core.dtypes import DataType
from tiered.graph.opset.aspect import Aspect
from tiered.graph.queries.determinism import is_deterministic
from tiered.rewriter.skip import Skip

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

# A file of a few bytes must not exhaust the memory: what a node makes out of less, in bytes.
_LARGEST_GROWN: Final = 1 << 28

# The size of their result depends on the values: at most the operand's size times its rank.
_SELECTING: Final = frozenset({"Compress", "NonZero", "Unique"})

_FLOATS16: Final = frozenset({DataType.BFLOAT16, DataType.FLOAT16})
_FLOATS: Final = _FLOATS16 | {DataType.DOUBLE, DataType.FLOAT}
_EVALUATED: Final = _FLOATS | {
    DataType.BOOL, DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64,
    DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64,
}  # fmt: skip


class Sizes(NamedTuple):
    """The numbers of elements that a node reads and makes.

    Attributes:
        largest: the largest of them.
        result: that of the largest output.
        all: of the operands present, then of the outputs.
    """

    largest: int
    result: int
    all: list[int]


Rule = Callable[["Node", Sizes], int]
"""Returns the multiplications of a node."""

COSTS: Final[Aspect[Rule]] = Aspect("cost")
"""An operator without one takes a multiplication for each element of its largest tensor."""

cost_rule = COSTS.rule
"""Registers a function as the rule of what operators cost to compute."""

_FRAGILE: Final = frozenset(
    {
        "Attention", "AveragePool", "Col2Im", "Conv", "ConvInteger", "ConvTranspose", "DFT",
        "DeformConv", "GRU", "GridSample", "ImageDecoder", "LSTM", "LpPool", "MaxPool",
        "MaxRoiPool", "MaxUnpool", "QLinearConv", "RNN", "Resize", "RoiAlign",
        "STFT", "Upsample",
    }
)  # fmt: skip
"""Operators whose kernels trust attributes and operands: a group of 0 ends the program."""


# The overhead of one node, in multiplications.
_START: Final = 1 << 10


def waits_for_operands(node: Node) -> bool:
    """Return whether a node can be computed only after its operands are constants.

    onnxruntime computes 16-bit floats in 32 bits and may round late; between sessions it must
    round. A node with bodies is computed alone, in a process of its own.
    """
    return bool(node.bodies) or _divides(node) or not _FLOATS16.isdisjoint(_dtypes(node))


def _divides(node: Node) -> bool:
    return node.op_type in ("Div", "Mod") and _FLOATS.isdisjoint(_dtypes(node))


def _dtypes(node: Node) -> set[int | None]:
    values = (*node.inputs, *node.captured, *node.outputs)
    return {value.dtype for value in values if value is not None}


def needs_of(
    node: Node, sizes: Mapping[Value, int], most: int, *, ahead: bool = False
) -> dict[Value, int] | Skip | None:
    """Return the bytes of the operands and outputs of a node that `sizes` lacks.

    Args:
        node: its operands are constants, or are about to be folded.
        sizes: the bytes of values that are known already.
        most: how many bytes may be in memory for it.
        ahead: also return sizes for a node that must wait for its operands.

    Returns:
        A Skip with the reason if it cannot be computed; None if it must wait for its operands.
    """
    inner = (each.parameter_reason for body in node.bodies for each in body.walk())
    unknown = node.parameter_reason or next(filter(None, inner), None)
    if unknown is not None:
        return Skip("{}", unknown)
    if not is_deterministic(node):
        return Skip("it is random, or nothing is known of it")
    if node.is_pinned:
        return Skip("training info or an annotation names the result")
    inputs = node.reads
    outputs = [value for value in node.outputs if value is not None]
    if not _dtypes(node) <= _EVALUATED:
        return Skip("a dtype cannot be computed")
    is_ready = all(value.tensor is not None for value in inputs)
    if not is_ready and not ahead and waits_for_operands(node):
        return None
    if is_ready and _divides(node) and not divides_safely(node):
        return Skip("an integer division by zero, or one that overflows")
    needs = {value: sizes[value] if value in sizes else _bytes(value) for value in inputs}
    largest = max(_LARGEST_GROWN, *needs.values())
    for value in outputs:
        elements = _elements(node, value)
        if elements is None:
            return Skip("the size of the result is not known beforehand") if is_ready else None
        assert value.dtype is not None
        needs[value] = elements * DataType(value.dtype).numpy.itemsize
        if needs[value] > largest:
            return Skip("the result is too large to compute")
    if sum(held_bytes(value, size) for value, size in needs.items()) > most:
        return Skip("computing it takes too much memory")
    if node.bodies and work_of(node) is None:
        return Skip("how often it runs is not known beforehand") if is_ready else None
    return {value: size for value, size in needs.items() if value not in sizes}


def _elements(node: Node, value: Value) -> int | None:
    """Return an upper bound of the elements of an output; None if unknown."""
    if value.static_shape is not None:
        return math.prod(value.static_shape)
    if node.op_type in _SELECTING and (shape := node.given(0).static_shape) is not None:
        return max(1, len(shape)) * math.prod(shape)
    return None


def _bytes(value: Value) -> int:
    return 0 if value.tensor is None else value.tensor.nbytes


def held_bytes(value: Value, size: int) -> int:
    """Return how many bytes of a value are in memory: weights on disk are mapped."""
    return 0 if value.tensor is not None and value.tensor.is_on_disk else size


def divides_safely(node: Node) -> bool:
    """Return whether a Div or Mod of constant integers cannot trap (and end the program)."""
    dividend, divisor = node.const(0), node.const(1)
    if dividend is None or divisor is None or (divisor == 0).any():
        return False
    least = np.iinfo(dividend.dtype).min
    return not ((divisor == -1).any() and (dividend == least).any())


def is_fragile(node: Node) -> bool:
    """Return whether a node may crash or block its process, or exhaust the memory.

    Kernels of some standard operators do so on odd operands; any node in a body may.
    """
    return bool(node.bodies) or (node.op_type in _FRAGILE and not node.domain)


def work_of(node: Node) -> int | None:
    """Estimate the multiplications of a node; None if a shape or a trip count is unknown.

    Nodes in a body count once per iteration. Where the operator does not imply the order of
    magnitude, it is an upper bound.
    """
    if node.bodies:
        iterations = _max_iterations(node)
        inner = [work_of(each) or 0 for body in node.bodies for each in body.nodes]
        return None if iterations is None else iterations * sum(size + _START for size in inner)
    reads = [_size(value) for value in node.inputs if value is not None]
    makes = [_size(value) for value in node.outputs if value is not None]
    sizes = [*reads, *makes]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return None
    largest = max(known, default=0)
    result = max((size for size in makes if size is not None), default=0)
    rule = COSTS.of(node)
    return largest if rule is None else rule(node, Sizes(largest, result, known))


def _max_iterations(node: Node) -> int | None:
    """Return an upper bound of the trip count of a body; None if unknown."""
    if node.op_type == "If":
        return 1
    if node.op_type == "Loop":
        known = node.const(0)
        return None if known is None or known.size != 1 else max(int(known.item()), 1)
    if node.has_references:
        return None
    scanned = node.inputs[-node.attr("num_scan_inputs", 1) :] if node.op_type == "Scan" else ()
    axes = node.attr("scan_input_axes", None) or [0] * len(scanned)
    lengths = [value and value.dim(axis) for value, axis in zip(scanned, axes, strict=False)]
    return lengths[0] if lengths and isinstance(lengths[0], int) else None


def _size(value: Value) -> int | None:
    return None if value.static_shape is None else math.prod(value.static_shape)


@COSTS.rule("Gemm", "MatMul", "MatMulInteger", "QLinearMatMul")
def _product(node: Node, sizes: Sizes) -> int:
    return sizes.result * _contracted(node)


@COSTS.rule("Conv", "ConvInteger", "ConvTranspose", "QLinearConv")
def _convolution(node: Node, sizes: Sizes) -> int:
    weight = node.given(3 if node.op_type == "QLinearConv" else 1)
    return max(sizes.largest, sizes.largest * math.prod(weight.static_shape or ()))


@COSTS.rule("Einsum")
def _einsum(node: Node, sizes: Sizes) -> int:
    return max(sizes.largest, math.prod(size for size in sizes.all if size))


@COSTS.rule("Det")
def _determinant(node: Node, sizes: Sizes) -> int:
    return sizes.largest**2


def _contracted(node: Node) -> int:
    """Return the size of the axis over which a product of matrices sums."""
    shape = node.given(0).static_shape or ()
    return math.prod(shape[:1] if node.attr("transA", 0) else shape[-1:])
