"""Operators that do the same at each index of axes of named sizes: shapes with names, no terms.

A rule returns the shape of each result, where axes of named sizes are those names, or says that the
operator does something else with one. Small integers are followed, as shapes are made of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import onnx

from tiered.certify.domains.terms import Array
from tiered.certify.evaluation.values import Unproved
from tiered.certify.rules.bit_arithmetic import ARITHMETIC
from tiered.certify.rules.bit_elementwise import PLAIN
from tiered.certify.rules.bit_extrema import EXTREMA
from tiered.certify.rules.casts import CASTS
from tiered.certify.rules.kernel_windows import window_of
from tiered.certify.rules.logic import LOGIC
from tiered.certify.rules.moves import range_of
from tiered.graph.shape_inference.symbolic_dims import Poly, Size, add, multiply, subtract

MOST_INTEGERS: Final = 64


class Dependent(Exception):
    """What depends on sizes in another way; the message says what."""


@dataclass(frozen=True)
class Marks:
    """A tensor.

    Attributes:
        shape: numbers, and polynomials for named sizes.
        integers: its elements as numbers and polynomials, if it is small and they are known.
        is_sized: whether its elements depend on sizes.
    """

    shape: tuple[Size, ...]
    integers: Array | None = None
    is_sized: bool = False


class NodeStep:
    """A node and its operands."""

    def __init__(self, node: onnx.NodeProto, inputs: Sequence[Marks | None], opset: int) -> None:
        self.node, self.inputs, self.opset = node, inputs, opset
        self._attributes = {each.name: each for each in node.attribute}

    @property
    def op(self) -> str:
        return str(self.node.op_type)

    def get(self, name: str, default: Any = None) -> Any:
        found = self._attributes.get(name)
        value = default if found is None else onnx.helper.get_attribute_value(found)
        return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value

    def has(self, at: int) -> bool:
        return at < len(self.inputs) and self.inputs[at] is not None

    def operand(self, at: int = 0) -> Marks:
        found = self.inputs[at] if at < len(self.inputs) else None
        if found is None:
            raise Dependent(f"{self.node.op_type} lacks an operand")
        return found

    def data(self, at: int = 0) -> Marks:
        """Return an operand whose elements do not depend on sizes."""
        found = self.operand(at)
        if found.is_sized:
            raise Dependent(f"{self.node.op_type} computes with a size")
        return found

    def numbers(self, name: str, at: int) -> list[Size] | None:
        """Return integers that are an attribute or an operand; None without."""
        if name in self._attributes:
            return list(self.get(name))
        if not self.has(at):
            return None
        held = self.operand(at).integers
        if held is None:
            raise Dependent(f"{name} of {self.node.op_type} is not known")
        return list(held.ravel())

    def fixed(self, name: str, at: int) -> list[int] | None:
        """Return integers that depend on no size."""
        found = self.numbers(name, at)
        if found is None:
            return None
        if any(isinstance(each, Poly) for each in found):
            raise Dependent(f"{name} of {self.node.op_type} depends on a size")
        return [int(str(each)) for each in found]

    def axis(self, rank: int, default: int | None = None) -> int:
        axis = self.get("axis", default)
        if axis is None or not -rank <= axis < rank:
            raise Dependent(f"{self.node.op_type} without an axis")
        return int(axis) % rank

    def free(self, x: Marks, axes: Sequence[int]) -> None:
        """Check that axes have no named sizes."""
        if any(isinstance(x.shape[axis], Poly) for axis in axes):
            raise Dependent(f"{self.node.op_type} over an axis of a named size")


Rule = Callable[[NodeStep], Sequence[Marks]]


def broadcast(shapes: Sequence[tuple[Size, ...]]) -> tuple[Size, ...]:
    """Return the shape of shapes that fit whatever the sizes are."""
    rank = max(map(len, shapes))
    made: list[Size] = []
    for dims in zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True):
        others = {dim for dim in dims if dim != 1}
        if len(others) > 1:
            raise Dependent("axes that have one size only at some sizes")
        made.append(others.pop() if others else 1)
    return tuple(made)


def elementwise(step: NodeStep) -> list[Marks]:
    made = broadcast([step.data(at).shape for at, x in enumerate(step.inputs) if x is not None])
    return [Marks(made)]


_ON_SIZES: Final = {"Add": add, "Mul": multiply, "Sub": subtract}


def arithmetic(step: NodeStep) -> list[Marks]:
    """Sums and products, also of sizes."""
    held = [step.operand(at) for at, x in enumerate(step.inputs) if x is not None]
    if not any(x.is_sized for x in held):
        return elementwise(step)
    one, other = (x.integers for x in held)
    if one is None or other is None:
        raise Dependent(f"{step.node.op_type} computes with a size")
    one, other = np.broadcast_arrays(one, other)
    compute = _ON_SIZES[step.node.op_type]
    pairs = zip(one.ravel(), other.ravel(), strict=True)
    return [of_integers(sizes_of([compute(*pair) for pair in pairs], one.shape))]


def sizes_of(sizes: Sequence[Size], shape: Sequence[int]) -> Array:
    """Return sizes as an array of objects: a polynomial is a tuple, and one element of it."""
    made = np.empty(len(sizes), object)
    for at, size in enumerate(sizes):
        made[at] = size
    return made.reshape(tuple(shape))


def of_integers(integers: Array) -> Marks:
    """Return numbers and polynomials as a tensor."""
    is_sized = any(isinstance(each, Poly) for each in integers.ravel())
    return Marks(tuple(integers.shape), integers, is_sized)


def same(step: NodeStep) -> list[Marks]:
    """Identity, Cast and the like: integers stay."""
    x = step.operand()
    to = step.get("to", onnx.TensorProto.INT64)
    if x.is_sized and to not in (onnx.TensorProto.INT64, onnx.TensorProto.INT32):
        raise Dependent("Cast of a size")
    return [x]


def _moved(x: Marks, shape: Sequence[Size], move: Callable[[Array], Array]) -> list[Marks]:
    """Return a tensor of other elements' places; of small integers these as well."""
    if x.integers is not None:
        made = move(x.integers)
        return [of_integers(sizes_of([*made.ravel()], made.shape))]
    return [Marks(tuple(shape))]


