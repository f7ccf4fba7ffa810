"""Every rule: the operator in another order of its axes gives the same bits."""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from tiered import Model, Node, Skip, Value
from tiered.analysis.layout.axis_propagation import AxisPropagation, Permuted
from tiered.analysis.layout.permutation import inverse
from tiered.analysis.layout.rules import propagation_of
from tiered.graph import DataType
from tiered.graph.queries.op_traits import BROADCASTING, UNARY
from tiered.runtime import Session
from tiered.testing import parse

Draw = Callable[[st.SearchStrategy[object]], object]


# --- the operator in another order ----------------------------------------------------------------


def orders_of(propagation: AxisPropagation) -> list[tuple[int, ...]]:
    """Return the orders that a passage allows, without the one that the operator has."""
    found = itertools.islice(itertools.permutations(propagation.labels), 5040)
    ports = [labels for labels in (*propagation.inputs, *propagation.outputs) if labels]
    return [
        order
        for order in found
        if propagation.allows(order)
        and any(tuple(label for label in order if label in port) != port for port in ports)
    ]


def write_in_order(node: Node, propagation: AxisPropagation, order: tuple[int, ...]) -> None:
    """Write a node in another order, with Transposes before and after it."""
    graph = node.owner

    def fetch(op: Permuted, slot: int) -> Value:
        value = node.inputs[slot]
        assert value is not None
        perm = op.perm(propagation.own(slot))
        if value.const is not None:
            return graph.constant(value.const.transpose(perm), value.name)
        return graph.op.Transpose(value, perm=perm)

    op = Permuted(node, propagation, order, fetch)
    since = graph.model.peek_serial()
    made = propagation.write(op)
    back = [
        value if labels is None else graph.op.Transpose(value, perm=inverse(op.perm(labels)))
        for value, labels in zip(made, propagation.outputs, strict=True)
    ]
    graph.replace(node, back, since=since)


# Their statistics are no whole numbers: in another order they are rounded differently.
ROUNDED = {"GroupNormalization", "InstanceNormalization", "LayerNormalization"}


def check(text: str, data: st.DataObject, opset: int = 21, *, is_rounded: bool = False) -> None:
    """Assert that the one node of a model without constants gives the same in another order."""
    # In the text, [] is an unknown rank.
    proto = parse(text.replace("[]", ""), opset=opset)
    model = Model.from_proto(proto)
    (node,) = (node for node in model.main.nodes if node.op_type != "Constant")
    propagation = propagation_of(node)
    assert not isinstance(propagation, Skip), str(propagation)
    orders = orders_of(propagation)
    assume(orders)
    write_in_order(node, propagation, data.draw(st.sampled_from(orders), label="order"))
    result = model.to_proto()
    onnx.checker.check_model(result, full_check=True)
    feeds = _feeds(proto, data.draw(st.integers(0, 9), label="seed"))
    expected, actual = (Session(each).run(feeds) for each in (proto, result))
    for name, array in expected.items():
        assert array.dtype == actual[name].dtype
        if is_rounded or node.op_type in ROUNDED:
            assert np.allclose(array, actual[name], rtol=1e-4, atol=1e-5, equal_nan=True), name
        else:
            assert np.array_equal(array, actual[name], equal_nan=array.dtype.kind == "f"), name


def _feeds(proto: onnx.ModelProto, seed: int) -> dict[str, np.ndarray]:
    """Return whole numbers, whose sums and products are exact in any order."""
    random = np.random.default_rng(seed)
    feeds = {}
    for info in proto.graph.input:
        shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        dtype = DataType(info.type.tensor_type.elem_type).numpy
        low, high = (0, 2) if info.name.startswith(("i", "cond", "q")) else (-3, 4)
        feeds[info.name] = random.integers(low, high, shape).astype(dtype)
    return feeds


def _dims(dims: Sequence[int]) -> str:
    return ",".join(map(str, dims))


shapes = st.lists(st.integers(1, 3), min_size=2, max_size=4)
property_test = settings(max_examples=6, suppress_health_check=list(HealthCheck))


# --- operators without parameters of their own ----------------------------------------------------

