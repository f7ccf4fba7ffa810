"""Steps that compute: one element from others, or by summing and choosing among them."""

from __future__ import annotations

import numpy as np

from tests.conformance.generator.scope import (
    DTYPES,
    FLOATS,
    Known,
    Scope,
    Shape,
    numbers,
    numpy_type,
    onnx_type,
)
from tests.conformance.generator.shapes import unsqueezed


def unary(scope: Scope) -> None:
    by_kind = {
        "f": ("Abs", "Neg", "Relu", "Sqrt", "Sigmoid", "Tanh", "Ceil", "Floor", "Exp", "Erf",
              "Sign", "LeakyRelu", "Identity", "Dropout", "Reciprocal"),
        "i": ("Abs", "Neg", "Sign", "Identity"),
        "u": ("Identity", "Sign"),
        "b": ("Not", "Identity"),
    }  # fmt: skip
    x = scope.some(DTYPES)
    op = scope.random.choice(by_kind[np.dtype(x.dtype).kind])
    if op in ("Sign", "Erf") and scope.opset < 9:
        op = "Identity"
    scope.add(op, [x], x.dtype, x.shape)
    if scope.random.random() < 0.3:  # twice: what is idempotent
        scope.add(op, [scope.seen[-1]], x.dtype, x.shape)


def other(scope: Scope, x: Known, dtype: str | None = None) -> tuple[Known, Shape]:
    """Return an operand that broadcasts with x, and the shape of the two together."""
    dtype = dtype or x.dtype
    fitting = []
    for value in scope.seen:
        if value.dtype == dtype:
            try:
                fitting.append((value, np.broadcast_shapes(x.shape, value.shape)))
            except ValueError:
                continue
    if fitting and scope.random.random() < 0.6:
        return scope.random.choice(fitting)
    shape = tuple(size if scope.random.random() < 0.6 else 1 for size in x.shape)
    shape = shape[scope.random.randint(0, len(shape)) :]
    if dtype != "object" and scope.random.random() < 0.4:
        kind = numpy_type(dtype)
        neutral = scope.random.choice((0, 1, -0.0, 2, 0.5))
        array = np.full(shape, neutral).astype(kind)
    else:
        array = numbers(scope.random, dtype, shape)
    return scope.constant(array), x.shape


def binary(scope: Scope) -> None:
    kinds = {
        "f": ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Sum"),
        "i": ("Add", "Sub", "Mul", "Max", "Min", "Div"),
        "u": ("Max", "Min"),
        "b": ("And", "Or", "Xor"),
    }
    x = scope.some([*FLOATS, "int64", "int32", "bool"])
    op = scope.random.choice(kinds[np.dtype(x.dtype).kind])
    if op in ("Max", "Min") and (scope.opset < 13 or x.dtype == "float16") and x.dtype != "float32":
        return
    if op == "Pow" and x.dtype == "float16":
        return
    if op in ("Max", "Min", "Sum") and scope.opset < 8:
        return
    second, shape = other(scope, x)
    if op == "Pow":
        exponent = scope.random.choice((1, 2, 3, 0.5))
        second, shape = scope.constant(np.array(exponent, x.dtype)), x.shape
    if op == "Div" and x.dtype.startswith("int"):
        divisor = scope.random.choice((1, -1, 2, 3))
        second, shape = scope.constant(np.array(divisor, x.dtype)), x.shape
        scope.add(op, [x, second], x.dtype, shape)
        return
    pair = [x, second]
    if scope.random.random() < 0.5 and op != "Pow":
        pair.reverse()
    scope.add(op, pair, x.dtype, tuple(shape))


def compare(scope: Scope) -> None:
    x = scope.some(["float32", "float64", "int64", "int32"])
    second, shape = other(scope, x)
    op = scope.random.choice(("Less", "Greater", "Equal"))
    if scope.opset < 11 and op == "Equal" and x.dtype.startswith("float"):
        op = "Less"
    if scope.opset < 9 and x.dtype.startswith("int"):
        op = "Equal"
    scope.add(op, [x, second], "bool", tuple(shape))


def where(scope: Scope) -> None:
    if scope.opset < 9:
        return
    kinds = ["float32", "int64", "float64"]
    x = scope.some(kinds if scope.dtypes is DTYPES else scope.dtypes)
    second, shape = other(scope, x)
    wide = Known("", x.dtype, tuple(shape))
    condition, shape = other(scope, wide, "bool")
    if scope.random.random() < 0.3:
        condition = scope.add("Not", [condition], "bool", condition.shape)
    scope.add("Where", [condition, x, second], x.dtype, tuple(shape))


def cast(scope: Scope) -> None:
    safe = ["float32", "float64", "int64", "int32", "bool", "float16"]
    x = scope.some(["float32", "float64", "int64", "int32", "bool", "uint8", "int8", "float16"])
    # What a float too large becomes as an integer is not defined.
    if x.dtype.startswith("float"):
        safe = ["float32", "float64", "float16", "bool"]
    to = scope.random.choice(safe)
    scope.add("Cast", [x], to, x.shape, to=onnx_type(to))
    if scope.random.random() < 0.4 and to != "bool":
        back = x.dtype if not to.startswith("float") or x.dtype.startswith("float") else "float32"
        scope.add("Cast", [scope.seen[-1]], back, x.shape, to=onnx_type(back))