def transpose(step: NodeStep) -> list[Marks]:
    x = step.operand()
    perm = list(step.get("perm", range(len(x.shape))[::-1]))
    return _moved(x, [x.shape[at] for at in perm], lambda a: a.transpose(perm))


def unsqueeze(step: NodeStep) -> list[Marks]:
    x, axes = step.operand(), step.fixed("axes", 1) or []
    rank = len(x.shape) + len(axes)
    new = {axis % rank for axis in axes}
    rest = iter(x.shape)
    shape = [1 if at in new else next(rest) for at in range(rank)]
    return _moved(x, shape, lambda a: a.reshape([int(str(size)) for size in shape]))


def squeeze(step: NodeStep) -> list[Marks]:
    x, axes = step.operand(), step.fixed("axes", 1)
    if axes is None:
        step.free(x, range(len(x.shape)))
        axes = [at for at, size in enumerate(x.shape) if size == 1]
    gone = {axis % len(x.shape) for axis in axes}
    step.free(x, sorted(gone))
    shape = [size for at, size in enumerate(x.shape) if at not in gone]
    return _moved(x, shape, lambda a: a.reshape([int(str(size)) for size in shape]))


def reshape(step: NodeStep) -> list[Marks]:
    """Axes of named sizes stay; what is between them is the same number of elements."""
    x, wanted = step.operand(), step.numbers("shape", 1) or []
    if not step.get("allowzero", 0):
        wanted = [x.shape[at] if each == 0 and at < len(x.shape) else each
                  for at, each in enumerate(wanted)]  # fmt: skip
    if -1 in wanted:
        wanted[wanted.index(-1)] = _left(x.shape, [each for each in wanted if each != -1])
    if _segments(x.shape) != _segments(wanted):
        raise Dependent("Reshape of an axis of a named size")
    sizes = [each if isinstance(each, Poly) else int(str(each)) for each in wanted]
    return _moved(x, sizes, lambda a: a.reshape([int(str(size)) for size in sizes]))


def _left(shape: Sequence[Size], others: Sequence[Size]) -> Size:
    """Return the size that a -1 is for."""
    named = [size for size in shape if isinstance(size, Poly)]
    for each in others:
        if isinstance(each, Poly):
            if each not in named:
                raise Dependent("Reshape to another size")
            named.remove(each)
    whole, part = (
        math.prod(int(str(size)) for size in sizes if not isinstance(size, Poly))
        for sizes in (shape, others)
    )
    if not part:
        raise Dependent("Reshape of an axis of a named size")
    return named[0] if named else whole // part


def _segments(shape: Sequence[Size]) -> list[object]:
    """Return the named sizes, and the numbers of elements between them."""
    made: list[object] = [1]
    for size in shape:
        if isinstance(size, Poly):
            made += [size, 1]
        else:
            made[-1] = int(str(made[-1])) * int(str(size))
    return made