ATTRIBUTES = {"BitShift": '<direction="LEFT">', "Cast": "<to=11>", "CastLike": ""}
DTYPES = {
    **dict.fromkeys(("And", "Or", "Xor", "Not"), "bool"),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"), "int32"),
    "BitShift": "uint32",
    "Mod": "int32",
}
RESULTS = {
    **dict.fromkeys(
        ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "IsInf", "IsNaN"), "bool"
    ),
    "Cast": "double",
}
OPSETS = {"Swish": 24}


@pytest.mark.parametrize("name", UNARY)
@property_test
@given(dims=shapes, data=st.data())
def test_one_tensor_element_by_element(name: str, dims: list[int], data: st.DataObject) -> None:
    # Kernels compute what is left over after the last full vector in another way.
    dtype, shape = DTYPES.get(name, "float"), _dims([*dims, 16])
    other = ", float like" if name == "CastLike" else ""
    use = ", like" if name == "CastLike" else ""
    check(
        f"({dtype}[{shape}] x{other}) => ({RESULTS.get(name, dtype)}[{shape}] y) "
        f"{{ y = {name}{ATTRIBUTES.get(name, '')}(x{use}) }}",
        data,
        opset=OPSETS.get(name, 21),
    )


@pytest.mark.parametrize("name", [name for name in BROADCASTING if name != "Where"])
@property_test
@given(dims=shapes, data=st.data())
def test_two_tensors_that_broadcast(name: str, dims: list[int], data: st.DataObject) -> None:
    dtype = DTYPES.get(name, "float")
    rank = data.draw(st.integers(0, len(dims)))
    other = [data.draw(st.sampled_from([1, dim])) for dim in dims[len(dims) - rank :]]
    operands = [f"{dtype}[{_dims(dims)}] x", f"{dtype}[{_dims(other)}] z"]
    names, swap = ["x", "z"], name != "PRelu" and data.draw(st.booleans())
    if swap:
        names.reverse()
    if name == "Mod":
        check_constant_divisor(dims, other, data)
        return
    check(
        f"({', '.join(operands)}) => ({RESULTS.get(name, dtype)}[{_dims(dims)}] y) "
        f"{{ y = {name}{ATTRIBUTES.get(name, '')}({', '.join(names)}) }}",
        data,
    )


def check_constant_divisor(dims: list[int], other: list[int], data: st.DataObject) -> None:
    count = int(np.prod(other))
    numbers = ",".join(str(at % 3 + 1) for at in range(count))
    check(
        f"(int32[{_dims(dims)}] x) => (int32[{_dims(dims)}] y) "
        f"<int32[{_dims(other)}] z = {{{numbers}}}> {{ y = Mod(x, z) }}",
        data,
    )


@property_test
@given(dims=shapes, data=st.data())
def test_three_tensors_that_broadcast(dims: list[int], data: st.DataObject) -> None:
    ranks = [data.draw(st.integers(0, len(dims))) for _ in range(2)]
    cond, other = (_dims(dims[len(dims) - rank :]) for rank in ranks)
    check(
        f"(bool[{cond}] cond, float[{_dims(dims)}] x, float[{other}] z) => (float[{_dims(dims)}] y)"
        " { y = Where(cond, x, z) }",
        data,
    )


# --- operators with parameters --------------------------------------------------------------------


