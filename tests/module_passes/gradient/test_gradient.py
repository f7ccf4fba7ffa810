from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest

from tests.extensions.gradients.differences import (
    OnnxRuntime,
    Reference,
    largest_error,
    with_gradients,
)
from tests.rollback import assert_undone
from tiered import Expr, Model, Step, UsageError, get_pass, gradient_rule
from tiered.extensions.gradients.rule_registry import GRADIENTS, NoGradient
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "gradient"

LOSS = """(float[2,3] x) => (float loss) <float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float b = {1}> {
    h = MatMul(x, w)  t = Tanh(h)  s = Mul(t, b)  loss = ReduceSum <keepdims = 0> (s) }"""

LINEAR = "(float[2,3] x, float[3,4] w) => (float[2,4] y) { y = MatMul(x, w) }"

TYPED = """(float[2] x) => (float y, float z) {
    y = ReduceSum <keepdims = 0> (x)  z = ReduceMax <keepdims = 0> (x) }"""


def made(text: str, **options: Any) -> onnx.ModelProto:
    model = get_pass(PASS, **options)(parse(text))
    assert isinstance(model, onnx.ModelProto)
    onnx.checker.check_model(model, full_check=True)
    return model


def names(entries: Sequence[onnx.ValueInfoProto]) -> list[str]:
    return [info.name for info in entries]


def test_the_gradient_of_a_tanh() -> None:
    """No runtime: it has an output more; tests/extensions/gradients hold its numbers against differences."""
    assert_rewrites(
        PASS,
        "(float x) => (float loss) { loss = Tanh(x) }",
        '(float x) => (float loss, float "grad/x") <float one = {1}, int64[0] dims = {}>'
        " { loss = Tanh(x) seed = ConstantOfShape<value = float[1] {1}>(dims)"
        " t = Mul(loss, loss) d = Sub(one, t)"
        ' g = Mul(seed, d) "grad/x" = Identity(g) }',
        runtime="none",
        of=["loss"],
    )


def test_gradients_are_appended_to_the_outputs_in_the_order_of_the_targets() -> None:
    model = made(LOSS, of=["loss"], with_respect_to=["w", "x", "b"])
    assert names(model.graph.output) == ["loss", "grad/w", "grad/x", "grad/b"]
    shapes = [[dim.dim_value for dim in info.type.tensor_type.shape.dim]
              for info in model.graph.output]  # fmt: skip
    assert shapes == [[], [3, 4], [2, 3], []]


def test_by_default_the_inputs_of_the_only_output() -> None:
    assert names(made(LOSS).graph.output) == ["loss", "grad/x"]


def test_wildcards_choose_among_inputs_and_weights() -> None:
    model = made(LOSS, with_respect_to=["*"])
    assert names(model.graph.output) == ["loss", "grad/x", "grad/w", "grad/b"]


def test_an_inner_value_may_be_a_target() -> None:
    model = made(LOSS, with_respect_to=["h"])
    assert names(model.graph.output) == ["loss", "grad/h"]


def test_a_seed_input_makes_a_vector_jacobian_product() -> None:
    model = made(LINEAR, seed="input")
    assert names(model.graph.input) == ["x", "w", "seed/y"]
    random = np.random.default_rng(0)
    x, w, v = (random.standard_normal(shape).astype(np.float32)
               for shape in ((2, 3), (3, 4), (2, 4)))  # fmt: skip
    found = OnnxRuntime(model)({"x": x, "w": w, "seed/y": v})
    np.testing.assert_allclose(found["grad/x"], v @ w.T, rtol=1e-5)
    np.testing.assert_allclose(found["grad/w"], x.T @ v, rtol=1e-5)


def test_seeds_of_ones_add_up_the_elements_and_several_outputs() -> None:
    model = made(TYPED, of=["y", "z"], seed="ones")
    found = OnnxRuntime(model)({"x": np.array([1, 2], np.float32)})
    np.testing.assert_array_equal(found["grad/x"], [1, 2])


def test_elements_that_are_equal_share_the_gradient_of_a_maximum() -> None:
    model = made(TYPED, of=["z"])
    found = OnnxRuntime(model)({"x": np.array([3, 3], np.float32)})
    np.testing.assert_array_equal(found["grad/x"], [0.5, 0.5])