def flatten(step: NodeStep) -> list[Marks]:
    x = step.data()
    axis = step.get("axis", 1)
    halves = []
    for part in (x.shape[:axis], x.shape[axis:]):
        named = [size for size in part if isinstance(size, Poly)]
        fixed = math.prod(int(str(size)) for size in part if not isinstance(size, Poly))
        if len(named) > 1 or (named and fixed != 1):
            raise Dependent("Flatten of an axis of a named size")
        halves.append(named[0] if named else fixed)
    return [Marks(tuple(halves))]


def expand(step: NodeStep) -> list[Marks]:
    x, wanted = step.data(), step.numbers("shape", 1) or []
    return [Marks(broadcast([x.shape, tuple(wanted)]))]


def concat(step: NodeStep) -> list[Marks]:
    parts = [step.operand(at) for at in range(len(step.inputs))]
    axis = step.axis(len(parts[0].shape))
    for part in parts:
        step.free(part, [axis])
    rest = {(*part.shape[:axis], *part.shape[axis + 1 :]) for part in parts}
    if len(rest) > 1:
        raise Dependent("Concat of parts that fit only at some sizes")
    total = sum(int(str(part.shape[axis])) for part in parts)
    shape = (*parts[0].shape[:axis], total, *parts[0].shape[axis + 1 :])
    held = [part.integers for part in parts if part.integers is not None]
    if len(held) == len(parts):
        return [of_integers(np.concatenate(held, axis))]
    if any(part.is_sized for part in parts):
        raise Dependent("Concat of sizes and data")
    return [Marks(shape)]


