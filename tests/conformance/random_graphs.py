"""Random valid models: typed, shape-correct, of many dtypes, with bodies and local functions.

Everything is drawn from one `random.Random`, so that a number names a model, and hypothesis can
shrink what it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

OPSETS = (8, 11, 13, 17, 18, 21)
SIZES = {"n": 3, "m": 2}
"""What the symbolic dims are when the model runs."""

_FLOATS = ("float32", "float32", "float32", "float64", "float16")
_INTS = ("int64", "int64", "int32", "uint8", "int8")
_DTYPES = (*_FLOATS, *_INTS, "bool")
_RARE = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "uint16", "uint32", "uint64", "int16")
_SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 3.4e38, 0.5, -2.5)

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Known:
    """A value as the generator knows it: its sizes are those at run time."""

    name: str
    dtype: str
    shape: Shape
    const: bool = False


@dataclass
class Scope:
    """One graph that is being built, and what it sees."""

    random: Random
    opset: int
    names: list[int]
    seen: list[Known] = field(default_factory=list)
    nodes: list[NodeProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    depth: int = 0
    functions: list[onnx.FunctionProto] = field(default_factory=list)

    def fresh(self, stem: str = "v") -> str:
        self.names[0] += 1
        return f"{stem}{self.names[0]}"

    def add(
        self, op: str, inputs: Sequence[Known | None], dtype: str, shape: Shape, **attributes: Any
    ) -> Known:
        """Add a node of one output."""
        return self.add_many(op, inputs, [(dtype, shape)], **attributes)[0]

    def add_many(
        self,
        op: str,
        inputs: Sequence[Known | None],
        outputs: Sequence[tuple[str, Shape]],
        domain: str = "",
        **attributes: Any,
    ) -> list[Known]:
        made = [Known(self.fresh(), dtype, tuple(shape)) for dtype, shape in outputs]
        names = ["" if value is None else value.name for value in inputs]
        node = helper.make_node(
            op, names, [value.name for value in made], domain=domain, **attributes
        )
        node.name = f"n{made[0].name}" if self.random.random() < 0.9 else ""
        self.nodes.append(node)
        self.seen += made
        return made

    def constant(self, array: Array) -> Known:
        """Add a constant in one of the forms that there are."""
        known = Known(self.fresh("c"), array.dtype.name, array.shape, const=True)
        tensor = numpy_helper.from_array(array, known.name)
        if self.random.random() < 0.3:
            self.nodes.append(helper.make_node("Constant", [], [known.name], value=tensor))
        else:
            self.initializers.append(tensor)
        self.seen.append(known)
        return known

    def ints(self, *numbers: int) -> Known:
        return self.constant(np.array(numbers, np.int64))

    def some(self, dtypes: Sequence[str] | None = None, least: int = 0) -> Known:
        """Return a value of one of the dtypes and of so many dims; a new one where none fits."""
        fitting = [
            value
            for value in self.seen
            if (dtypes is None or value.dtype in dtypes) and len(value.shape) >= least
        ]
        if fitting and self.random.random() < 0.95:
            # The later ones more often, so that graphs grow deep.
            place = int(len(fitting) * self.random.random() ** 0.5)
            return fitting[min(place, len(fitting) - 1)]
        dtype = self.random.choice(dtypes or _DTYPES)
        shape = tuple(self.random.choice((1, 2, 3)) for _ in range(max(least, 2)))
        return self.constant(numbers(self.random, dtype, shape))


def numbers(random: Random, dtype: str, shape: Shape, special: float = 0.15) -> Array:
    """Return an array of small numbers, some of them special."""
    size = int(np.prod(shape))
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if dtype == "bool":
        drawn: list[Any] = [random.random() < 0.5 for _ in range(size)]
    elif kind.kind in "iu":
        low = 0 if kind.kind == "u" else -4
        drawn = [random.randint(low, 4) for _ in range(size)]
    else:
        drawn = [
            random.choice(_SPECIAL) if random.random() < special else random.randint(-8, 8) / 4
            for _ in range(size)
        ]
    with np.errstate(all="ignore"):
        return np.array(drawn, np.float64 if kind.kind not in "iub" else None).astype(kind).reshape(
            shape
        )


def random_model(random: Random, nodes: int = 12) -> ModelProto:
    """Return a model of about so many nodes."""
    opset = random.choice(OPSETS)
    scope = Scope(random, opset, [0])
    inputs, infos = [], []
    for index in range(random.randint(1, 3)):
        dtype = random.choice(_DTYPES if random.random() < 0.9 else _RARE)
        dims: list[int | str] = [
            random.choice((1, 2, 3, "n", "m")) for _ in range(random.randint(0, 3))
        ]
        sizes = tuple(SIZES[dim] if isinstance(dim, str) else dim for dim in dims)
        inputs.append(Known(f"x{index}", dtype, sizes))
        infos.append(helper.make_tensor_value_info(f"x{index}", onnx_type(dtype), dims))
    scope.seen += inputs
    if random.random() < 0.3 and opset >= 13:
        scope.functions.append(_function(random, opset))
    overridable = None
    if random.random() < 0.1:
        overridable = scope.constant(numbers(random, "float32", (2,)))
        if any(tensor.name == overridable.name for tensor in scope.initializers):
            infos.append(
                helper.make_tensor_value_info(overridable.name, TensorProto.FLOAT, [2])
            )
    while len(scope.nodes) < nodes:
        step(scope)
    made = [value for value in scope.seen if not value.const]
    count = min(len(made), random.randint(1, 4))
    outputs = [made[-1], *random.sample(made[:-1], count - 1)]
    if random.random() < 0.2:
        outputs.append(random.choice(scope.seen))
    outputs = list(dict.fromkeys(outputs))
    declared = [_declared(random, value, infos) for value in outputs]
    graph = helper.make_graph(scope.nodes, "g", infos, declared, scope.initializers)
    imports = [helper.make_opsetid("", opset)]
    if scope.functions:
        imports.append(helper.make_opsetid("local", 1))
    return helper.make_model(
        graph, opset_imports=imports, functions=scope.functions, ir_version=10 if opset > 20 else 8
    )


def random_feeds(random: Random, model: ModelProto) -> dict[str, Array]:
    """Return inputs for a model of `random_model`."""
    defaults = {tensor.name for tensor in model.graph.initializer}
    feeds = {}
    for info in model.graph.input:
        if info.name in defaults:
            continue
        shape = tuple(
            SIZES[dim.dim_param] if dim.dim_param else dim.dim_value
            for dim in info.type.tensor_type.shape.dim
        )
        dtype = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type).name
        feeds[info.name] = numbers(random, dtype, shape)
    return feeds


def onnx_type(dtype: str) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(getattr(ml_dtypes, dtype, dtype))))


def _declared(
    random: Random, value: Known, infos: Sequence[onnx.ValueInfoProto]
) -> onnx.ValueInfoProto:
    for info in infos:
        if info.name == value.name:
            return info  # an input that is an output too
    dims: list[Any] = [*value.shape]
    if random.random() < 0.5:
        dims = [None] * len(dims)
    return helper.make_tensor_value_info(value.name, onnx_type(value.dtype), dims)


# --- one step -------------------------------------------------------------------------------------

Step = Callable[[Scope], object]


def step(scope: Scope) -> None:
    """Add something; now and then what is there already, once more."""
    random = scope.random
    if scope.nodes and random.random() < 0.08:
        _again(scope)
        return
    choices = STEPS if scope.depth < 2 else STEPS[: -len(_NESTED)]
    random.choice(choices)(scope)


def _again(scope: Scope) -> None:
    node = scope.random.choice(scope.nodes)
    types = {value.name: value for value in scope.seen}
    outputs = [types.get(name) for name in node.output]
    if node.op_type == "Constant" or any(value is None for value in outputs):
        return
    copy = NodeProto()
    copy.CopyFrom(node)
    made = [Known(scope.fresh(), v.dtype, v.shape) for v in outputs if v is not None]
    del copy.output[:]
    copy.output.extend(value.name for value in made)
    copy.name = f"n{made[0].name}"
    scope.nodes.append(copy)
    scope.seen += made


def _unary(scope: Scope) -> None:
    by_kind = {
        "f": ("Abs", "Neg", "Relu", "Sqrt", "Sigmoid", "Tanh", "Ceil", "Floor", "Exp", "Erf",
              "Sign", "LeakyRelu", "Identity", "Dropout", "Reciprocal"),
        "i": ("Abs", "Neg", "Sign", "Identity"),
        "u": ("Identity", "Sign"),
        "b": ("Not", "Identity"),
    }  # fmt: skip
    x = scope.some(_DTYPES)
    op = scope.random.choice(by_kind[np.dtype(x.dtype).kind])
    if op in ("Sign", "Erf") and scope.opset < 9:
        op = "Identity"
    scope.add(op, [x], x.dtype, x.shape)
    if scope.random.random() < 0.3:  # twice: what is idempotent
        scope.add(op, [scope.seen[-1]], x.dtype, x.shape)


def _other(scope: Scope, x: Known, dtype: str | None = None) -> tuple[Known, Shape]:
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
    if scope.random.random() < 0.4:
        kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
        neutral = scope.random.choice((0, 1, -0.0, 2, 0.5))
        array = np.full(shape, neutral).astype(kind)
    else:
        array = numbers(scope.random, dtype, shape)
    return scope.constant(array), x.shape


def _binary(scope: Scope) -> None:
    kinds = {
        "f": ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Sum"),
        "i": ("Add", "Sub", "Mul", "Max", "Min"),
        "u": ("Max", "Min"),
        "b": ("And", "Or", "Xor"),
    }
    x = scope.some([*_FLOATS, "int64", "int32", "bool"])
    op = scope.random.choice(kinds[np.dtype(x.dtype).kind])
    if op in ("Max", "Min") and (scope.opset < 13 or x.dtype == "float16") and x.dtype != "float32":
        return
    if op == "Pow" and x.dtype == "float16":
        return
    other, shape = _other(scope, x)
    if op == "Pow":
        exponent = scope.random.choice((1, 2, 3, 0.5))
        other, shape = scope.constant(np.array(exponent, x.dtype)), x.shape
    pair = [x, other]
    if scope.random.random() < 0.5 and op != "Pow":
        pair.reverse()
    scope.add(op, pair, x.dtype, tuple(shape))


def _compare(scope: Scope) -> None:
    x = scope.some(["float32", "float64", "int64", "int32"])
    other, shape = _other(scope, x)
    op = scope.random.choice(("Less", "Greater", "Equal"))
    if scope.opset < 11 and op == "Equal" and x.dtype.startswith("float"):
        op = "Less"
    if scope.opset < 9 and x.dtype.startswith("int"):
        op = "Equal"
    scope.add(op, [x, other], "bool", tuple(shape))


def _where(scope: Scope) -> None:
    if scope.opset < 9:
        return
    x = scope.some(["float32", "int64", "float64"])
    other, shape = _other(scope, x)
    wide = Known("", x.dtype, tuple(shape))
    condition, shape = _other(scope, wide, "bool")
    scope.add("Where", [condition, x, other], x.dtype, tuple(shape))


def _cast(scope: Scope) -> None:
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


def _reshape(scope: Scope) -> None:
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


def _dynamic_reshape(scope: Scope) -> None:
    """Write the chains that exporters write: Shape, Gather, Concat, Reshape."""
    x = scope.some(least=1)
    shape = scope.add("Shape", [x], "int64", (len(x.shape),))
    axis = scope.random.randrange(len(x.shape))
    at = scope.constant(np.array(axis, np.int64))
    dim = scope.add("Gather", [shape, at], "int64", ())
    row = _unsqueezed(scope, dim, 0)
    rest = scope.ints(-1)
    parts = [row, rest] if x.shape[axis] else [row]
    if not x.shape[axis]:
        return
    target = scope.add("Concat", parts, "int64", (2,), axis=0)
    size = int(np.prod(x.shape))
    scope.add("Reshape", [x, target], x.dtype, (x.shape[axis], size // x.shape[axis]))


def _shape_arithmetic(scope: Scope) -> None:
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
    scope.add("Mul", [part, scope.ints(scope.random.choice((1, 2)))], "int64", part.shape)
    if scope.opset >= 9 and scope.random.random() < 0.5:
        fill = numpy_helper.from_array(numbers(scope.random, "float32", (1,)))
        scope.add("ConstantOfShape", [part], "float32", x.shape[low:], value=fill)


def _axes(scope: Scope, op: str, x: Known, axes: Sequence[int], shape: Shape, since: int) -> Known:
    if scope.opset < since:
        return scope.add(op, [x], x.dtype, shape, axes=[*axes])
    return scope.add(op, [x, scope.ints(*axes)], x.dtype, shape)


def _unsqueezed(scope: Scope, x: Known, axis: int) -> Known:
    shape = list(x.shape)
    shape.insert(axis, 1)
    written = axis - len(shape) if scope.opset >= 11 and scope.random.random() < 0.5 else axis
    return _axes(scope, "Unsqueeze", x, [written], tuple(shape), 13)


def _squeezes(scope: Scope) -> None:
    x = scope.some()
    if len(x.shape) < 4:
        x = _unsqueezed(scope, x, scope.random.randint(0, len(x.shape)))
    ones = [axis for axis, size in enumerate(x.shape) if size == 1]
    if ones and scope.random.random() < 0.6:
        axis = scope.random.choice(ones)
        shape = tuple(size for at, size in enumerate(x.shape) if at != axis)
        _axes(scope, "Squeeze", x, [axis], shape, 13)


def _transpose(scope: Scope) -> None:
    x = scope.some(least=1)
    perm = scope.random.sample(range(len(x.shape)), len(x.shape))
    given = {} if scope.random.random() < 0.2 else {"perm": perm}
    order = perm if given else [*range(len(x.shape))][::-1]
    scope.add("Transpose", [x], x.dtype, tuple(x.shape[axis] for axis in order), **given)


def _slice(scope: Scope) -> None:
    x = scope.some(least=1)
    axis = scope.random.randrange(len(x.shape))
    start, end = scope.random.choice((0, 1, -2)), scope.random.choice((1, 2, 2**62, -1))
    step = scope.random.choice((1, 1, 2)) if scope.opset >= 10 else 1
    size = len(range(x.shape[axis])[start:end:step])
    shape = tuple(size if at == axis else dim for at, dim in enumerate(x.shape))
    if not size:
        return
    if scope.opset < 10:
        scope.add("Slice", [x], x.dtype, shape, starts=[start], ends=[end], axes=[axis])
    else:
        operands = [scope.ints(number) for number in (start, end, axis, step)]
        scope.add("Slice", [x, *operands], x.dtype, shape)


def _gather(scope: Scope) -> None:
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


def _concat_split(scope: Scope) -> None:
    x = scope.some([*_FLOATS, "int64", "int32", "bool", "uint8", "int8"], least=1)
    axis = scope.random.randrange(len(x.shape))
    alike = [v for v in scope.seen if v.dtype == x.dtype and v.shape == x.shape]
    parts = [scope.random.choice(alike) for _ in range(scope.random.randint(1, 3))]
    total = x.shape[axis] * len(parts)
    shape = tuple(total if at == axis else dim for at, dim in enumerate(x.shape))
    written = axis - len(shape) if scope.opset >= 11 and scope.random.random() < 0.3 else axis
    if total > 12:
        return
    joined = scope.add("Concat", parts, x.dtype, shape, axis=written)
    if scope.random.random() < 0.5 and x.shape[axis] and x.dtype in ("float32", "int64"):
        outputs = [(x.dtype, x.shape)] * len(parts)
        sizes = [x.shape[axis]] * len(parts)
        if scope.opset < 13:
            made = scope.add_many("Split", [joined], outputs, axis=axis, split=sizes)
        else:
            made = scope.add_many("Split", [joined, scope.ints(*sizes)], outputs, axis=axis)
        if scope.random.random() < 0.5:
            scope.add("Concat", made, x.dtype, shape, axis=axis)


def _expand(scope: Scope) -> None:
    x = scope.some(["float32", "int64", "bool", "float64"])
    shape = tuple(scope.random.choice((size, 2)) if size == 1 else size for size in x.shape)
    if scope.random.random() < 0.3:
        shape = (1, *shape)
    written = tuple(1 if dim == size and scope.random.random() < 0.3 else dim
                    for dim, size in zip(shape[::-1], (*x.shape[::-1], 1), strict=False))[::-1]
    if scope.random.random() < 0.7:
        scope.add("Expand", [x, scope.ints(*written)], x.dtype, shape)
    elif x.shape:
        repeats = [scope.random.choice((1, 1, 2)) for _ in x.shape]
        made = tuple(a * b for a, b in zip(x.shape, repeats, strict=True))
        scope.add("Tile", [x, scope.ints(*repeats)], x.dtype, made)


def _pad(scope: Scope) -> None:
    x = scope.some(["float32"], least=1)
    pads = [scope.random.choice((0, 0, 1)) for _ in range(2 * len(x.shape))]
    rank = len(x.shape)
    shape = tuple(size + pads[a] + pads[a + rank] for a, size in enumerate(x.shape))
    if scope.opset < 11:
        scope.add("Pad", [x], x.dtype, shape, pads=pads)
    else:
        scope.add("Pad", [x, scope.ints(*pads)], x.dtype, shape)


def _reduce(scope: Scope) -> None:
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
        _unsqueezed(scope, made, axes[0])


def _matmul(scope: Scope) -> None:
    x = scope.some(["float32"], least=2)
    if not all(x.shape):
        return
    columns = scope.random.randint(1, 3)
    weight = scope.constant(numbers(scope.random, "float32", (x.shape[-1], columns), special=0))
    made = scope.add("MatMul", [x, weight], "float32", (*x.shape[:-1], columns))
    if scope.random.random() < 0.5:
        bias = scope.constant(numbers(scope.random, "float32", (columns,), special=0))
        scope.add("Add", [made, bias], "float32", made.shape)


def _conv(scope: Scope) -> None:
    x = scope.some(["float32"], least=1)
    if not all(x.shape) or len(x.shape) > 3:
        return
    image = x
    while len(image.shape) < 4:
        image = _unsqueezed(scope, image, 0)
    channels = image.shape[1]
    weight = numbers(scope.random, "float32", (2, channels, 1, 1), special=0)
    made = scope.add("Conv", [image, scope.constant(weight)], "float32",
                     (image.shape[0], 2, *image.shape[2:]))  # fmt: skip
    if scope.random.random() < 0.6:
        parts = [numbers(scope.random, "float32", (2,), special=0) for _ in range(3)]
        parts.append(np.abs(numbers(scope.random, "float32", (2,), special=0)) + np.float32(0.5))
        statistics = [scope.constant(part) for part in parts]
        scope.add("BatchNormalization", [made, *statistics], "float32", made.shape)


def _softmax(scope: Scope) -> None:
    x = scope.some(["float32"], least=1)
    if all(x.shape):
        op = scope.random.choice(("Softmax", "LogSoftmax"))
        axis = scope.random.randrange(len(x.shape))
        scope.add(op, [x], "float32", x.shape, axis=axis)


def _clip(scope: Scope) -> None:
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


def _argmax(scope: Scope) -> None:
    x = scope.some(["float32"], least=1)
    axis = scope.random.randrange(len(x.shape))
    if x.shape[axis]:
        shape = tuple(size for at, size in enumerate(x.shape) if at != axis)
        scope.add("ArgMax", [x], "int64", shape, axis=axis, keepdims=0)


def _quantize(scope: Scope) -> None:
    if scope.opset < 13:
        return
    x = scope.some(["float32"])
    scale = scope.constant(np.array(0.25, np.float32))
    zero = scope.constant(np.array(scope.random.choice((0, 3)), np.uint8))
    q = scope.add("QuantizeLinear", [x, scale, zero], "uint8", x.shape)
    d = scope.add("DequantizeLinear", [q, scale, zero], "float32", x.shape)
    if scope.random.random() < 0.5:
        scope.add("QuantizeLinear", [d, scale, zero], "uint8", x.shape)


def _like(scope: Scope) -> None:
    if scope.opset < 15:
        return
    x, like = scope.some(["int64", "int32", "float32"]), scope.some(["float32", "float64"])
    scope.add("CastLike", [x, like], like.dtype, x.shape)


# --- bodies and functions -------------------------------------------------------------------------


def _body(scope: Scope, name: str, inputs: Sequence[Known], results: Sequence[Known]) -> GraphProto:
    """Return a graph that gives values of the dtypes and shapes of `results`."""
    inner = Scope(scope.random, scope.opset, scope.names, [*scope.seen, *inputs],
                  depth=scope.depth + 1, functions=scope.functions)  # fmt: skip
    for _ in range(scope.random.randint(1, 3)):
        step(inner)
    outputs = []
    for result in results:
        fitting = [v for v in inner.seen[len(scope.seen) :]
                   if (v.dtype, v.shape) == (result.dtype, result.shape)]  # fmt: skip
        outer = [v for v in inner.seen if (v.dtype, v.shape) == (result.dtype, result.shape)]
        source = scope.random.choice(fitting or outer)
        outputs.append(inner.add("Identity", [source], result.dtype, result.shape))
    takes, gives = (
        [helper.make_tensor_value_info(v.name, onnx_type(v.dtype), [*v.shape]) for v in values]
        for values in (inputs, outputs)
    )
    return helper.make_graph(inner.nodes, name, takes, gives, inner.initializers)


def _if(scope: Scope) -> None:
    x = scope.some(["float32", "int64"])
    condition = Known("", "bool", ())
    found = [value for value in scope.seen if (value.dtype, value.shape) == ("bool", ())]
    if found and scope.random.random() < 0.5:
        condition = scope.random.choice(found)
    elif scope.random.random() < 0.5:
        condition = scope.constant(np.array(scope.random.random() < 0.5))
    else:
        number = scope.some(["float32"])
        if not all(number.shape):
            return
        total = scope.add("ReduceMax", [number], "float32", (), keepdims=0)
        zero = scope.constant(np.array(0, np.float32))
        condition = scope.add("Less", [total, zero], "bool", ())
    branches = {f"{side}_branch": _body(scope, side, [], [x]) for side in ("then", "else")}
    scope.add("If", [condition], x.dtype, x.shape, **branches)


def _loop(scope: Scope) -> None:
    x = scope.some(["float32", "int64"])
    if scope.opset < 11:
        return
    trips = scope.constant(np.array(scope.random.randint(0, 3), np.int64))
    number = Known(scope.fresh("i"), "int64", ())
    goes_on = Known(scope.fresh("k"), "bool", ())
    state = Known(scope.fresh("s"), x.dtype, x.shape)
    body = _body(scope, "body", [number, goes_on, state], [Known("", "bool", ()), state])
    # A body that goes on as long as it is told to, so that it ends.
    source = next(node for node in body.node if node.output[0] == body.output[0].name)
    source.input[0] = goes_on.name
    condition = scope.constant(np.array(True)) if scope.random.random() < 0.7 else None
    scope.add("Loop", [trips, condition, x], x.dtype, x.shape, body=body)


def _function(random: Random, opset: int) -> onnx.FunctionProto:
    """Return a function of float matrices of any shape, with an attribute that it passes on."""
    ops = [random.choice(("Relu", "Neg", "Abs", "Sigmoid", "Identity")) for _ in range(3)]
    nodes, last = [], "a"
    for index, op in enumerate(ops):
        nodes.append(helper.make_node(op, [last], [f"t{index}"]))
        last = f"t{index}"
    leaky = helper.make_node("LeakyRelu", [last], ["b"])
    attribute = leaky.attribute.add()
    attribute.name, attribute.ref_attr_name = "alpha", "slope"
    attribute.type = onnx.AttributeProto.FLOAT
    nodes.append(leaky)
    imports = [helper.make_opsetid("", opset)]
    return helper.make_function("local", "F", ["a"], ["b"], nodes, imports, attributes=["slope"])


def _call(scope: Scope) -> None:
    if scope.functions:
        x = scope.some(["float32"])
        slope = {"slope": 0.25} if scope.random.random() < 0.7 else {}
        scope.add_many("F", [x], [(x.dtype, x.shape)], domain="local", **slope)


_NESTED: tuple[Step, ...] = (_if, _loop)
STEPS: tuple[Step, ...] = (
    _unary, _unary, _binary, _binary, _binary, _compare, _where, _cast, _cast, _reshape, _reshape,
    _dynamic_reshape, _shape_arithmetic, _squeezes, _squeezes, _transpose, _transpose, _slice,
    _slice, _gather, _concat_split, _concat_split, _expand, _pad, _reduce, _matmul, _conv,
    _softmax, _clip, _clip, _argmax, _quantize, _like, _call, *_NESTED,
)  # fmt: skip