def test_a_target_without_a_path_has_the_gradient_zero() -> None:
    text = "(float[N] x, float[N] z) => (float y) { y = ReduceSum <keepdims = 0> (x) }"
    found = OnnxRuntime(made(text))({"x": np.ones(2, np.float32), "z": np.full(2, np.nan, "f4")})
    np.testing.assert_array_equal(found["grad/z"], [0, 0])


def test_a_gradient_that_is_an_operand_gets_its_own_name() -> None:
    text = "(float a, float b) => (float y) { y = Mul(a, b) }"
    found = OnnxRuntime(made(text))({"a": np.array(2, "f4"), "b": np.array(3, "f4")})
    assert (found["grad/a"].item(), found["grad/b"].item()) == (3, 2)


def test_a_hessian_vector_product_is_the_gradient_of_a_gradient() -> None:
    cubes = "(double[3] x) => (double y) <double e = {3}> {" \
        " p = Pow(x, e)  s = ReduceSum <keepdims = 0> (p)  y = Mul(s, s) }"  # fmt: skip
    first = made(cubes, higher_order=True)
    second = get_pass(PASS, of=["grad/x"], with_respect_to=["x"], seed="input")(first)
    assert isinstance(second, onnx.ModelProto)
    x, v = np.array([1.0, 2.0, -1.0]), np.array([0.5, -1.0, 2.0])
    found = Reference(second)({"x": x, "seed/grad/x": v})
    hessian = 12 * (x**3).sum() * np.diag(x) + 18 * np.outer(x**2, x**2)
    np.testing.assert_allclose(found["grad/grad/x"], hessian @ v, rtol=1e-9)


def test_two_nodes_and_two_bodies_that_read_one_weight_add_their_gradients() -> None:
    text = """(double[3] x, double[3] w, bool c) => (double[3] y) {
        a = Mul(x, w)
        b = If(c) <then_branch = t () => (double[3] p) { p = Mul(a, w) },
                   else_branch = e () => (double[3] q) { q = Identity(w) }>
        y = Mul(b, w) }"""
    for chosen in (True, False):
        assert largest_error(text, feeds={"c": np.array(chosen)}) < 1e-5


