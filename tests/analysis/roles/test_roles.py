"""Roles of values: what float16 would lose stays float, and is right on onnx.reference."""

from typing import Any

import numpy as np
import onnx
import pytest

from tiered import Model, PassContext, get_pass
from tiered.runtime import run, run_reference
from tiered.testing import assert_unchanged, parse

Array = np.ndarray[Any, Any]

ROW = "(float[N,4] x) => (float[N,4] y)"
ROWS: Array = np.array([[0, 0, 0, 0], [1, 1, 1, 1], [0, 1e-4, 2, 3]], np.float32)


def converted(text: str, **options: object) -> tuple[onnx.ModelProto, list[str]]:
    """Return a model in halves, valid and at rest, and why nodes stay float."""
    model, ctx = Model.from_proto(parse(text, opset=17)), PassContext.isolated()
    lower = get_pass("float_to_half").with_options(**options)
    lower.apply(model, ctx)
    proto = model.to_proto()
    onnx.checker.check_model(proto, full_check=True)
    again = Model.from_proto(proto)
    lower.apply(again)
    assert again.to_proto() == proto
    return proto, [str(remark) for remark in ctx.remarks if "unchanged" in str(remark)]


def assert_close(text: str, feeds: dict[str, Array], *, role: str, atol: float = 4e-3) -> None:
    """Assert that a model in halves computes about the same on both runtimes, and names a role."""
    original = parse(text, opset=17)
    proto, kept = converted(text)
    assert not role or any(f"unchanged: {role}: " in each for each in kept), kept
    for runtime in (run, run_reference):
        found = runtime(proto, feeds)
        for name, expected in runtime(original, feeds).items():
            np.testing.assert_allclose(found[name], expected, rtol=5e-3, atol=atol)


EPSILONS = {
    "the norm of a row": "<float e = {1e-12}> "
    "{ n = ReduceL2<axes=[1]>(x) c = Clip(n, e) y = Div(x, c) }",
    "a vector": "<float[4] e = {1e-9,1e-9,1e-9,1e-9}> { b = Add(x, e) y = Div(x, b) }",
    "one of a vector": "<float[4] e = {1,1,1e-9,1}> { b = Add(x, e) y = Div(x, b) }",
    "a logarithm": "<float e = {1e-9}> { a = Relu(x) b = Add(a, e) y = Log(b) }",
    "an inverse": "<float e = {1e-9}> "
    "{ a = Relu(x) b = Max(a, e) r = Reciprocal(b) y = Mul(a, r) }",
    "a power": "<float e = {1e-12}, float p = {-0.5}> "
    "{ a = Relu(x) b = Add(a, e) r = Pow(b, p) y = Mul(a, r) }",
    "a move between": "<float e = {1e-9}, int64[2] s = {-1,4}> "
    "{ b = Add(x, e) c = Reshape(b, s) y = Div(x, c) }",
    "one that is filled in": "{ s = Shape(x) e = ConstantOfShape<value = float[1] {1e-9}>(s) "
    "b = Max(x, e) y = Div(x, b) }",
    "one that is cast": "<double e = {1e-9}> { f = Cast<to=1>(e) b = Add(x, f) y = Div(x, b) }",
    "the logarithm of a sum": "<float e = {1e-9}> "
    "{ a = Relu(x) b = Add(a, e) s = ReduceLogSum<axes=[1]>(b) y = Add(a, s) }",
    "one that an If selects": "<float e = {1e-9}, float f = {1e-8}, bool c = {1}> { d = Not(c) "
    "s = If(d) <then_branch = t () => (float p) { p = Identity(e) }, "
    "else_branch = o () => (float q) { q = Identity(f) }> b = Add(x, s) y = Div(x, b) }",
    "a normalization": "<float e = {1e-12}, float two = {2}> "
    "{ r = Relu(x) m = ReduceMean<axes=[1]>(r) d = Sub(r, m) p = Pow(d, two) "
    "v = ReduceMean<axes=[1]>(p) a = Add(v, e) s = Sqrt(a) y = Div(d, s) }",
}