class Drawn:
    """What the texts below fill in: a shape, an axis of it, sizes."""

    def __init__(self, data: st.DataObject, least: int = 2, most: int = 4) -> None:
        self.data = data
        self.dims: list[int] = data.draw(
            st.lists(st.integers(1, 4), min_size=least, max_size=most), label="dims"
        )
        self.rank = len(self.dims)
        self.axis = data.draw(st.integers(-self.rank, self.rank - 1), label="axis")
        self.front = self.axis % self.rank
        self.shape = _dims(self.dims)

    def integer(self, low: int, high: int) -> int:
        return self.data.draw(st.integers(low, high))

    def of(self, choices: Sequence[str]) -> str:
        return self.data.draw(st.sampled_from(choices))

    def axes(self, least: int = 1) -> list[int]:
        """Return some axes, some of them counted from the end."""
        chosen = self.data.draw(
            st.lists(st.integers(0, self.rank - 1), min_size=least, max_size=self.rank, unique=True)
        )
        return [at - self.rank if self.data.draw(st.booleans()) else at for at in chosen]

    def resized(self, size: int) -> str:
        """Return the shape with another size of the axis."""
        return _dims([*self.dims[: self.front], size, *self.dims[self.front + 1 :]])

    def without(self, axes: Sequence[int], *, keepdims: bool = False) -> str:
        gone = {at % self.rank for at in axes}
        kept = [1 if at in gone else dim for at, dim in enumerate(self.dims)]
        return _dims([dim for at, dim in enumerate(kept) if keepdims or at not in gone])


def _list(name: str, numbers: Sequence[int]) -> str:
    return f"int64[{len(numbers)}] {name} = {{{_dims(numbers)}}}"


def _concat(d: Drawn) -> str:
    other = d.integer(1, 3)
    whole = d.resized(d.dims[d.front] + other)
    return (
        f"(float[{d.shape}] x, float[{d.resized(other)}] z) => (float[{whole}] y) "
        f"{{ y = Concat<axis={d.axis}>(x, z) }}"
    )


def _split(d: Drawn) -> str:
    d.dims[d.front] = 4
    return (
        f"(float[{_dims(d.dims)}] x) => (float[{d.resized(3)}] y, float[{d.resized(1)}] z) "
        f"<{_list('s', [3, 1])}> {{ y, z = Split<axis={d.axis}>(x, s) }}"
    )


def _along(name: str) -> Callable[[Drawn], str]:
    return lambda d: (
        f"(float[{d.shape}] x) => (float[{d.shape}] y) {{ y = {name}<axis={d.axis}>(x) }}"
    )


def _top_k(d: Drawn) -> str:
    out = d.resized(1)
    return (
        f"(float[{d.shape}] x) => (float[{out}] y, int64[{out}] i) <{_list('k', [1])}> "
        f"{{ y, i = TopK<axis={d.axis}>(x, k) }}"
    )


def _cum_sum(d: Drawn) -> str:
    flags = d.of(["exclusive=1", "reverse=1", "exclusive=0"])
    return (
        f"(float[{d.shape}] x) => (float[{d.shape}] y) <int64 a = {{{d.axis}}}> "
        f"{{ y = CumSum<{flags}>(x, a) }}"
    )


def _gather_elements(d: Drawn) -> str:
    d.dims[d.front] = 2
    shape = _dims(d.dims)
    return (
        f"(float[{shape}] x, int64[{shape}] i) => (float[{shape}] y) "
        f"{{ y = GatherElements<axis={d.axis}>(x, i) }}"
    )


def _scatter_elements(d: Drawn) -> str:
    d.dims[d.front] = 2
    shape, reduction = _dims(d.dims), d.of(["add", "none", "max"])
    return (
        f"(float[{shape}] x, int64[{shape}] i, float[{shape}] u) => (float[{shape}] y) "
        f'{{ y = ScatterElements<axis={d.axis}, reduction="{reduction}">(x, i, u) }}'
    )


def _reduce(name: str) -> Callable[[Drawn], str]:
    def text(d: Drawn) -> str:
        keepdims, axes = d.integer(0, 1), d.axes()
        return (
            f"(float[{d.shape}] x) => (float[{d.without(axes, keepdims=bool(keepdims))}] y) "
            f"<{_list('a', axes)}> {{ y = {name}<keepdims={keepdims}>(x, a) }}"
        )

    return text


def _arg(name: str) -> Callable[[Drawn], str]:
    def text(d: Drawn) -> str:
        keepdims = d.integer(0, 1)
        return (
            f"(float[{d.shape}] x) => (int64[{d.without([d.axis], keepdims=bool(keepdims))}] y) "
            f"{{ y = {name}<axis={d.axis}, keepdims={keepdims}, "
            f"select_last_index={d.integer(0, 1)}>(x) }}"
        )

    return text