def split(step: NodeStep) -> list[Marks]:
    x = step.data()
    axis = step.axis(len(x.shape), 0)
    step.free(x, [axis])
    size, count = int(str(x.shape[axis])), len(step.node.output)
    part = -(-size // count)
    sizes = step.fixed("split", 1) or [max(0, min(part, size - part * at)) for at in range(count)]
    return [Marks((*x.shape[:axis], each, *x.shape[axis + 1 :])) for each in sizes]


def slice_(step: NodeStep) -> list[Marks]:
    x = step.operand()
    starts, ends = step.fixed("starts", 1), step.fixed("ends", 2)
    if starts is None or ends is None:
        raise Dependent("Slice without bounds")
    axes = step.fixed("axes", 3) or list(range(len(starts)))
    steps = step.fixed("steps", 4) or [1] * len(starts)
    step.free(x, axes)
    places = [slice(None)] * len(x.shape)
    shape = list(x.shape)
    for axis, start, end, by in zip(axes, starts, ends, steps, strict=True):
        size = int(str(x.shape[axis]))
        places[axis] = range_of(start, end, by, size)
        shape[axis] = len(range(*places[axis].indices(size)))
    return _moved(x, shape, lambda a: a[tuple(places)])


def gather(step: NodeStep) -> list[Marks]:
    x, indices = step.operand(), step.data(1)
    axis = step.axis(len(x.shape), 0)
    step.free(x, [axis])
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    if x.is_sized:
        if indices.integers is None or x.integers is None:
            raise Dependent("Gather of sizes")
        at = indices.integers.astype(np.int64).ravel()
        taken = np.take(x.integers, at, axis).ravel()
        return [of_integers(sizes_of([*taken], [int(str(size)) for size in shape]))]
    return [Marks(shape)]


def shape_of(step: NodeStep) -> list[Marks]:
    dims = step.operand().shape
    start, end = step.get("start", 0), step.get("end", None)
    held = dims[start:end]
    return [of_integers(sizes_of(held, [len(held)]))]


def constant(step: NodeStep) -> list[Marks]:
    tensor = step.get("value")
    if tensor is None:
        raise Dependent("a Constant without a tensor")
    return [marks_of(onnx.numpy_helper.to_array(tensor))]


def marks_of(numbers: Array) -> Marks:
    """Return numbers as a tensor."""
    is_small = numbers.dtype.kind in "iu" and numbers.size <= MOST_INTEGERS
    return Marks(tuple(numbers.shape), numbers.astype(object) if is_small else None)


def reduce(step: NodeStep) -> list[Marks]:
    x, rank = step.data(), len(step.data().shape)
    axes = step.fixed("axes", 1)
    if not axes:
        axes = [] if step.get("noop_with_empty_axes", 0) else list(range(rank))
    gone = {axis % rank for axis in axes}
    step.free(x, sorted(gone))
    if step.get("keepdims", True):
        return [Marks(tuple(1 if at in gone else size for at, size in enumerate(x.shape)))]
    return [Marks(tuple(size for at, size in enumerate(x.shape) if at not in gone))]


def rows(step: NodeStep) -> list[Marks]:
    """Softmax and normalizations: an axis, or all from it on."""
    x = step.data()
    is_last = step.node.op_type in ("Softmax", "LogSoftmax") and step.opset >= 13
    axis = step.axis(len(x.shape), -1 if is_last or "Norm" in step.node.op_type else 1)
    step.free(x, [axis] if is_last else range(axis, len(x.shape)))
    for at, each in enumerate(step.inputs[1:], 1):
        if each is not None:
            step.free(step.data(at), range(len(each.shape)))
    return [x]


def matmul(step: NodeStep) -> list[Marks]:
    x, y = step.data(0), step.data(1)
    if len(x.shape) < 2 or len(y.shape) < 2 or x.shape[-1] != y.shape[-2]:
        raise Dependent("MatMul of vectors")
    step.free(x, [len(x.shape) - 1])
    return [Marks((*broadcast([x.shape[:-2], y.shape[:-2]]), x.shape[-2], y.shape[-1]))]


def gemm(step: NodeStep) -> list[Marks]:
    x, y = step.data(0), step.data(1)
    one, other = (
        shape[::-1] if step.get(name, 0) else shape
        for shape, name in ((x.shape, "transA"), (y.shape, "transB"))
    )
    if isinstance(one[1], Poly) or one[1] != other[0]:
        raise Dependent("Gemm over an axis of a named size")
    made = (one[0], other[1])
    return [Marks(broadcast([made, step.data(2).shape]) if step.has(2) else made)]


def windows(step: NodeStep) -> list[Marks]:
    """Convolutions and pools: each element of the first axis by itself."""
    x = step.data()
    for at, each in enumerate(step.inputs):
        if each is not None:
            step.free(step.data(at), range(0 if at else 1, len(each.shape)))
    if any(step.node.output[1:]):
        raise Dependent(f"{step.op} with indices")
    is_conv = step.op == "Conv"
    inner = [int(str(size)) for size in x.shape[1:]]
    outer = step.data(1).shape if is_conv else x.shape[1:]
    kernel = [int(str(size)) for size in outer[2:]] if is_conv else step.get("kernel_shape")
    try:
        counts = window_of(step, (1, *inner), kernel).counts
    except Unproved as error:
        raise Dependent(str(error)) from error
    return [Marks((x.shape[0], outer[0], *counts))]


def whole_windows(step: NodeStep) -> list[Marks]:
    """Global pools."""
    x = step.data()
    step.free(x, range(2, len(x.shape)))
    return [Marks((*x.shape[:2], *[1] * (len(x.shape) - 2)))]


def batch_normalization(step: NodeStep) -> list[Marks]:
    x = step.data()
    if step.get("training_mode", 0) or any(step.node.output[1:]):
        raise Dependent("BatchNormalization in training")
    step.free(x, [1])
    for at in range(1, 5):
        step.free(step.data(at), range(len(step.data(at).shape)))
    return [x]


def pad(step: NodeStep) -> list[Marks]:
    """Pad of axes of fixed sizes."""
    x = step.data()
    widths, rank = step.fixed("pads", 1), len(x.shape)
    if widths is None or step.has(3) or len(widths) != 2 * rank:
        raise Dependent("Pad of some axes")
    pairs = list(zip(widths[:rank], widths[rank:], strict=True))
    padded = [at for at, pair in enumerate(pairs) if any(pair)]
    step.free(x, padded)
    shape = [int(str(size)) + sum(pairs[at]) if at in padded else size
             for at, size in enumerate(x.shape)]  # fmt: skip
    return [Marks(tuple(shape))]


_DATA: Final = {**ARITHMETIC, **EXTREMA, **LOGIC, **PLAIN}
RULES: Final[dict[str, Rule]] = {
    **{name: elementwise for name in _DATA if name != "OneHot"},
    **dict.fromkeys(("Add", "Mul", "Sub"), arithmetic),
    **dict.fromkeys((*CASTS, "Dropout", "Identity"), same),
    **dict.fromkeys(("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"), reduce),
    **dict.fromkeys(("LayerNormalization", "LogSoftmax", "RMSNormalization", "Softmax"), rows),
    **dict.fromkeys(("AveragePool", "Conv", "MaxPool"), windows),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), whole_windows),
    "BatchNormalization": batch_normalization,
    "Concat": concat,
    "Constant": constant,
    "Expand": expand,
    "Flatten": flatten,
    "Gather": gather,
    "Gemm": gemm,
    "MatMul": matmul,
    "Pad": pad,
    "Reshape": reshape,
    "Shape": shape_of,
    "Slice": slice_,
    "Split": split,
    "Squeeze": squeeze,
    "Transpose": transpose,
    "Unsqueeze": unsqueeze,
}
"""The rules; Cast of a size is that size, of data an elementwise operator."""