@pytest.mark.parametrize("form", EPSILONS)
def test_what_reads_an_epsilon_stays_float_with_it(form: str) -> None:
    assert_close(f"{ROW} {EPSILONS[form]}", {"x": ROWS}, role="epsilon")


def test_a_small_divisor_stays_float() -> None:
    text = f"{ROW} <float[4] e = {{1e-8,1e-8,1e-8,1e-8}}> {{ a = Relu(x) y = Div(a, e) }}"
    proto, kept = converted(text)
    assert any("epsilon: 1e-08 is 0 in float16" in each for each in kept)
    assert np.isfinite(run_reference(proto, {"x": ROWS})["y"]).all()


def test_a_bound_that_is_an_attribute_is_an_epsilon_too() -> None:
    text = f"{ROW} {{ c = Clip<min=1e-12>(x) l = Log(c) y = Neg(l) }}"
    original = parse(text, opset=9)
    model = Model.from_proto(original)
    get_pass("float_to_half").apply(model)
    feeds: dict[str, Array] = {"x": np.zeros((1, 4), np.float32)}
    exact, found = (run_reference(each, feeds)["y"] for each in (original, model.to_proto()))
    np.testing.assert_allclose(found, exact, rtol=1e-3)


def test_the_statistic_under_an_epsilon_stays_float() -> None:
    """The square of 1e-4 is 0 in float16, and the row would be infinite."""
    text = f"{ROW} {EPSILONS['the norm of a row']}"
    small: Array = np.full((1, 4), 1e-4, np.float32)
    assert_close(text, {"x": small}, role="statistic")


def test_what_is_in_range_again_is_narrow() -> None:
    proto, _ = converted(f"{ROW} {EPSILONS['a normalization']}")
    types = {value.name: value.type.tensor_type.elem_type for value in proto.graph.value_info}
    infos = onnx.shape_inference.infer_shapes(proto).graph.value_info
    types |= {value.name: value.type.tensor_type.elem_type for value in infos}
    assert types["a"] == onnx.TensorProto.FLOAT
    assert types["d"] == onnx.TensorProto.FLOAT16


@pytest.mark.parametrize(("variance", "epsilon"), [(1e-9, 1e-12), (1e6, 1e-5)])
def test_the_variance_of_a_batch_normalization_stays_float(variance: float, epsilon: float) -> None:
    text = (
        "(float[N,2] x) => (float[N,2] y) <float[2] s = {1,1}, float[2] b = {0,0}, "
        f"float[2] m = {{0,0}}, float[2] v = {{{variance},1}}> "
        f"{{ r = Relu(x) y = BatchNormalization<epsilon={epsilon}>(r,s,b,m,v) }}"
    )
    role = "epsilon" if variance < 1 else "large constant"
    x: Array = np.array([[variance**0.5, 1]], np.float32)
    assert_close(text, {"x": x}, role=role, atol=0)


def test_the_epsilon_of_a_mean_variance_normalization_stays() -> None:
    text = """(float[1,2,2,2] x) => (float[1,2,2,2] y)
        { a = Relu(x) y = MeanVarianceNormalization(a) }"""
    model, ctx = Model.from_proto(parse(text, opset=9)), PassContext.isolated()
    get_pass("float_to_half").apply(model, ctx)
    why = "MeanVarianceNormalization unchanged: epsilon: 1e-09 is 0 in float16"
    assert any(why in str(remark) for remark in ctx.remarks)


LARGE = {
    "a factor that is filled in": ("{ s = Shape(x) k = ConstantOfShape<value = float[1] {1e6}>(s) "
                                   "m = Mul(x, k) y = Tanh(m) }", 1e-6),
    "a threshold": ("<float k = {1e3}> { m = Mul(x, k) b = ThresholdedRelu<alpha=70000.0>(m) "
                    "y = Div(b, k) }", 30.0),
    "a threshold of two": ("<float k = {1e3}> { m = Mul(x, k) "
                           "b = Shrink<lambd=70000.0, bias=70000.0>(m) y = Div(b, k) }", 30.0),
    "a factor": ("<float k = {1e6}> { m = Mul(x, k) y = Tanh(m) }", 1e-6),
    "a sum that is taken away": ("<float k = {1e5}> "
                                 "{ a = Relu(x) b = Add(a, k) y = Sub(b, k) }", 1.0),
    "a bound": ("<float l = {-1e5}, float h = {1e5}, float k = {1e-4}> "
                "{ a = Relu(x) c = Clip(a, l, h) y = Mul(c, k) }", 1e5),
    "weights": ("<float[4,4] w = {1e6,0,0,0, 0,1,0,0, 0,0,1,0, 0,0,0,1}> "
                "{ a = Relu(x) y = MatMul(a, w) }", 1.0),
}  # fmt: skip