def _squeeze(d: Drawn) -> str:
    axes = d.axes()
    for axis in axes:
        d.dims[axis] = 1
    return (
        f"(float[{_dims(d.dims)}] x) => (float[{d.without(axes)}] y) <{_list('a', axes)}> "
        "{ y = Squeeze(x, a) }"
    )


def _unsqueeze(d: Drawn) -> str:
    axes = d.axes()
    for axis in axes:
        d.dims[axis] = 1
    return (
        f"(float[{d.without(axes)}] x) => (float[{_dims(d.dims)}] y) <{_list('a', axes)}> "
        "{ y = Unsqueeze(x, a) }"
    )


def _one_hot(d: Drawn) -> str:
    axis = d.integer(-d.rank - 1, d.rank)
    at = axis % (d.rank + 1)
    out = _dims([*d.dims[:at], 2, *d.dims[at:]])
    return (
        f"(int64[{d.shape}] i, float[2] v) => (float[{out}] y) <int64 n = {{2}}> "
        f"{{ y = OneHot<axis={axis}>(i, n, v) }}"
    )


def _reverse_sequence(d: Drawn) -> str:
    batch = d.integer(0, 1)
    lengths = _list("n", [1] * d.dims[batch])
    return (
        f"(float[{d.shape}] x) => (float[{d.shape}] y) <{lengths}> "
        f"{{ y = ReverseSequence<batch_axis={batch}, time_axis={1 - batch}>(x, n) }}"
    )


def _trilu(d: Drawn) -> str:
    diagonal = d.of(["", ", k"])
    return (
        f"(float[{d.shape}] x) => (float[{d.shape}] y) <int64 k = {{{d.integer(-2, 2)}}}> "
        f"{{ y = Trilu<upper={d.integer(0, 1)}>(x{diagonal}) }}"
    )


def _pad(d: Drawn) -> str:
    pads = [d.integer(0, 2) for _ in range(2 * d.rank)]
    out = _dims([dim + pads[at] + pads[at + d.rank] for at, dim in enumerate(d.dims)])
    mode = d.of(["constant", "edge"])
    return (
        f"(float[{d.shape}] x) => (float[{out}] y) <{_list('p', pads)}> "
        f'{{ y = Pad<mode="{mode}">(x, p) }}'
    )


def _pad_axes(d: Drawn) -> str:
    d.dims[d.front] += 1
    return (
        f"(float[{_dims(d.dims)}] x) => (float[{d.resized(d.dims[d.front] + 3)}] y) "
        f"<{_list('p', [1, 2])}, {_list('a', [d.axis])}> {{ y = Pad(x, p, , a) }}"
    )


def _pad_dynamic(d: Drawn) -> str:
    out = ",".join(f"d{at}" for at in range(d.rank))
    return f"(float[{d.shape}] x, int64[{2 * d.rank}] i) => (float[{out}] y) {{ y = Pad(x, i) }}"


def _slice(d: Drawn) -> str:
    axes = d.axes()
    out = _dims([1 if at in {a % d.rank for a in axes} else n for at, n in enumerate(d.dims)])
    ones = [1] * len(axes)
    return (
        f"(float[{d.shape}] x) => (float[{out}] y) "
        f"<{_list('s', [0] * len(axes))}, {_list('e', ones)}, {_list('a', axes)}> "
        "{ y = Slice(x, s, e, a) }"
    )


def _slice_first(d: Drawn) -> str:
    out = _dims([1, *d.dims[1:]])
    return (
        f"(float[{d.shape}] x) => (float[{out}] y) <{_list('s', [0])}, {_list('e', [1])}> "
        "{ y = Slice(x, s, e) }"
    )


def _tile(d: Drawn) -> str:
    repeats = [d.integer(1, 2) for _ in d.dims]
    out = _dims([dim * n for dim, n in zip(d.dims, repeats, strict=True)])
    return f"(float[{d.shape}] x) => (float[{out}] y) <{_list('r', repeats)}> {{ y = Tile(x, r) }}"


