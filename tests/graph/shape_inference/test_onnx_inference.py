"""Where onnx's shape inference is not sound: inferred shapes are those that onnxruntime computes."""

from itertools import product
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest

from tiered import optimize
from tiered.graph import Model, TensorType
from tiered.graph.queries.call_graph import expanded_size
from tiered.graph.shape_inference import onnx_inference
from tiered.graph.shape_inference.onnx_inference import (
    MOST_PROPAGATED,
    _computed_vectors_are_short,
    _propagated_size,
    _range_length,
    calls_are_bounded,
    is_inferable,
    node_complaint,
    onnx_inference_is_unsound,
    onnx_types,
    propagation_is_bounded,
)
from tiered.runtime import run
from tiered.support.errors import RuntimeFailure

POOLS = ("AveragePool", "LpPool", "MaxPool")
SETTINGS = 300
RESHAPES = 150


def parsed(text: str, *, opset: int = 21) -> onnx.ModelProto:
    imports = f'"" : {opset}, "com.microsoft" : 1, "vendor" : 1'
    return onnx.parser.parse_model(f"<ir_version: 8, opset_import: [{imports}]> g {text}")


def shape_of(proto: onnx.ModelProto, name: str) -> tuple[object, ...] | None:
    model = Model.from_proto(proto)
    model.refresh_types()
    return model.main.values[name].shape