@pytest.mark.parametrize("form", LARGE)
def test_large_constants_are_not_clamped(form: str) -> None:
    body, scale = LARGE[form]
    rows = ROWS * np.float32(scale)
    assert_close(f"{ROW} {body}", {"x": rows}, role="large constant", atol=2e-2)


def test_a_threshold_is_not_clamped() -> None:
    text = (
        "(float[4] x) => (bool[4] y) <float k = {1e5}, float h = {3}> "
        "{ m = Mul(x, h) y = Greater(m, k) }"
    )
    feeds = {"x": np.array([1, 3e4, 4e4, 1e5], np.float32)}
    proto, _ = converted(text)
    assert run_reference(proto, feeds)["y"].tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    "body",
    [
        "<float k = {-3e38}, bool[4] c = {1,0,1,1}> "
        "{ a = Relu(x) b = Where(c, a, k) y = Softmax(b) }",
        "<float[4] k = {-3e38,0,0,0}> { a = Relu(x) b = Add(a, k) y = Softmax(b) }",
        "<float[4] k = {0,-3e38,0,0}> { a = Relu(x) b = Max(a, k) y = Softmax(b) }",
        "<float l = {-1e9}> { a = Relu(x) b = Clip(a, l) y = Softmax(b) }",
        "<float k = {-1e9}, int64[4] p = {0,0,0,0}> "
        "{ a = Relu(x) b = Pad(a, p, k) y = Softmax(b) }",
        "<float[4] k = {-1e9,0,0,0}> { a = Relu(x) b = Add(a, k) e = Exp(b) y = Tanh(e) }",
        "<float h = {3.4e38}, float l = {0}> { a = Relu(x) b = Clip(a, l, h) y = Tanh(b) }",
        "<bool[4] c = {1,0,1,1}> { a = Relu(x) s = Shape(a) "
        "k = ConstantOfShape<value = float[1] {-1e9}>(s) b = Where(c, a, k) y = Softmax(b) }",
    ],
)
def test_masks_and_bounds_of_no_size_are_clamped(body: str) -> None:
    _, kept = converted(f"{ROW} {body}")
    assert not any("large constant" in each for each in kept)


@pytest.mark.parametrize(
    "body",
    ["m = Add(p, p) s = Add(a, m)", "m = Add(a, p) s = Add(m, p)", "m = Add(a, p) s = Sub(m, q)"],
)
def test_masks_that_are_added_stay_finite(body: str) -> None:
    """The first row is masked as a whole, twice."""
    text = (
        "(float[2,4] x, float[2,1] f) => (float[2,4] y) <float k = {-1e9}, float l = {1e9}> "
        f"{{ a = Relu(x) p = Mul(f, k) q = Mul(f, l) {body} y = Softmax(s) }}"
    )
    feeds = {"x": ROWS[1:], "f": np.array([[1], [0]], np.float32)}
    assert_close(text, feeds, role="mask")


def test_indices_that_floats_compute_are_right() -> None:
    text = (
        "(float[N,2] x, int64[2] p) => (float[2,2] y) <float k = {1}> "
        "{ f = Cast<to=1>(p) g = Sub(f, k) i = Cast<to=7>(g) r = Relu(x) y = Gather(r, i) }"
    )
    x: Array = np.arange(6000, dtype=np.float32).reshape(3000, 2) % 1024
    feeds = {"x": x, "p": np.array([2050, 3000])}
    assert_close(text, feeds, role="index or shape", atol=0)