def _tile_dynamic(d: Drawn) -> str:
    out = ",".join(f"d{at}" for at in range(d.rank))
    return f"(float[{d.shape}] x, int64[{d.rank}] i) => (float[{out}] y) {{ y = Tile(x, i) }}"


def _expand(d: Drawn) -> str:
    start = d.integer(0, d.rank)
    own = [d.of([str(dim), "1"]) for dim in d.dims[start:]]
    shape = d.dims[d.integer(0, start) :]
    out = [*d.dims[d.rank - max(len(own), len(shape)) :]]
    return (
        f"(float[{','.join(own)}] x) => (float[{_dims(out)}] y) <{_list('s', shape)}> "
        "{ y = Expand(x, s) }"
    )


def _resize(d: Drawn) -> str:
    sizes = [dim * d.integer(1, 3) for dim in d.dims]
    return (
        f"(float[{d.shape}] x) => (float[{_dims(sizes)}] y) <{_list('s', sizes)}> "
        '{ y = Resize<mode="nearest">(x, , , s) }'
    )


def _resize_axes(d: Drawn) -> str:
    return (
        f"(float[{d.shape}] x) => (float[{d.resized(d.dims[d.front] * 2)}] y) "
        f'<float[1] s = {{2.0}}> {{ y = Resize<mode="nearest", axes=[{d.front}]>(x, , s) }}'
    )


def _regrouped(d: Drawn) -> str:
    at = d.integer(0, d.rank - 2)
    merged = [*d.dims[:at], d.dims[at] * d.dims[at + 1], *d.dims[at + 2 :]]
    before, after = (d.dims, merged) if d.integer(0, 1) else (merged, d.dims)
    after = [*after, *[1] * d.integer(0, 1)]
    return (
        f"(float[{_dims(before)}] x) => (float[{_dims(after)}] y) <{_list('s', after)}> "
        "{ y = Reshape(x, s) }"
    )


def _flatten(d: Drawn) -> str:
    axis = d.integer(0, d.rank)
    out = [int(np.prod(d.dims[:axis])), int(np.prod(d.dims[axis:]))]
    return f"(float[{d.shape}] x) => (float[{_dims(out)}] y) {{ y = Flatten<axis={axis}>(x) }}"


def _shape(d: Drawn) -> str:
    start, end = sorted((d.integer(0, d.rank), d.integer(0, d.rank)))
    return (
        f"(float[{d.shape}] x) => (int64[{end - start}] y) "
        f"{{ y = Shape<start={start}, end={end}>(x) }}"
    )


def _gather(d: Drawn) -> str:
    d.dims[d.front] = 2
    indices = [d.integer(1, 2) for _ in range(d.integer(0, 2))]
    out = _dims([*d.dims[: d.front], *indices, *d.dims[d.front + 1 :]])
    return (
        f"(float[{_dims(d.dims)}] x, int64[{_dims(indices)}] i) => (float[{out}] y) "
        f"{{ y = Gather<axis={d.axis}>(x, i) }}"
    )


def _gather_nd(d: Drawn) -> str:
    batch = d.integer(0, 1)
    depth = d.integer(1, d.rank - batch)
    for at in range(batch, batch + depth):
        d.dims[at] = 2
    indices = [*d.dims[:batch], *[d.integer(1, 3) for _ in range(d.integer(1, 2))]]
    out = _dims([*indices, *d.dims[batch + depth :]])
    return (
        f"(float[{_dims(d.dims)}] x, int64[{_dims([*indices, depth])}] i) => (float[{out}] y) "
        f"{{ y = GatherND<batch_dims={batch}>(x, i) }}"
    )


def _scatter_nd(d: Drawn) -> str:
    depth = d.integer(1, d.rank - 1)
    for at in range(depth):
        d.dims[at] = 2
    updates = _dims([3, *d.dims[depth:]])
    return (
        f"(float[{_dims(d.dims)}] x, int64[3,{depth}] i, float[{updates}] u) "
        f"=> (float[{_dims(d.dims)}] y) {{ y = ScatterND(x, i, u) }}"
    )