def test_calls_of_local_functions_are_differentiated() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (double[3] x) => (double[3] y) { y = own.f(x) }
        <domain: "own", opset_import: ["" : 21]> f (a) => (b) { t = Sin(a)  b = Mul(t, a) }"""
    assert largest_error(text) < 1e-5


def test_a_value_or_node_to_stop_at_is_a_constant() -> None:
    text = """(float[2] x) => (float y) {
        [detach] d = Tanh(x)  p = Mul(d, x)  y = ReduceSum <keepdims = 0> (p) }"""
    x = np.array([1, 2], np.float32)
    for stop in ("detach", "d"):
        found = OnnxRuntime(made(text, stop_at=[stop]))({"x": x})
        np.testing.assert_allclose(found["grad/x"], np.tanh(x), rtol=1e-5)


def test_an_own_operator_gets_an_own_rule() -> None:
    text = """(float[2] x) => (float y) {
        h = com.microsoft.QuickGelu <alpha = 1.0> (x)  y = ReduceSum <keepdims = 0> (h) }"""
    with pytest.raises(NoGradient, match=r"node 'h' \(com.microsoft::QuickGelu\) has no gradient"):
        made(text)

    @gradient_rule("QuickGelu", domain="com.microsoft")
    def quick_gelu(step: Step) -> Sequence[Expr | None]:
        s = step.x.call("Sigmoid", step.x)
        return (step.g * (s + step.x * s * (1 - s)),)

    try:
        found = OnnxRuntime(made(text))({"x": np.array([0, 1], np.float32)})
        np.testing.assert_allclose(found["grad/x"], [0.5, 0.92767], rtol=1e-4)
        with pytest.raises(UsageError, match="there is a gradient rule for com"):
            gradient_rule("QuickGelu", domain="com.microsoft")(quick_gelu)
    finally:
        GRADIENTS.remove("QuickGelu", "com.microsoft")


def test_a_second_run_adds_nothing() -> None:
    assert_unchanged(PASS, made(LOSS), because="the gradients are outputs", of=["loss"])


def test_it_is_undone_whole() -> None:
    assert_undone(PASS, LOSS, with_respect_to=["*"])


GROWING = """(float[a,2] x, int64 n) => (float[K,2] y) <bool t = {1}> {
    y = Loop(n, t, x) <body = b (int64 i, bool c, float[a,2] st) => (bool d, float[b,2] so) {
        d = Identity(c)  so = Concat <axis = 0> (st, x) }> }"""


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (r"\['a', 2\]", "2", GROWING),
        (r"\[1, 2\]", r"\[2, 2\]", GROWING.replace("float[a,2] x", "float[1,2] x")),
        (r"\['a', 2\]", "b", GROWING.replace("Concat <axis = 0>", "com.acme.Grow")),
    ],
)
def test_a_loop_that_may_change_the_shape_of_its_state_has_no_gradient(
    before: str, after: str, text: str
) -> None:
    with pytest.raises(NoGradient, match=f"shape of state 'st': {before} before it, .*{after}"):
        made(text, seed="ones", stop_at=["so"] if "acme" in text else [])


def test_a_loop_that_keeps_the_symbolic_shape_of_its_state_has_a_gradient() -> None:
    text = """(double[a,2] x) => (double[K,2] y) <bool t = {1}, int64 n = {3}> {
        y = Loop(n, t, x) <body = b (int64 i, bool c, double[p,2] st) => (bool d, double[q,2] so) {
            d = Identity(c)  m = Mul(st, x)  so = Sin(m) }> }"""
    assert largest_error(text, in_float=True) < 1e-2


def test_a_loop_with_a_sequence_as_its_state_has_no_gradient() -> None:
    text = """(float[2] x) => (float[K] y) <bool t = {1}, int64 n = {3}> {
        s = SequenceConstruct(x)
        u = Loop(n, t, s) <body = b (int64 i, bool c, seq(float[2]) st) =>
            (bool d, seq(float[2]) so) { d = Identity(c)  so = SequenceInsert(st, x) }>
        y = ConcatFromSequence <axis = 0> (u) }"""
    with pytest.raises(NoGradient):
        made(text, seed="ones")


TWO = """(float[2] x) => (float l1, float l2) {
    a = Mul(x, x)  l1 = ReduceSum <keepdims = 0> (a)
    b = Sin(x)  l2 = ReduceSum <keepdims = 0> (b) }"""


def test_the_gradient_of_another_output_is_another_gradient() -> None:
    first = made(TWO, of=["l1"])
    second = get_pass(PASS, of=["l2"])(first)
    assert isinstance(second, onnx.ModelProto)
    assert names(second.graph.output) == ["l1", "l2", "grad/x", "grad/l2/x"]
    x = np.array([0.5, 2], np.float32)
    found = OnnxRuntime(second)({"x": x})
    np.testing.assert_allclose(found["grad/x"], 2 * x)
    np.testing.assert_allclose(found["grad/l2/x"], np.cos(x), rtol=1e-6)
    with pytest.raises(UsageError, match="tensors 'grad/x' and 'grad/l2/x' already; rename one"):
        get_pass(PASS, of=["l2"], seed="ones", stop_at=["b"])(second)


def test_an_output_that_is_called_a_gradient_is_not_taken_for_one() -> None:
    text = """(float[2] x) => (float y, float[2] g) {
        g = Neg(x)  h = Tanh(x)  y = ReduceSum <keepdims = 0> (h) }"""
    model = Model.from_proto(parse(text))
    model.main.rename_value(model.main.values["g"], "grad/x")
    changed = get_pass(PASS, of=["y"])(model).to_proto()
    assert names(changed.graph.output) == ["y", "grad/x", "grad/y/x"]
    x = np.array([1, 2], np.float32)
    found = OnnxRuntime(changed)({"x": x})
    np.testing.assert_array_equal(found["grad/x"], -x)
    np.testing.assert_allclose(found["grad/y/x"], 1 - np.tanh(x) ** 2, rtol=1e-5)


@pytest.mark.parametrize("seed", ["input", "ones"])
def test_a_second_run_with_seeds_adds_nothing(seed: str) -> None:
    options: dict[str, Any] = {"of": ["y"], "with_respect_to": ["x", "w"], "seed": seed}
    first = made(LINEAR, **options)
    assert_unchanged(PASS, first, because="the gradients are outputs", **options)


def test_another_seed_is_another_gradient() -> None:
    first = made(LINEAR, seed="ones")
    second = get_pass(PASS, of=["y"], with_respect_to=["x"], seed="input")(first)
    assert isinstance(second, onnx.ModelProto)
    assert names(second.graph.output)[-1] == "grad/y/x"


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "(float[2] x) => (float y, int64 z) { y = ReduceSum<keepdims=0>(x)  z = Size(x) }": (
        {"of": ["z"]}, UsageError, "'z' is int64.*expected a floating-point tensor"),
    "(float[2] x) => (float[2] y) { y = Tanh(x) }": (
        {}, UsageError, "expected a single number; seed=ones"),
    TYPED: ({}, UsageError, "chooses among the outputs y, z"),
    LOSS: ({"with_respect_to": ["v*"]}, UsageError, "no float input or initializer matches 'v"),
    "(float[2] x) => (float y, float[2] m) { m, k = Dropout(x)  y = ReduceSum<keepdims=0>(m) }": (
        {"of": ["q"]}, UsageError, "the main graph has no tensor 'q'"),
    "(float[2] x) => (float[2] y) { y = com.acme.Quantile(x) }": (
        {"seed": "ones"}, NoGradient, r"node 'y' \(com.acme::Quantile\).*there is no rule for"),
    """(float[1,1,H,W] x) => (float y) {
        m = AveragePool <kernel_shape = [2,2], strides = [2,2], ceil_mode = 1> (x)
        y = ReduceSum <keepdims = 0> (m) }""": (
        {}, NoGradient, r"node 'm' \(AveragePool\).*ceil_mode needs known spatial dims; name it in stop_at"),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_refusals_name_the_value_or_the_node(text: str) -> None:
    options, error, message = REFUSED[text]
    with pytest.raises(error, match=message):
        made(text, **options)


def test_a_name_that_an_inner_tensor_has_is_not_taken_from_it() -> None:
    text = """(float[2] x) => (float y) {
        h = Tanh(x)  y = ReduceSum <keepdims = 0> (h) }"""
    model = Model.from_proto(parse(text))
    model.main.rename_value(model.main.values["h"], "grad/x")
    get_pass(PASS)(model)
    assert [value.name for value in model.main.outputs] == ["y", "grad/y/x"]


def test_a_rule_of_which_the_gradient_has_no_rule_is_refused_on_request() -> None:
    text = """(float[2] x) => (float y) {
        h = com.microsoft.QuickGelu <alpha = 1.0> (x)  y = ReduceSum <keepdims = 0> (h) }"""

    @gradient_rule("QuickGelu", domain="com.microsoft")
    def quick_gelu(step: Step) -> Sequence[Expr | None]:
        gelu = step.graph.op("com.microsoft").Gelu(step.x.value)
        return (step.g * step.of(gelu),)

    try:
        assert names(made(text).graph.output) == ["y", "grad/x"]
        with pytest.raises(NoGradient, match=r"\(com.microsoft::Gelu\) has no gradient"):
            made(text, higher_order=True)
    finally:
        GRADIENTS.remove("QuickGelu", "com.microsoft")


@pytest.mark.parametrize("opset", [13, 17, 21, 25])
def test_old_and_new_opsets(opset: int) -> None:
    text = """(double[2,3] x, double[3,4] w) => (double[2,4] y) {
        h = MatMul(x, w)  y = Softmax(h) }"""
    assert largest_error(text, opset=opset) < 1e-5


def test_the_gradients_of_all_outputs_are_valid_in_float16() -> None:
    proto = parse("(float16[2,3] x, float16[3,4] w) => (float16[2,4] y) { y = MatMul(x, w) }")
    assert [info.type.tensor_type.elem_type for info in with_gradients(proto).graph.output] == [
        onnx.TensorProto.FLOAT16
    ] * 3
