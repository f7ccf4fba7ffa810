"""Steps that move elements, and what exporters compute of shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from onnx import numpy_helper

from tests.conformance.generator.scope import Known, Scope, Shape, numbers


def reshape(scope: Scope) -> None:
    x = scope.some()
    size = int(np.prod(x.shape))
    target, left = [], size
    for _ in range(scope.random.randint(0, 3)):
        divisors = [d for d in range(1, left + 1) if left % d == 0] if left else [0]
        target.append(scope.random.choice(divisors))
        left = left // target[-1] if target[-1] else 0
    shape = (*target, left) if size else x.shape
    written = [*shape]
    for axis, dim in enumerate(written):
        if axis < len(x.shape) and x.shape[axis] == dim and scope.random.random() < 0.3:
            written[axis] = 0
    free = [a for a, dim in enumerate(written) if dim > 0]
    if free and size and scope.random.random() < 0.5:
        written[scope.random.choice(free)] = -1
    scope.add("Reshape", [x, scope.ints(*written)], x.dtype, shape)


def dynamic_reshape(scope: Scope) -> None:
    """Write the chains that exporters write: Shape, Gather, Concat, Reshape."""
    x = scope.some(least=1)
    shape = scope.add("Shape", [x], "int64", (len(x.shape),))
    axis = scope.random.randrange(len(x.shape))
    at = scope.constant(np.array(axis, np.int64))
    dim = scope.add("Gather", [shape, at], "int64", ())
    row = unsqueezed(scope, dim, 0)
    rest = scope.ints(-1)
    parts = [row, rest] if x.shape[axis] else [row]
    if not x.shape[axis]:
        return
    target = scope.add("Concat", parts, "int64", (2,), axis=0)
    size = int(np.prod(x.shape))
    scope.add("Reshape", [x, target], x.dtype, (x.shape[axis], size // x.shape[axis]))


def shape_arithmetic(scope: Scope) -> None:
    x = scope.some(least=1)
    shape = scope.add("Shape", [x], "int64", (len(x.shape),))
    low = scope.random.randrange(len(x.shape))
    if scope.opset >= 10:
        part = scope.add(
            "Slice",
            [shape, scope.ints(low), scope.ints(2**62)],
            "int64",
            (len(x.shape) - low,),
        )
    else:
        part, low = shape, 0
    factor = scope.ints(scope.random.choice((1, 2)))
    if scope.random.random() < 0.3:
        narrow = [scope.add("Cast", [each], "int32", each.shape, to=6) for each in (part, factor)]
        product = scope.add("Mul", narrow, "int32", part.shape)
        scope.add("Cast", [product], "int64", part.shape, to=7)
    else:
        scope.add("Mul", [part, factor], "int64", part.shape)
    if scope.opset >= 9 and scope.random.random() < 0.5:
        fill = numpy_helper.from_array(numbers(scope.random, "float32", (1,)))
        scope.add("ConstantOfShape", [part], "float32", x.shape[low:], value=fill)


def write_axes(
    scope: Scope, op: str, x: Known, axes: Sequence[int], shape: Shape, since: int
) -> Known:
    if scope.opset < since:
        return scope.add(op, [x], x.dtype, shape, axes=[*axes])
    return scope.add(op, [x, scope.ints(*axes)], x.dtype, shape)


def unsqueezed(scope: Scope, x: Known, axis: int) -> Known:
    shape = list(x.shape)
    shape.insert(axis, 1)
    written = axis - len(shape) if scope.opset >= 11 and scope.random.random() < 0.5 else axis
    return write_axes(scope, "Unsqueeze", x, [written], tuple(shape), 13)


def squeezes(scope: Scope) -> None:
    x = scope.some()
    if len(x.shape) < 4:
        x = unsqueezed(scope, x, scope.random.randint(0, len(x.shape)))
    ones = [axis for axis, size in enumerate(x.shape) if size == 1]
    if ones and scope.random.random() < 0.6:
        axis = scope.random.choice(ones)
        shape = tuple(size for at, size in enumerate(x.shape) if at != axis)
        write_axes(scope, "Squeeze", x, [axis], shape, 13)


def transpose(scope: Scope) -> None:
    x = scope.some(least=1)
    perm = scope.random.sample(range(len(x.shape)), len(x.shape))
    given = {} if scope.random.random() < 0.2 else {"perm": perm}
    order = perm if given else [*range(len(x.shape))][::-1]
    scope.add("Transpose", [x], x.dtype, tuple(x.shape[axis] for axis in order), **given)


def slices(scope: Scope) -> None:
    x = scope.some(least=1)
    axis = scope.random.randrange(len(x.shape))
    start, end = scope.random.choice((0, 1, -2)), scope.random.choice((1, 2, 2**62, -1))
    step = scope.random.choice((1, 1, 2)) if scope.opset >= 10 else 1
    if scope.opset >= 10 and scope.random.random() < 0.3:
        start, end = scope.random.choice((-1, 1, 9, -9)), scope.random.choice((0, -2, -9, -(2**62)))
        step = scope.random.choice((-1, -2))
    size = _taken(x.shape[axis], start, end, step)
    shape = tuple(size if at == axis else dim for at, dim in enumerate(x.shape))
    if not size:
        return
    if scope.opset < 10:
        scope.add("Slice", [x], x.dtype, shape, starts=[start], ends=[end], axes=[axis])
    else:
        operands = [scope.ints(number) for number in (start, end, axis, step)]
        scope.add("Slice", [x, *operands], x.dtype, shape)


def _taken(size: int, start: int, end: int, step: int) -> int:
    """Return how many elements a Slice takes, as the standard has it, not Python."""
    first, last = (at + size if at < 0 else at for at in (start, end))
    if step > 0:
        return len(range(max(first, 0), min(last, size), step))
    return len(range(min(max(first, 0), size - 1), max(last, -1), step))


def gather(scope: Scope) -> None:
    x = scope.some(least=1)
    axis = scope.random.randrange(len(x.shape))
    size = x.shape[axis]
    if not size:
        return
    low = -size if scope.opset >= 11 else 0
    rows = tuple(scope.random.randint(1, 3) for _ in range(scope.random.randint(0, 1)))
    index = np.array(
        [scope.random.randint(low, size - 1) for _ in range(int(np.prod(rows)))], np.int64
    )
    if scope.random.random() < 0.2:
        rows, index = (size,), np.arange(size)
    shape = (*x.shape[:axis], *rows, *x.shape[axis + 1 :])
    scope.add("Gather", [x, scope.constant(index.reshape(rows))], x.dtype, shape, axis=axis)


def concat_split(scope: Scope) -> None:
    x = scope.some(scope.dtypes, least=1)
    axis = scope.random.randrange(len(x.shape))
    alike = [v for v in scope.seen if v.dtype == x.dtype and v.shape == x.shape]
    parts = [scope.random.choice(alike) for _ in range(scope.random.randint(1, 3))]
    total = x.shape[axis] * len(parts)
    shape = tuple(total if at == axis else dim for at, dim in enumerate(x.shape))
    written = axis - len(shape) if scope.opset >= 11 and scope.random.random() < 0.3 else axis
    if total > 12:
        return
    joined = scope.add("Concat", parts, x.dtype, shape, axis=written)
    if scope.random.random() < 0.5 and x.shape[axis] and scope.dtypes:
        outputs = [(x.dtype, x.shape)] * len(parts)
        sizes = [x.shape[axis]] * len(parts)
        if scope.opset < 13:
            made = scope.add_many("Split", [joined], outputs, axis=axis, split=sizes)
        else:
            made = scope.add_many("Split", [joined, scope.ints(*sizes)], outputs, axis=axis)
        if scope.random.random() < 0.5:
            scope.add("Concat", made, x.dtype, shape, axis=axis)


def expand(scope: Scope) -> None:
    x = scope.some(scope.dtypes)
    shape = tuple(scope.random.choice((size, 2)) if size == 1 else size for size in x.shape)
    if scope.random.random() < 0.3:
        shape = (1, *shape)
    written = tuple(
        1 if dim == size and scope.random.random() < 0.3 else dim
        for dim, size in zip(shape[::-1], (*x.shape[::-1], 1), strict=False)
    )[::-1]
    if scope.opset >= 8 and scope.random.random() < 0.7:
        scope.add("Expand", [x, scope.ints(*written)], x.dtype, shape)
    elif x.shape:
        repeats = [scope.random.choice((1, 1, 2)) for _ in x.shape]
        made = tuple(a * b for a, b in zip(x.shape, repeats, strict=True))
        scope.add("Tile", [x, scope.ints(*repeats)], x.dtype, made)


def pad(scope: Scope) -> None:
    x = scope.some(["float32"], least=1)
    pads = [scope.random.choice((0, 0, 1)) for _ in range(2 * len(x.shape))]
    rank = len(x.shape)
    shape = tuple(size + pads[a] + pads[a + rank] for a, size in enumerate(x.shape))
    if scope.opset < 11:
        scope.add("Pad", [x], x.dtype, shape, pads=pads)
    else:
        scope.add("Pad", [x, scope.ints(*pads)], x.dtype, shape)


def flatten(scope: Scope) -> None:
    x = scope.some(scope.dtypes if scope.opset >= 9 else ["float32"])
    low = -len(x.shape) if scope.opset >= 11 else 0
    axis = scope.random.randint(low, len(x.shape))
    at = axis % len(x.shape) if axis < 0 else axis
    shape = (math.prod(x.shape[:at]), math.prod(x.shape[at:]))
    scope.add("Flatten", [x], x.dtype, shape, axis=axis)
