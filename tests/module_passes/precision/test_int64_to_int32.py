"""int64_to_int32: which numbers are proven to fit, and that no output changes."""

import random

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.conformance.random_graphs import random_feeds, random_model
from tiered import Model, PassContext, get_backend, get_pass
from tiered.runtime import run
from tiered.support.errors import TieredError
from tiered.testing import assert_rewrites, assert_unchanged, parse

BIG = (1 << 31) - 1


def converted(
    text: str | onnx.ModelProto,
    *,
    backend: str | None = None,
    options: dict[str, object] | None = None,
) -> tuple[Model, list[str]]:
    """Return the model in int32, valid and at rest, and the findings."""
    model = Model.from_proto(parse(text))
    ctx = PassContext.isolated(backend=get_backend(backend)) if backend else PassContext.isolated()
    narrow = get_pass("int64_to_int32").with_options(**(options or {}))
    narrow.apply(model, ctx)
    model.check_view(types=True)
    proto = model.to_proto()
    onnx.checker.check_model(proto, full_check=True)
    again = Model.from_proto(proto)
    narrow.apply(again, ctx)
    assert again.to_proto() == proto
    return model, [str(remark).removeprefix("int64_to_int32: ") for remark in ctx.remarks]


def assert_equal_runs(text: str, model: Model, feeds: dict[str, np.ndarray]) -> None:
    before, after = run(parse(text), feeds), run(model.to_proto(), feeds)
    for name, array in before.items():
        assert after[name].dtype == array.dtype
        assert after[name].tobytes() == array.tobytes(), name


def dtypes(model: Model, operator: str) -> list[int | None]:
    (node,) = model.main.nodes_of(operator)
    return [value.dtype for value in (*node.inputs, *node.outputs) if value is not None]


def test_an_index_is_cast_once() -> None:
    assert_rewrites(
        "int64_to_int32",
        "(float[5,2] x, int64[N] i) => (float[N,2] y) { y = Gather(x, i) }",
        "(float[5,2] x, int64[N] i) => (float[N,2] y) { j = Cast<to=6>(i) y = Gather(x, j) }",
        bounds=("i=-5:4",),
    )


def test_an_index_that_is_an_error_stays_one() -> None:
    """Cast to int32, 2**32 + 1 would be row 1."""
    text = "(float[5,2] x, int64[N] i) => (float[N,2] y) { y = Gather(x, i) }"
    assert_unchanged("int64_to_int32", text, because="not proven to fit int32")


def test_an_index_is_within_the_bounds_of_its_input() -> None:
    text = "(float[5,2] x, int64[N] i) => (float[N,2] y) { y = Gather(x, i) }"
    model, _ = converted(text, options={"bounds": ("i=-5:4",)})
    assert dtypes(model, "Gather") == [1, 6, 1]
    assert [value.dtype for value in model.main.inputs] == [1, 7]
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    assert_equal_runs(text, model, {"x": x, "i": np.array([0, -5, 4])})


ADD = "(int64[N] x) => (int64[N] y) <int64 k = {K}> { b = Mul(x, k) y0 = Abs(b) y = Max(y0, x) }"


def test_without_a_bound_an_input_proves_nothing() -> None:
    assert_unchanged("int64_to_int32", ADD.replace("{K}", "{2}"), because="not proven to fit int32")