def computed(proto: onnx.ModelProto, feeds: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Return the first output, from onnxruntime."""
    result: np.ndarray[Any, Any] = run(proto, feeds)[proto.graph.output[0].name]
    return result


def random_pool(random: Random) -> tuple[onnx.ModelProto, int]:
    dim, stride = random.randint(1, 9), random.randint(1, 4)
    kernel, dilation = random.randint(1, 4), random.randint(1, 3)
    # onnxruntime accepts no larger padding.
    pads = [random.randrange(kernel) for _ in range(2)]
    text = (
        f"(float[1,1,{dim}] x) => (float[?,?,?] y) {{ y = {random.choice(POOLS)}<ceil_mode=1,"
        f" kernel_shape=[{kernel}], strides=[{stride}], dilations=[{dilation}], pads={pads}>(x) }}"
    )
    return parsed(text), dim


def test_a_pool_with_ceil_mode_has_the_windows_that_onnxruntime_computes() -> None:
    random, known = Random(0), 0
    for _ in range(SETTINGS):
        proto, dim = random_pool(random)
        shape = shape_of(proto, "y")
        assert shape is not None
        if isinstance(shape[2], int):
            known += 1
            x = np.zeros((1, 1, dim), np.float32)
            assert computed(proto, {"x": x}).shape == shape, onnx.printer.to_text(proto)
    assert known > SETTINGS // 2


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("kernel_shape=[2,2], strides=[2,2], pads=[1,1,1,1]", "4,4"),
        ("kernel_shape=[3,3], strides=[2,2]", "3,3"),
        ("kernel_shape=[3,3], pads=[1,1,1,1]", "7,7"),
        ("kernel_shape=[3,1], strides=[2,2], pads=[1,1,1,1]", "4,?"),
        ("kernel_shape=[9,1]", "?,7"),
        ('kernel_shape=[2,2], auto_pad="SAME_UPPER"', "?,?"),
    ],
)
@pytest.mark.parametrize("pool", ["MaxPool", "AveragePool", "LpPool"])
def test_an_uncertain_dim_of_a_pool_with_ceil_mode_is_unknown(
    pool: str, attributes: str, expected: str
) -> None:
    proto = parsed(
        f"(float[N,3,7,7] x) => (float[?,?,?,?] y) {{ y = {pool}<ceil_mode=1, {attributes}>(x) }}"
    )
    shape = shape_of(proto, "y")
    assert shape is not None
    assert shape[:2] == ("N", 3)
    assert ",".join(str(dim) if isinstance(dim, int) else "?" for dim in shape[2:]) == expected


@pytest.mark.parametrize("opset", [10, 18, 21])
def test_a_window_of_size_one_starts_inside_the_input(opset: int) -> None:
    proto = parsed(
        "(float[2,3,2] x) => (float[?,?,?] y)"
        " { y = MaxPool<ceil_mode=1, kernel_shape=[1], strides=[2]>(x) }",
        opset=opset,
    )
    assert shape_of(proto, "y") == (2, 3, 1)


def test_the_indices_of_a_max_pool_have_the_shape_of_the_maxima() -> None:
    proto = parsed(
        "(float[1,1,N] x, float[1,1,7] v) => (int64[?,?,?] i, float[?,?,?] m)"
        " { m, i = MaxPool<ceil_mode=1, kernel_shape=[2], strides=[2], pads=[1,1]>(v) }"
    )
    assert shape_of(proto, "i") == shape_of(proto, "m") == (1, 1, 4)


def test_a_quantized_pool_with_ceil_mode_does_not_use_the_dims_of_onnx() -> None:
    proto = parsed(
        "(uint8[1,2,7] x, float s, uint8 z) => (uint8[?,?,?] y) { y = com.microsoft.QLinearAveragePool"
        "<ceil_mode=1, kernel_shape=[2], strides=[2], pads=[1,1]>(x, s, z, s, z) }"
    )
    shape = shape_of(proto, "y")
    assert shape is not None
    assert shape[:2] == (1, 2)
    assert shape[2] != 5


# A body makes onnx infer the whole model at once.
BODY = (
    " y = If(c) <then_branch = t () => (float[?] p) { p = Neg(w) },"
    " else_branch = e () => (float[?] q) { q = Abs(w) }>"
)


@pytest.mark.parametrize(
    "text",
    [
        "(float[1,1,7] x, float[2] w, bool c) => (int64 s, float[?] y)"
        f" {{ m = POOL(x) s = Size(m){BODY} }}",
        "(float[1,1,7] x) => (int64 s) { m = vendor.f(x) s = Size(m) }"
        ' <domain: "vendor", opset_import: ["" : 21]> f (x) => (y) { y = POOL(x) }',
        "(float[1,1,7] x) => (int64 s) { m = vendor.f<up=1>(x) s = Size(m) }"
        ' <domain: "vendor", opset_import: ["" : 21]> f <up> (x) => (y) { y = POOL(x) }'.replace(
            "POOL", "MaxPool<ceil_mode: int = @up, kernel_shape=[2], strides=[2], pads=[1,1]>"
        ),
    ],
    ids=["beside a body", "function", "decided by the call"],
)
def test_unsound_shapes_are_ignored_when_onnx_infers_the_whole_model(text: str) -> None:
    pool = "MaxPool<ceil_mode=1, kernel_shape=[2], strides=[2], pads=[1,1]>"
    proto = parsed(text.replace("POOL", pool))
    x, w = np.zeros((1, 1, 7), np.float32), np.zeros(2, np.float32)
    feeds = {"x": x, "w": w, "c": np.array(True)}
    feeds = {info.name: feeds[info.name] for info in proto.graph.input}
    assert computed(proto, feeds) == 4
    assert computed(optimize(proto, opt_level=2), feeds) == 4


@pytest.mark.parametrize("body", ["", BODY], ids=["straight", "beside a body"])
@pytest.mark.parametrize(
    ("x", "nodes", "expected"),
    [
        # With empty axes, onnxruntime drops every dim of size 1; onnx keeps them.
        ("float[1,4,1,3] x", "<int64[0] a = {}> { t = Squeeze(x, a) s = Shape(t)", [4, 3]),
        # For a scalar other than 0, the standard returns no row of indices, and onnxruntime one.
        ("float x", "<int64[1] o = {1}> { t = NonZero(x) n = Size(t) s = Reshape(n, o)", [1]),
    ],
)
def test_a_shape_that_onnxruntime_computes_differently_is_unknown(
    body: str, x: str, nodes: str, expected: list[int]
) -> None:
    results = "int64[?] s, float[?] y" if body else "int64[?] s"
    proto = parsed(f"({x}, float[2] w, bool c) => ({results}) {nodes}{body} }}")
    shape = (1, 4, 1, 3) if "4" in x else ()
    feeds = {"x": np.ones(shape, np.float32), "w": np.ones(2, np.float32), "c": np.array(True)}
    assert computed(proto, feeds).tolist() == expected
    assert computed(optimize(proto, opt_level=2), feeds).tolist() == expected


def test_a_squeeze_with_an_empty_axes_attribute_has_an_unknown_shape() -> None:
    proto = parsed(
        "(float[1,4] x) => (float[?,?] y) { t = Squeeze<axes=[0]>(x) y = Neg(t) }", opset=11
    )
    del proto.graph.node[0].attribute[0].ints[:]
    assert shape_of(proto, "t") is None


def test_an_output_with_an_unsound_shape_has_its_dtype() -> None:
    proto = parsed("(float[2,3] x, int64[K] s) => (float[?] y) { t = Reshape(x, s) y = Neg(t) }")
    model = Model.from_proto(proto)
    assert model.main.values["t"].dtype == onnx.TensorProto.FLOAT
    assert model.main.values["t"].shape is None


def test_nonzero_has_a_row_for_each_dim() -> None:
    shape = shape_of(parsed("(float[2,N,3] x) => (int64[?,?] y) { y = NonZero(x) }"), "y")
    assert shape is not None
    assert shape[0] == 3


@pytest.mark.parametrize("body", ["", BODY], ids=["straight", "beside a body"])
def test_a_size_that_may_be_0_and_copy_a_dim_is_unknown(body: str) -> None:
    proto = parsed(
        "(float[1] x, float[A] z, float[2] w, bool c) => (bool[1] e, float[?] y)"
        f" {{ s = Shape(z) r = Reshape(x, s) t = Shape(r) e = Equal(t, s){body or ' y = Abs(w)'} }}"
    )
    feeds = {"x": np.ones(1, np.float32), "w": np.ones(2, np.float32), "c": np.array(True)}
    feeds["z"] = np.ones(0, np.float32)
    assert computed(proto, feeds).tolist() == [False]
    assert computed(optimize(proto, opt_level=2), feeds).tolist() == [False]


def test_inferred_dims_of_a_reshape_hold_if_a_dim_is_0() -> None:
    random, known = Random(0), 0
    for _ in range(RESHAPES):
        dims = [random.choice(["A", "B", "1", "2"]) for _ in range(random.randint(1, 3))]
        target = [random.choice("ABNMZ12") for _ in range(random.randint(1, 3))]
        if target.count("M") > 1:
            continue
        proto = parsed(
            f"(float[{','.join(dims)}] x, float[A] a, float[B] b) => (float[{','.join('?' * len(target))}] y)"
            " <int64[1] M = {-1}, int64[1] Z = {0}, int64[1] one = {1}, int64[1] two = {2}>"
            " { A = Shape(a) B = Shape(b) N = Mul(A, B) t = Concat<axis=0>(TARGET)"
            " y = Reshape(x, t) }".replace(
                "TARGET", ",".join({"1": "one", "2": "two"}.get(one, one) for one in target)
            )
        )
        shape = shape_of(proto, "y")
        assert shape is not None
        for a, b in product(range(4), repeat=2):
            # Two unrelated dims that are both 0 are not considered.
            sizes: dict[object, int] = {"A": a, "B": b, "A*B": a * b, "1": 1, "2": 2}
            if a == b == 0:
                continue
            x = np.ones([sizes[dim] for dim in dims], np.float32)
            feeds = {"x": x, "a": np.ones(a, np.float32), "b": np.ones(b, np.float32)}
            try:
                result = computed(proto, feeds)
            except RuntimeFailure:
                continue
            for dim, actual in zip(shape, result.shape, strict=True):
                known += dim in sizes
                expected = dim if isinstance(dim, int) else sizes.get(dim, actual)
                assert actual == expected, (dims, target, shape, a, b, result.shape)
    assert known > 200


@pytest.mark.parametrize(
    ("text", "bounded"),
    [
        pytest.param("(float[{n}] x) => (float[?] y) {{ y = Gather(x, i) }}", False, id="input"),
        pytest.param("(float[{n}] x) => (float[?] y) {{ y = Relu(x) }}", True, id="not propagated"),
        pytest.param(
            "(float[1,{n}] x) => (float[?,?] y) {{ y = Gather(x, i) }}", True, id="rank 2"
        ),
        pytest.param(
            "(float[1,{n}] x) => (float[?] y) {{ h = Reshape(x, m) y = Unsqueeze(h, i) }}",
            False,
            id="made by the graph",
        ),
        pytest.param(
            "(bool c, float[{n}] x) => (float[?] y) {{ y = If(c) <"
            "then_branch = t () => (float[?] p) {{ p = Mul(x, x) }},"
            "else_branch = e () => (float[?] q) {{ q = Neg(x) }}> }}",
            False,
            id="read in a body",
        ),
    ],
)
def test_a_long_vector_is_not_given_to_the_data_propagation_of_onnx(
    text: str, bounded: bool
) -> None:
    for size, expected in ((MOST_PROPAGATED, True), (MOST_PROPAGATED + 1, bounded)):
        head, body = text.format(n=size).split(" {", 1)
        proto = parsed(f"{head} <int64[1] i = {{0}}, int64[1] m = {{-1}}> {{{body}")
        assert propagation_is_bounded(Model.from_proto(proto), proto) is expected


@pytest.mark.parametrize(
    "cut",
    ["a, b = Split<axis=1>(s, sizes)", "a = Slice(s, o, two, one) b = Slice(s, two, four, one)"],
)
def test_what_follows_in_a_body_counts_before_its_declared_output(cut: str) -> None:
    proto = parsed(
        "(int64 n, bool c, float[R,4] x) => (float[S,4] y) <int64[2] sizes = {2,2},"
        " int64[1] o = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] four = {4}> {"
        " y = Loop(n, c, x)<body = l (int64 at, bool go, float[R,4] s) => (bool on, float[S,4] z)"
        f" {{ on = Identity(go) {cut} z = Concat<axis=1>(b, a) }}> }}"
    )
    model = Model.from_proto(proto)
    model.refresh_types()
    (body,) = (graph for graph in model.graphs() if graph is not model.main)
    for shape in (body.values["z"].shape, model.main.values["y"].shape):
        assert shape is not None
        assert shape[0] != "S"
        assert shape[1] == 4


def test_a_declared_shape_counts_where_nothing_follows_in_a_body() -> None:
    proto = parsed(
        "(int64 n, bool c, float[3,4] x, int64[k] t) => (float[3,4] y) {"
        " y = Loop(n, c, x)<body = l (int64 at, bool go, float[3,4] s) => (bool on, float[3,4] z)"
        " <float[3,4] u, float[3,4] v> { on = Identity(go) u = Reshape(s, t) v = Neg(u)"
        " z = Neg(v) }> }"
    )
    model = Model.from_proto(proto)
    model.refresh_types()
    (body,) = (graph for graph in model.graphs() if graph is not model.main)
    assert [body.values[name].shape for name in "uvz"] == [(3, 4)] * 3


def test_an_attribute_that_a_call_decides_leaves_types_open() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
    g (float[2] x) => (y) { y = d.f<e = 2>(x) }
    <domain: "d", opset_import: ["" : 21]> f <e> (x) => (y) {
        c = Constant<value = float[2,3,1] {1,2,3,4,5,6}>()  y = Flatten<axis: int = @e>(c)
        z = Flatten(c) }"""
    (function,) = Model.from_proto(onnx.parser.parse_model(text)).functions
    open_node, closed = function.nodes_of("Flatten")
    assert onnx_types(open_node) == ()
    assert node_complaint(open_node) is None
    (found,) = onnx_types(closed)
    assert found == TensorType(1, (2, 3))


# --- limits ---------------------------------------------------------------------------------------


def test_a_vector_that_onnx_would_compute_is_short_up_to_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of an input onnx is taken to know 16 elements, of a constant its own."""
    for nodes, size in (
        ("y = Concat<axis=0>(x, x)", 32),
        ("y = Concat<axis=0>(x, c)", 19),
        ("n = Neg(x)  y = Concat<axis=0>(n, n, n)", 48),
        ("h = Concat<axis=0>(c, c)  y = Concat<axis=0>(h, c)", 9),
        ("y = Range(zero, ten, one)", 10),
        ("y = Range(ten, zero, one)", 0),
        ("y = Range(zero, ten, three)", 4),
        ("y = Add(x, c)", 0),
        ("y = acme.Range(zero, ten, x)", 0),
    ):
        text = f"""(int64[3] x) => (int64[N] y) <int64[3] c = {{1,2,3}}, int64 zero = {{0}},
            int64 ten = {{10}}, int64 one = {{1}}, int64 three = {{3}}> {{ {nodes} }}"""
        model = Model.from_proto(parsed(text))
        for limit, expected in ((size - 1, size == 0), (size, True)):
            monkeypatch.setattr(onnx_inference, "MOST_PROPAGATED", limit)
            assert _computed_vectors_are_short(model) is expected or size == 0, (nodes, limit)


def test_the_length_of_a_range_of_constants() -> None:
    for line, expected in (
        ("Range(zero, ten, two)", 5.0),
        ("Range(two, ten, two)", 4.0),
        ("Range(ten, zero, two)", -5.0),
        ("Range(zero, ten, zero)", 0.0),
        ("Range(zero, x, two)", 0.0),
        ("Range(zero, given, two)", 3.0),
        ("Range(zero, pair, two)", 0.0),
    ):
        text = f"""(int64 x, int64 given = {{6}}) => (int64[N] y) <int64 zero = {{0}},
            int64 ten = {{10}}, int64 two = {{2}}, int64[2] pair = {{4,6}}> {{ y = {line} }}"""
        assert _range_length(Model.from_proto(parsed(text)).main.nodes[0]) == expected, line


def test_elements_that_onnx_propagates_of_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "(int64[2] x) => (int64[2] y) <int64[3] c = {1,2,3}> { y = Neg(x)  z = Neg(c) }"
    main = Model.from_proto(parsed(text)).main
    assert [_propagated_size(main.values[name]) for name in "xcy"] == [16, 3, 16]
    for most, expected in ((3, 3), (2, 0)):
        monkeypatch.setattr(onnx_inference, "DATA_ELEMENTS", most)
        assert _propagated_size(main.values["c"]) == expected


CALLS = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]> g (float[4] x) => (y) { y = d.f(x) }
    <domain: "d", opset_import: ["" : 21, "d" : 1]> f (x) => (y) { z = CALL  y = Neg(z) }
    <domain: "d", opset_import: ["" : 21, "d" : 1]> h (x) => (y) { y = Neg(x) }"""


def test_calls_are_followed_up_to_a_number_of_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    for call, size in (("Abs(x)", 3), ("d.h(x)", 3)):
        model = Model.from_proto(onnx.parser.parse_model(CALLS.replace("CALL", call)))
        nodes = expanded_size(model, ())
        assert nodes >= size - 1
        for limit, expected in ((nodes - 1, False), (nodes, True)):
            monkeypatch.setattr(onnx_inference, "MOST_EXPANDED", limit)
            assert calls_are_bounded(model) is is_inferable(model) is expected, (call, limit)
    monkeypatch.setattr(onnx_inference, "MOST_EXPANDED", 0)
    assert calls_are_bounded(Model.from_proto(parsed("(float[2] x) => (y) { y = Neg(x) }")))


def test_attributes_that_calls_decide_make_some_operators_unsafe() -> None:
    for line, expected in (
        ("Split<num_outputs: int = @n>(x)", False),
        ("Split<num_outputs = 1>(x)", True),
        ("Softmax<axis: int = @n>(x)", True),
        ("other.Split<num_outputs: int = @n>(x)", True),
    ):
        text = f"""<ir_version: 10, opset_import: ["" : 21, "d" : 1, "other" : 1]>
            g (float[4] x) => (y) {{ y = d.f<n = 1>(x) }}
            <domain: "d", opset_import: ["" : 21, "other" : 1]> f <n> (x) => (y) {{ y = {line} }}"""
        assert is_inferable(Model.from_proto(onnx.parser.parse_model(text))) is expected, line


def test_where_the_shapes_of_onnx_may_be_wrong() -> None:
    branches = (
        "If(c) <then_branch = t () => (p) { p = Neg(x) }, else_branch = e () => (q) { q = Abs(x) }>"
    )
    for line, opset, expected in (
        (branches, 10, True),
        (branches, 11, False),
        ("MaxPool<kernel_shape = [1], ceil_mode = 1>(x)", 21, True),
        ("MaxPool<kernel_shape = [1]>(x)", 21, False),
        ("Squeeze(x)", 21, False),
        ("Squeeze(x, one)", 21, False),
        ("Squeeze(x, none)", 21, True),
        ("Squeeze(x, at)", 21, False),
        ("Squeeze<axes = [0]>(x)", 11, False),
        ("Squeeze(x)", 11, False),
        ("Reshape(x, at)", 21, True),
        ("Reshape<allowzero = 1>(x, at)", 21, False),
        ("Reshape(x, one)", 21, False),
        ("NonZero(x)", 21, True),
        ("Neg(x)", 21, False),
    ):
        text = f"""(float[1,2,3] x, bool c, int64[1] at) => (y)
            <int64[1] one = {{0}}, int64[0] none = {{}}> {{ y = {line} }}"""
        nodes = Model.from_proto(parsed(text, opset=opset)).main.nodes
        node = next(each for each in nodes if not each.is_op("Constant"))
        assert onnx_inference_is_unsound(node) is expected, (line, opset)