def reduce(scope: Scope) -> None:
    x = scope.some(["float32", "int64", "int32", "float64"], least=1)
    op = scope.random.choice(("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceMean"))
    if x.dtype != "float32" and op not in ("ReduceSum", "ReduceProd"):
        op = "ReduceSum"
    if x.dtype == "float64" and op == "ReduceProd":
        op = "ReduceSum"
    axes = sorted(scope.random.sample(range(len(x.shape)), scope.random.randint(1, len(x.shape))))
    keeps = scope.random.choice((0, 1))
    shape = tuple(
        1 if at in axes else size for at, size in enumerate(x.shape) if keeps or at not in axes
    )
    if not all(x.shape):
        return
    if scope.opset < (13 if op == "ReduceSum" else 18):
        made = scope.add(op, [x], x.dtype, shape, axes=axes, keepdims=keeps)
    else:
        made = scope.add(op, [x, scope.ints(*axes)], x.dtype, shape, keepdims=keeps)
    if not keeps and len(axes) == 1 and scope.random.random() < 0.5:
        unsqueezed(scope, made, axes[0])


def matmul(scope: Scope) -> None:
    x = scope.some(["float32"], least=2)
    if not all(x.shape):
        return
    columns = scope.random.randint(1, 3)
    weight = scope.constant(numbers(scope.random, "float32", (x.shape[-1], columns), special=0))
    made = scope.add("MatMul", [x, weight], "float32", (*x.shape[:-1], columns))
    if scope.random.random() < 0.5:
        bias = scope.constant(numbers(scope.random, "float32", (columns,), special=0))
        scope.add("Add", [made, bias], "float32", made.shape)


def conv(scope: Scope) -> None:
    x = scope.some(["float32"], least=1)
    if not all(x.shape) or len(x.shape) > 3:
        return
    image = x
    while len(image.shape) < 4:
        image = unsqueezed(scope, image, 0)
    channels = image.shape[1]
    weight = numbers(scope.random, "float32", (2, channels, 1, 1), special=0)
    made = scope.add("Conv", [image, scope.constant(weight)], "float32",
                     (image.shape[0], 2, *image.shape[2:]))  # fmt: skip
    if scope.random.random() < 0.6:
        parts = [numbers(scope.random, "float32", (2,), special=0) for _ in range(3)]
        parts.append(np.abs(numbers(scope.random, "float32", (2,), special=0)) + np.float32(0.5))
        statistics = [scope.constant(part) for part in parts]
        scope.add("BatchNormalization", [made, *statistics], "float32", made.shape)


def softmax(scope: Scope) -> None:
    x = scope.some(["float32"], least=1)
    if all(x.shape):
        op = scope.random.choice(("Softmax", "LogSoftmax"))
        axis = scope.random.randrange(len(x.shape))
        scope.add(op, [x], "float32", x.shape, axis=axis)


def clip(scope: Scope) -> None:
    x = scope.some(["float32"])
    low, high = scope.random.choice(((0.0, 6.0), (-1.0, 1.0), (2.0, 1.0)))
    if scope.opset < 11:
        low, high = min(low, high), max(low, high)
        scope.add("Clip", [x], "float32", x.shape, min=low, max=high)
        return
    bounds = [scope.constant(np.array(bound, np.float32)) for bound in (low, high)]
    ends = [bound if scope.random.random() < 0.8 else None for bound in bounds]
    while ends and ends[-1] is None:
        ends.pop()
    scope.add("Clip", [x, *ends], "float32", x.shape)


def argmax(scope: Scope) -> None:
    x = scope.some(["float32"], least=1)
    axis = scope.random.randrange(len(x.shape))
    if x.shape[axis]:
        shape = tuple(size for at, size in enumerate(x.shape) if at != axis)
        scope.add("ArgMax", [x], "int64", shape, axis=axis, keepdims=0)


def quantize(scope: Scope) -> None:
    if scope.opset < 13:
        return
    x = scope.some(["float32"])
    scale = scope.constant(np.array(0.25, np.float32))
    zero = scope.constant(np.array(scope.random.choice((0, 3)), np.uint8))
    q = scope.add("QuantizeLinear", [x, scale, zero], "uint8", x.shape)
    d = scope.add("DequantizeLinear", [q, scale, zero], "float32", x.shape)
    if scope.random.random() < 0.5:
        scope.add("QuantizeLinear", [d, scale, zero], "uint8", x.shape)


def like(scope: Scope) -> None:
    if scope.opset < 15:
        return
    x, like = scope.some(["int64", "int32", "float32"]), scope.some(["float32", "float64"])
    scope.add("CastLike", [x, like], like.dtype, x.shape)


def variadic(scope: Scope) -> None:
    """Add an operator of any number of operands, some of them the same."""
    x = scope.some(["float32", "float64"])
    if scope.opset < 8 or (scope.opset < 13 and x.dtype != "float32"):
        return
    alike = [v for v in scope.seen if (v.dtype, v.shape) == (x.dtype, x.shape)]
    parts = [scope.random.choice(alike) for _ in range(scope.random.randint(1, 4))]
    op = scope.random.choice(("Max", "Min", "Sum", "Mean"))
    scope.add(op, parts, x.dtype, x.shape)


def one_hot(scope: Scope) -> None:
    """Add a OneHot, its indices cast before it as exporters write it."""
    if scope.opset < 11:
        return
    x = scope.some(["int64", "int32"], least=1)
    if scope.random.random() < 0.5 and x.dtype == "int32":
        x = scope.add("Cast", [x], "int64", x.shape, to=onnx_type("int64"))
    if x.dtype != "int64":
        return
    size = scope.random.randint(1, 4)
    depth = scope.constant(np.array(size, np.int64))
    ends = scope.constant(np.array([0, 1], np.float32))
    scope.add("OneHot", [x, depth, ends], "float32", (*x.shape, size), axis=-1)