def _compress(d: Drawn) -> str:
    out = ",".join("n" if at == d.front else str(dim) for at, dim in enumerate(d.dims))
    return (
        f"(float[{d.shape}] x, bool[{d.dims[d.front]}] cond) => (float[{out}] y) "
        f"{{ y = Compress<axis={d.axis}>(x, cond) }}"
    )


def _matmul(d: Drawn) -> str:
    rank = d.integer(2, d.rank + 1)
    rows, inner, columns = (d.integer(1, 3) for _ in range(3))
    batch = d.dims[: rank - 2]
    other = [d.integer(0, 1) * (dim - 1) + 1 for dim in batch[d.integer(0, len(batch)) :]]
    return (
        f"(float[{_dims([*batch, rows, inner])}] a, float[{_dims([*other, inner, columns])}] b) "
        f"=> (float[{_dims([*batch, rows, columns])}] y) {{ y = MatMul(a, b) }}"
    )


def _matmul_vector(d: Drawn) -> str:
    out = _dims(d.dims[:-1])
    return f"(float[{d.shape}] x, float[{d.dims[-1]}] v) => (float[{out}] y) {{ y = MatMul(x, v) }}"


def _matmul_vector_first(d: Drawn) -> str:
    out = _dims([*d.dims[:-2], d.dims[-1]])
    return f"(float[{d.shape}] x, float[{d.dims[-2]}] v) => (float[{out}] y) {{ y = MatMul(v, x) }}"


def _matmul_weights(d: Drawn) -> str:
    columns = d.integer(1, 3)
    numbers = ",".join(str(at % 5 - 2) for at in range(d.dims[-1] * columns))
    return (
        f"(float[{d.shape}] x) => (float[{_dims([*d.dims[:-1], columns])}] y) "
        f"<float[{d.dims[-1]},{columns}] w = {{{numbers}}}> {{ y = MatMul(x, w) }}"
    )


def _matmul_weights_first(d: Drawn) -> str:
    rows = d.integer(1, 3)
    numbers = ",".join(str(at % 5 - 2) for at in range(d.dims[-2] * rows))
    return (
        f"(float[{d.shape}] x) => (float[{_dims([*d.dims[:-2], rows, d.dims[-1]])}] y) "
        f"<float[{rows},{d.dims[-2]}] w = {{{numbers}}}> {{ y = MatMul(w, x) }}"
    )


def _gemm(d: Drawn) -> str:
    rows, inner, columns = (d.integer(1, 3) for _ in range(3))
    flags = [d.integer(0, 1) for _ in range(2)]
    a = [inner, rows] if flags[0] else [rows, inner]
    b = [columns, inner] if flags[1] else [inner, columns]
    bias = d.of(["", ", float c", f", float[{columns}] c", f", float[{rows},1] c"])
    return (
        f"(float[{_dims(a)}] a, float[{_dims(b)}] b{bias}) => (float[{rows},{columns}] y) "
        f"{{ y = Gemm<transA={flags[0]}, transB={flags[1]}, alpha=2.0, beta=3.0>"
        f"(a, b{', c' if bias else ''}) }}"
    )


def _einsum(d: Drawn) -> str:
    equation, shapes, out = d.data.draw(
        st.sampled_from(
            [
                ("bhid,bhjd->bhij", ["2,3,4,5", "2,3,2,5"], "2,3,4,2"),
                ("ij,jk", ["2,3", "3,4"], "2,4"),
                ("abc->cb", ["2,3,4"], "4,3"),
            ]
        )
    )
    operands = ", ".join(f"float[{shape}] x{at}" for at, shape in enumerate(shapes))
    names = ", ".join(f"x{at}" for at in range(len(shapes)))
    return f'({operands}) => (float[{out}] y) {{ y = Einsum<equation="{equation}">({names}) }}'


def _batch_normalization(d: Drawn) -> str:
    channels = d.dims[1]
    vectors = ", ".join(f"float[{channels}] q{at}" for at in range(4))
    return (
        f"(float[{d.shape}] x, {vectors}) => (float[{d.shape}] y) "
        "{ y = BatchNormalization(x, q0, q1, q2, q3) }"
    )