@pytest.mark.parametrize(
    ("factor", "high", "fits"),
    [(1, BIG, True), (1, BIG + 1, False), (2, BIG // 2, True), (2, BIG // 2 + 1, False)],
)
def test_numbers_at_the_limit_of_int32(factor: int, high: int, fits: bool) -> None:
    text = ADD.replace("{K}", f"{{{factor}}}")
    model, _ = converted(text, options={"bounds": (f"x=-5:{high}",)})
    assert dtypes(model, "Mul") == [6 if fits else 7] * 3
    x = np.array([-5, 0, 1, high - 1, high])
    assert_equal_runs(text, model, {"x": x})


@pytest.mark.parametrize("low", [-(1 << 31), -(1 << 31) - 1])
def test_the_lowest_number_has_no_absolute_value(low: int) -> None:
    text = "(int64[N] x) => (int64[N] y) { b = Max(x) y = Abs(b) }"
    model, _ = converted(text, options={"bounds": (f"x={low}:5",)})
    assert dtypes(model, "Abs") == [7, 7]
    assert_equal_runs(text, model, {"x": np.array([low, low + 1, 5])})


@pytest.mark.parametrize("number", [BIG - 1, BIG, BIG + 1, BIG + 2, -BIG - 1, -BIG - 2])
def test_constants_are_converted_by_their_value(number: int) -> None:
    text = (
        f"(float[N] x) => (int64[1] y) <int64[1] k = {{{number}}}> {{ s = Shape(x) y = Min(s, k) }}"
    )
    model, _ = converted(text)
    assert dtypes(model, "Min") == [6 if -BIG - 1 <= number <= BIG else 7] * 3
    assert_equal_runs(text, model, {"x": np.zeros(3, np.float32)})


END = (1 << 63) - 1


@pytest.mark.parametrize(
    ("starts", "ends", "steps"),
    [
        *((0, END, 1), (1, END - 1, 2), (-1, -END - 1, -1), (-1, -END, -2), (-END - 1, 3, 1)),
        *((END, -END - 1, -1), (0, BIG + 1, 1), (0, BIG, 1), (-BIG - 2, BIG + 2, BIG + 1)),
    ],
)
def test_sentinels_of_slice_keep_their_meaning(starts: int, ends: int, steps: int) -> None:
    text = (
        f"(float[N] x) => (float[M] y) <int64[1] s = {{{starts}}}, int64[1] e = {{{ends}}}, "
        f"int64[1] a = {{0}}, int64[1] t = {{{steps}}}> {{ y = Slice(x, s, e, a, t) }}"
    )
    model, _ = converted(text)
    assert dtypes(model, "Slice") == [1, 6, 6, 6, 6, 1]
    for size in (0, 1, 5):
        assert_equal_runs(text, model, {"x": np.arange(size, dtype=np.float32)})


def test_a_sentinel_that_is_computed_with_stays() -> None:
    text = (
        f"(float[N] x) => (float[M] y, int64[1] z) <int64[1] s = {{0}}, int64[1] e = {{{END}}}> "
        "{ y = Slice(x, s, e) z = Min(e, s) }"
    )
    model, _ = converted(text)
    assert dtypes(model, "Slice") == [1, 6, 6, 1]
    assert dtypes(model, "Min") == [7, 7, 7]
    assert_equal_runs(text, model, {"x": np.arange(3, dtype=np.float32)})


def test_schemas_decide_where_int32_is_taken() -> None:
    text = (
        "(float[N,M] x) => (float[?,?] y, float[?,?] z, int64[1] p) <int64[1] o = {1}> "
        "{ s = Shape(x) p = ReduceProd(s) m = Mul(s, o) d = Div(m, o) t = Min(d, o) "
        "y = Expand(x, m) z = ConstantOfShape(t) }"
    )
    model, found = converted(text)
    (expand,) = model.main.nodes_of("Expand")
    assert expand.inputs[1] is not None
    assert expand.inputs[1].dtype == 7
    assert dtypes(model, "Mul") == [6, 6, 6]
    assert any("Expand has no int32" in text for text in found)
    assert any("ReduceProd unchanged: not proven to fit int32" in text for text in found)


def test_products_of_dims_fit_where_dims_are_small() -> None:
    text = "(float[N,M] x) => (int64[1] y) { s = Shape(x) y0 = ReduceProd(s) y = Neg(y0) }"
    assert dtypes(converted(text)[0], "ReduceProd") == [7, 7]
    assert dtypes(converted(text, options={"max_dim": 40000})[0], "ReduceProd") == [6, 6]


def test_moves_need_no_casts_of_their_own() -> None:
    assert_unchanged(
        "int64_to_int32",
        "(float[N,M] x) => (float[?] y) <int64[1] o = {-1}, int64[1] a = {0}> "
        "{ s = Shape(x) u = Unsqueeze(s, a) t = Squeeze(u, a) c = Concat<axis=0>(t, o) "
        "y = Reshape(x, c) }",
        because="between values that keep their type",
    )


def test_attributes_that_name_a_type_follow() -> None:
    text = (
        "(bool[N] b, int64[1] n) => (int64[?] y) "
        "{ c = Cast<to=7>(b) f = ConstantOfShape<value = int64[1] {3}>(n) y0 = Add(c, f) "
        "y = Neg(y0) }"
    )
    model, _ = converted(text)
    assert model.main.nodes_of("Cast")[0].attr("to") == 6
    assert model.main.nodes_of("ConstantOfShape")[0].attr("value").dtype == 6
    assert_equal_runs(text, model, {"b": np.array([True, False]), "n": np.array([2])})


def test_floats_beyond_int32_keep_int64() -> None:
    text = "(float[N] x) => (int64[N] y) { t = Tanh(x) k = Cast<to=7>(t) y = Neg(k) }"
    assert_unchanged("int64_to_int32", text, because="not proven to fit int32")
    sure = "(int32[N] x) => (int64[N] y) { f = Cast<to=1>(x) k = Cast<to=7>(f) y = Neg(k) }"
    assert_unchanged("int64_to_int32", sure, because="not proven to fit int32")


LOOP = (
    "(int64 n, float[N] x) => (int64 y) <bool t = {1}, int64 z = {0}, int64 one = {1}> "
    "{ y0 = Loop(n, t, z) <body = g (int64 i, bool c, int64 s) => (bool d, int64 u) "
    "{ d = Identity(c) u = BODY }> y = Neg(y0) }"
)


def test_a_counter_of_a_loop_has_no_bound() -> None:
    text = LOOP.replace("BODY", "Add(s, one)")
    assert_unchanged("int64_to_int32", text, because="not proven to fit int32")


def test_a_state_of_a_loop_is_of_one_type() -> None:
    text = LOOP.replace("BODY", "Mul(s, one)")
    model, _ = converted(text)
    (loop,) = model.main.nodes_of("Loop")
    (body,) = loop.bodies
    assert (body.inputs[0].dtype, body.inputs[2].dtype, body.outputs[1].dtype) == (7, 6, 6)
    assert_equal_runs(text, model, {"n": np.array(3), "x": np.zeros(1, np.float32)})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("m = ReduceMean(c)", "inner numbers may be larger than int32"),
        ("m = EyeLike(c)", "the operand decides the dtype"),
    ],
)
def test_operators_with_larger_inner_numbers_stay(text: str, reason: str) -> None:
    assert_unchanged(
        "int64_to_int32",
        f"(bool[2,2] x) => (int64[?] y) {{ c = Cast<to=7>(x) {text} y = Identity(m) }}",
        because=reason,
    )