def test_scales_that_are_computed_are_right() -> None:
    text = (
        "(float[1,1,5,5] x, float[2] t) => (float[1,1,H,W] y) <float[2] one = {1,1}, "
        "int64[1] b = {2}, int64[1] e = {4}> { s = Shape(x) h = Slice(s, b, e) f = Cast<to=1>(h) "
        "q = Div(t, f) c = Concat<axis=0>(one, q) r = Relu(x) y = Resize<mode='nearest'>(r, , c) }"
    ).replace("'", '"')
    x: Array = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)
    assert_close(text, {"x": x, "t": np.array([7, 9], np.float32)}, role="index or shape")


@pytest.mark.parametrize("past", [16, 200, 1000, 3000])
@pytest.mark.parametrize("product", ["Mul(g, w)", "MatMul(g, w)"])
def test_angles_of_far_positions_are_right(past: int, product: str) -> None:
    text = (
        "(int64[N] p, float[N,2] x) => (float[N,2] y) <float[1,2] w = {1, 0.1}, int64[1] u = {1}> "
        f"{{ f = Cast<to=1>(p) g = Unsqueeze(f, u) a = {product} c = Cos(a) r = Relu(x) "
        "y = Mul(r, c) }"
    )
    p = np.arange(past, past + 4)
    assert_close(text, {"p": p, "x": np.ones((4, 2), np.float32)}, role="position", atol=2e-3)


def test_angles_of_a_time_step_stay_float() -> None:
    text = (
        "(float[N,1] t, float[N,2] x) => (float[N,2] y) <float[1,2] w = {1, 0.1}> "
        "{ a = MatMul(t, w) s = Sin(a) r = Relu(x) y = Mul(r, s) }"
    )
    t: Array = np.array([[0], [16], [999]], np.float32)
    assert_close(text, {"t": t, "x": np.ones((3, 2), np.float32)}, role="position", atol=2e-3)


def test_what_weights_compute_of_an_input_is_no_position() -> None:
    text = (
        "(float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}> "
        "{ a = MatMul(x, w) b = Exp(a) c = Sin(b) y = MatMul(c, w) }"
    )
    proto, kept = converted(text)
    assert not any("position" in each for each in kept)
    assert [node.op_type for node in proto.graph.node].count("Cast") == 2


def test_positions_that_a_range_counts_are_compared_in_float() -> None:
    text = (
        "(int64 n, float[1] x) => (bool[N] y) <float zero = {0}, float one = {1}> "
        "{ m = Cast<to=1>(n) r = Range(zero, m, one) s = Sub(m, one) y = Equal(r, s) }"
    )
    proto, _ = converted(text)
    found = run_reference(proto, {"n": np.array(3000), "x": np.ones(1, np.float32)})["y"]
    assert found.nonzero()[0].tolist() == [2999]


def test_a_mask_of_integers_is_no_position() -> None:
    """In float its product would be -inf as a half, and a row of these NaN."""
    text = (
        "(float[N,4] x, int64[N,4] m) => (float[N,4] y) <float one = {1}, float k = {-3e38}> "
        "{ r = Relu(x) f = Cast<to=1>(m) n = Sub(one, f) b = Mul(n, k) a = Add(r, b) "
        "y = Softmax(a) }"
    )
    proto, kept = converted(text)
    assert not any("position" in each for each in kept)
    feeds = {"x": ROWS, "m": np.zeros((3, 4), np.int64)}
    assert np.isfinite(run_reference(proto, feeds)["y"]).all()


@pytest.mark.parametrize(
    "body", ["p = Softmax(r) y = Log(p)", "p = Sigmoid(r) q = Sub(one, p) y = Log(q)"]
)
def test_a_probability_that_a_logarithm_reads_stays_float(body: str) -> None:
    x: Array = np.array([[0, 1, 2, 14]], np.float32)
    text = f"{ROW} <float one = {{1}}> {{ r = Relu(x) {body} }}"
    assert_close(text, {"x": x}, role="probability", atol=2e-2)