def _instance_normalization(d: Drawn) -> str:
    channels = d.dims[1]
    return (
        f"(float[{d.shape}] x, float[{channels}] s, float[{channels}] b) => (float[{d.shape}] y) "
        "{ y = InstanceNormalization(x, s, b) }"
    )


def _layer_normalization(d: Drawn) -> str:
    tail = _dims(d.dims[d.front :])
    return (
        f"(float[{d.shape}] x, float[{tail}] s, float[{tail}] b) => (float[{d.shape}] y) "
        f"{{ y = LayerNormalization<axis={d.axis}>(x, s, b) }}"
    )


def _quantize(name: str, source: str, target: str) -> Callable[[Drawn], str]:
    def text(d: Drawn) -> str:
        scale = d.of(["", f"[{d.dims[d.front]}]"])
        count = d.dims[d.front] if scale else 1
        numbers = ",".join(str(0.5 + at) for at in range(count))
        return (
            f"({source}[{d.shape}] x) => ({target}[{d.shape}] y) "
            f"<float{scale} s = {{{numbers}}}> {{ y = {name}<axis={d.axis}>(x, s) }}"
        )

    return text


CASES: dict[str, tuple[Callable[[Drawn], str], dict[str, int]]] = {
    "ArgMax": (_arg("ArgMax"), {}),
    "ArgMin": (_arg("ArgMin"), {}),
    "BatchNormalization": (_batch_normalization, {"least": 3}),
    "Compress": (_compress, {}),
    "Concat": (_concat, {}),
    "CumSum": (_cum_sum, {}),
    "DequantizeLinear": (_quantize("DequantizeLinear", "int8", "float"), {}),
    "Einsum": (_einsum, {}),
    "Expand": (_expand, {}),
    "Flatten": (_flatten, {}),
    "Gather": (_gather, {}),
    "GatherElements": (_gather_elements, {}),
    "GatherND": (_gather_nd, {}),
    "Gemm": (_gemm, {}),
    "Hardmax": (_along("Hardmax"), {}),
    "InstanceNormalization": (_instance_normalization, {"least": 4}),
    "LayerNormalization": (_layer_normalization, {"least": 3}),
    "LogSoftmax": (_along("LogSoftmax"), {}),
    "LpNormalization": (_along("LpNormalization"), {}),
    "MatMul": (_matmul, {}),
    "MatMul with a vector": (_matmul_vector, {}),
    "MatMul with a vector first": (_matmul_vector_first, {}),
    "MatMul with weights": (_matmul_weights, {}),
    "MatMul with weights first": (_matmul_weights_first, {}),
    "OneHot": (_one_hot, {}),
    "Pad": (_pad, {}),
    "Pad of some axes": (_pad_axes, {}),
    "Pad by an input": (_pad_dynamic, {}),
    "QuantizeLinear": (_quantize("QuantizeLinear", "float", "uint8"), {}),
    **{
        f"Reduce{kind}": (_reduce(f"Reduce{kind}"), {})
        for kind in ("L1", "L2", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
    },
    "Reshape": (_regrouped, {}),
    "Resize": (_resize, {}),
    "Resize of some axes": (_resize_axes, {}),
    "ReverseSequence": (_reverse_sequence, {"least": 3}),
    "ScatterElements": (_scatter_elements, {}),
    "ScatterND": (_scatter_nd, {"least": 3}),
    "Shape": (_shape, {}),
    "Slice": (_slice, {}),
    "Slice of the first axis": (_slice_first, {}),
    "Softmax": (_along("Softmax"), {}),
    "Split": (_split, {}),
    "Squeeze": (_squeeze, {}),
    "Tile": (_tile, {}),
    "Tile by an input": (_tile_dynamic, {}),
    "TopK": (_top_k, {}),
    "Trilu": (_trilu, {}),
    "Unsqueeze": (_unsqueeze, {}),
}


@pytest.mark.parametrize("name", CASES)
@property_test
@given(data=st.data())
def test_an_operator_with_parameters(name: str, data: st.DataObject) -> None:
    text, limits = CASES[name]
    check(text(Drawn(data, **limits)), data)