def test_a_range_of_too_many_steps_stays() -> None:
    assert_unchanged(
        "int64_to_int32",
        "(int64[N] x) => (int64[M] y) <int64 z = {-2000000000}, int64 h = {2000000000}, "
        "int64 o = {2}> { y = Range(z, h, o) }",
        because="a step count may be larger than int32",
    )


@pytest.mark.parametrize(
    ("option", "skipped", "reason"),
    [("skip_op_types", "Neg", "Neg is skipped"), ("skip_nodes", "n*", "the node is skipped")],
)
def test_nodes_stay_if_asked(option: str, skipped: str, reason: str) -> None:
    proto = parse("(float[N] x) => (int64[1] y) { s = Shape(x) y = Neg(s) }")
    proto.graph.node[1].name = "n1"
    model, found = converted(proto, options={option: (skipped,)})
    assert dtypes(model, "Neg") == [7, 7]
    assert any(reason in text for text in found)


def test_a_target_keeps_what_it_has_not_in_int32() -> None:
    text = (
        "(float[2,2] x) => (int64[?] y) "
        "{ b = Greater(x, x) c = Cast<to=7>(b) t = Unique(c) y = Neg(t) }"
    )
    assert dtypes(converted(text)[0], "Unique") == [6, 6]
    model, found = converted(text, backend="onnxruntime_cpu")
    assert dtypes(model, "Unique") == [7, 7]
    assert any("onnxruntime_cpu has no Unique of int32" in text for text in found)


@pytest.mark.parametrize("bound", ["x=5:1", "x", "x=1", "x=a:b", "z=0:1"])
def test_a_wrong_bound_is_an_error(bound: str) -> None:
    with pytest.raises(TieredError, match="bounds: "):
        converted("(int64[N] x) => (int64[N] y) { y = Neg(x) }", options={"bounds": (bound,)})


def test_its_name_in_ppq() -> None:
    assert get_pass("format_int64_constant").info.name == "int64_to_int32"


@settings(max_examples=60, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_random_models_compute_the_same_bits(source: random.Random) -> None:
    proto = random_model(source)
    feeds = random_feeds(source, proto)
    model = Model.from_proto(proto)
    ctx = PassContext.isolated(backend=get_backend("onnxruntime_cpu"))
    get_pass("int64_to_int32").apply(model, ctx)
    try:
        before = run(proto, feeds)
    except TieredError:
        return
    after = run(model.to_proto(), feeds)
    for name, array in before.items():
        if isinstance(array, np.ndarray) and array.dtype != object:
            assert after[name].tobytes() == array.tobytes(), onnx.printer.to_text(proto)