@pytest.mark.parametrize("name", ["float_to_half", "float_to_mixed"])
def test_dtypes_that_a_result_has_of_its_input_are_written_out(name: str) -> None:
    for made in ("EyeLike", "RandomUniformLike", "RandomNormalLike", "Bernoulli"):
        model = Model.from_proto(
            parse(
                "(float[3,3] x) => (float[3,3] y, float[3,3] z) "
                f"{{ s = Sigmoid(x) y = {made}(s) z = Sin(s) }}",
                opset=17,
            )
        )
        get_pass(name).apply(model)
        onnx.checker.check_model(model.to_proto(), full_check=True)
        (node,) = model.main.nodes_of(made)
        assert (node.attr("dtype") or 1, node.output.dtype) == (1, 1)


@pytest.mark.parametrize("name", ["float_to_half", "float_to_mixed", "float_to_bfloat16"])
def test_models_that_cannot_be_narrower_say_why(name: str) -> None:
    doubles = "(double[2] x) => (double[2] y) { a = Exp(x) y = Relu(a) }"
    assert_unchanged(name, doubles, because="no node computes in float, but in double")
    old = "(float[2] x) => (float[2] y) { a = Exp(x) y = Relu(a) }"
    model, ctx = Model.from_proto(parse(old, opset=5)), PassContext.isolated()
    get_pass(name).apply(model, ctx)
    assert [node.op_type for node in model.main.nodes] == ["Exp", "Relu"]
    reasons = ("names dtypes by strings: convert to opset 6", "Cast has no bfloat16")
    assert any(reason in str(remark) for remark in ctx.remarks for reason in reasons)


@pytest.mark.parametrize("seed", range(12))
def test_random_epsilons_lose_nothing(seed: int) -> None:
    """Scalars and vectors, added or as a bound, before a divisor, a root or a logarithm."""
    source = np.random.default_rng(seed)
    number = 10.0 ** source.uniform(-12, -6)
    shape, values = ("float", f"{number}")
    if source.integers(2):
        shape = "float[4]"
        values = ", ".join(f"{value:.6g}" for value in number * 10.0 ** source.uniform(0, 4, 4))
    guard = source.choice(["b = Add(a, e)", "b = Max(a, e)", "c = Add(e, a) b = Identity(c)"])
    use = source.choice(
        ["y = Div(a, b)", "r = Reciprocal(b) y = Mul(r, a)", "y = Log(b)",
         "s = Sqrt(b) t = Sqrt(a) y = Div(t, s)"]
    )  # fmt: skip
    head = source.choice(["a = Abs(x)", "q = Mul(x, x) a = ReduceMean<axes=[1]>(q)"])
    text = f"(float[N,4] x) => (float[N,K] y) <{shape} e = {{{values}}}> {{ {head} {guard} {use} }}"
    rows = ROWS * np.float32(10.0 ** source.uniform(-1, 2))
    rows[0] = 0
    assert_close(text, {"x": rows}, role="", atol=1e-2)


@pytest.mark.parametrize("seed", range(8))
def test_random_arithmetic_on_positions_is_exact(seed: int) -> None:
    source = np.random.default_rng(seed)
    steps, value = [], "f"
    for at in range(int(source.integers(1, 5))):
        number = f"c{source.integers(3)}"
        step = source.choice(["Add({}, {})", "Sub({}, {})", "Mul({}, {})", "Max({}, {})"])
        steps.append(f"v{at} = {step.format(value, number)}")
        value = f"v{at}"
    text = (
        "(float[5000] x, int64[3] p) => (float[3] y, float[3] z) <int64 a = {0}, "
        "int64 b = {4999}, float c0 = {1}, float c1 = {0.5}, float c2 = {2}> "
        f"{{ f = Cast<to=1>(p) {' '.join(steps)} i = Cast<to=7>({value}) r = Relu(x) "
        f"at = Clip(i, a, b) y = Gather(r, at) s = Sin({value}) h = Relu(s) z = Mul(h, h) }}"
    )
    x = source.integers(0, 1024, 5000).astype(np.float32)
    feeds: dict[str, Array] = {"x": x, "p": source.integers(1000, 4000, 3)}
    assert_close(text, feeds, role="index or shape")
