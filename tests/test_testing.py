"""The assertions for passes must fail whenever a pass is wrong, as these are in some way."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
import pytest

from tiered import (
    Graph,
    Model,
    Pass,
    PassContext,
    Skip,
    Value,
    function_pass,
    module_pass,
    op,
    register,
    rewrite,
    var,
)
from tiered.passes.interface.registry import registry
from tiered.runtime import Session, make_inputs, run_reference
from tiered.support.errors import RuntimeFailure
from tiered.testing import _canonical, _feeds, assert_rewrites, assert_unchanged, parse

RELU_RELU = "(float[N] x) => (float[N] y) { h = Relu(x) y = Relu(h) }"
RELU = "(float[N] x) => (float[N] y) { y = Relu(x) }"
NEG = "(float[N] x) => (float[N] y) { y = Neg(x) }"


@rewrite(op.Relu(op.Relu(var.x)), opt_level=None)
def right(graph: Graph, x: Value) -> Value:
    """Rewrite as it should be."""
    return graph.op.Relu(x)


@rewrite(op.Relu(op.Relu(var.x)), opt_level=None)
def wrong(graph: Graph, x: Value) -> Value:
    """Change the outputs."""
    return graph.op.Neg(x)


@rewrite(op.Neg(var.x), opt_level=None)
def wrong_for_zero(graph: Graph, x: Value) -> Value:
    """Change the outputs for 0.0 alone, whose negative is -0.0."""
    return graph.op.Sub(np.zeros((), np.float32), x)


@rewrite(op.Neg(var.x), opt_level=None, numerics="reassociating")
def right_but_for_zero(graph: Graph, x: Value) -> Value:
    """Do as the one above, and promise less."""
    return graph.op.Sub(np.zeros((), np.float32), x)


@rewrite(op.Relu(op.Relu(var.x)), opt_level=None)
def fails(graph: Graph, x: Value) -> Value:
    """Make a model that is valid, and does not run."""
    return graph.op.Gather(x, np.array([1000], np.int64))


@rewrite(op.Relu(var.x), opt_level=None)
def declines(graph: Graph, x: Value) -> Value | Skip:
    """Give a reason."""
    return Skip("the {} does not suit me", "operand")


@function_pass(opt_level=None)
def one_at_a_time(graph: Graph, ctx: PassContext) -> None:
    """Remove a Relu of a Relu, and leave the next for the next run."""
    for node in graph.nodes_of("Relu"):
        before = node.inputs[0]
        if before is not None and before.producer is not None:
            with graph.rewrite("Relu(Relu(x)) => Relu(x)", node):
                graph.set_input(node, 0, before.producer.inputs[0])
                graph.prune([before.producer])
            return


@module_pass(opt_level=None)
def renames_the_output(model: Model, ctx: PassContext) -> None:
    """Change the interface without a word."""
    graph = model.main
    info = onnx.ValueInfoProto()
    info.CopyFrom(graph.output_infos[0])
    info.doc_string = "mine"
    graph.set_graph_outputs(graph.outputs, [info])


@module_pass(opt_level=None)
def breaks_the_model(model: Model, ctx: PassContext) -> None:
    """Make a model that onnx.checker rejects."""
    for node in model.main.nodes_of("Relu"):
        model.main.set_attribute(node, "mine", 1.0)


PASSES = (
    right, wrong, wrong_for_zero, right_but_for_zero, fails, declines, one_at_a_time,
    renames_the_output, breaks_the_model,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    made: list[Pass] = [register(pass_) for pass_ in PASSES]
    yield
    for pass_ in made:
        registry.unregister(pass_.name)


def test_a_pass_that_is_right_passes() -> None:
    assert_rewrites("right", RELU_RELU, RELU)


def test_another_result_than_the_one_expected_fails() -> None:
    with pytest.raises(AssertionError, match="right made"):
        assert_rewrites("right", RELU_RELU, NEG)


def test_names_and_order_that_nobody_sees_do_not_matter() -> None:
    interface = "(float[N] x) => (float[N] y, float[N] z)"
    assert_rewrites(
        "right",
        f"{interface} {{ h = Relu(x) k = Relu(h) y = Neg(k) z = Abs(k) }}",
        f"{interface} {{ other = Relu(x) z = Abs(other) y = Neg(other) }}",
    )


def test_a_constant_with_another_sign_of_zero_is_another_one() -> None:
    text = "(float[N] x) => (float[N] y) <float c = {%s}> { h = Relu(x) k = Relu(h) y = Add(k, c) }"
    after = text.replace("h = Relu(x) k = Relu(h)", "k = Relu(x)")
    assert_rewrites("right", text % "-0.0", after % "-0.0")
    with pytest.raises(AssertionError, match="right made"):
        assert_rewrites("right", text % "-0.0", after % "0.0")


def test_changed_outputs_fail() -> None:
    with pytest.raises(AssertionError, match="wrong changed the outputs: y: "):
        assert_rewrites("wrong", RELU_RELU, NEG)


def test_changed_outputs_are_not_seen_without_a_runtime() -> None:
    assert_rewrites("wrong", RELU_RELU, NEG, runtime="none")


def test_outputs_that_change_for_special_values_alone_fail() -> None:
    after = "(float[N] x) => (float[N] y) <float z = {0}> { y = Sub(z, x) }"
    with pytest.raises(AssertionError, match="wrong_for_zero changed the outputs"):
        assert_rewrites("wrong_for_zero", NEG, after)


def test_special_values_do_not_count_where_less_is_promised() -> None:
    after = "(float[N] x) => (float[N] y) <float z = {0}> { y = Sub(z, x) }"
    assert_rewrites("right_but_for_zero", NEG, after)


def test_a_model_that_fails_where_the_first_one_runs_fails() -> None:
    after = "(float[N] x) => (float[N] y) <int64[1] i = {1000}> { y = Gather(x, i) }"
    with pytest.raises(AssertionError, match="fails made a model that fails"):
        assert_rewrites("fails", RELU_RELU, after)


def test_a_pass_that_is_not_done_after_one_run_fails() -> None:
    three = "(float[N] x) => (float[N] y) { g = Relu(x) h = Relu(g) y = Relu(h) }"
    with pytest.raises(AssertionError, match="one_at_a_time is not done after one run"):
        assert_rewrites("one_at_a_time", three, RELU_RELU)
    assert_rewrites("one_at_a_time", RELU_RELU, RELU)


def test_a_changed_interface_fails() -> None:
    with pytest.raises(AssertionError, match="renames_the_output changed the outputs of the model"):
        assert_rewrites("renames_the_output", RELU, RELU)


def test_an_invalid_model_fails() -> None:
    with pytest.raises(onnx.checker.ValidationError, match="mine"):
        assert_rewrites(
            "breaks_the_model", RELU, "(float[N] x) => (float[N] y) { y = Relu<mine=1.0>(x) }"
        )


def test_a_pass_that_does_nothing_rewrites_nothing() -> None:
    with pytest.raises(AssertionError, match="right did nothing"):
        assert_rewrites("right", RELU, RELU)


def test_a_pass_that_leaves_a_model_alone_for_a_reason_passes() -> None:
    assert_unchanged("right", RELU)
    assert_unchanged("declines", RELU, because="the operand does not suit me")
    shown = RELU_RELU.replace("(float[N] y)", "(float[N] y, float[N] h)")
    assert_unchanged("right", shown, because="an inner value is a graph output")


def test_a_pass_that_does_something_does_not_leave_the_model_alone() -> None:
    with pytest.raises(AssertionError, match="where it should do nothing"):
        assert_unchanged("right", RELU_RELU)


def test_another_reason_or_none_is_not_the_reason() -> None:
    with pytest.raises(AssertionError, match=r"declines gave .*operand.*, not 'the weather'"):
        assert_unchanged("declines", RELU, because="the weather")
    with pytest.raises(AssertionError, match="right gave no reason, not 'the weather'"):
        assert_unchanged("right", RELU, because="the weather")


def test_text_gets_a_header_unless_it_has_one() -> None:
    assert parse(RELU, opset=13).opset_import[0].version == 13
    assert parse(f'<ir_version: 8, opset_import: ["" : 15]> g {RELU}').ir_version == 8
    contrib = parse("(float[N] x) => (float[N] y) { y = com.microsoft.Gelu(x) }")
    assert [entry.domain for entry in contrib.opset_import] == ["", "com.microsoft"]
    assert parse(contrib) is contrib


def test_text_that_does_not_parse_fails() -> None:
    with pytest.raises(AssertionError, match=r"the model text does not parse: \[ParseError"):
        parse("(float[N] x) => { }")


def test_a_pass_need_not_be_registered() -> None:
    @rewrite(op.Relu(op.Relu(var.x)), opt_level=None)
    def own(graph: Graph, x: Value, *, guarded: bool = False) -> Value | Skip:
        """Rewrite as it should be, if asked to."""
        return Skip("it is guarded") if guarded else graph.op.Relu(x)

    assert_rewrites(own, RELU_RELU, RELU)
    assert_unchanged(own, RELU_RELU, because="guarded", guarded=True)


def test_three_elements_see_a_nan() -> None:
    @rewrite(op.Not(op.Less(var.a, var.b)), opt_level=1)
    def opposite(graph: Graph, a: Value, b: Value) -> Value:
        """Forget that a NaN is neither less nor greater."""
        return graph.op.GreaterOrEqual(a, b)

    interface = "(float[3] a, float[3] b) => (bool[3] y)"
    with pytest.raises(AssertionError, match="opposite changed the outputs: y: 2 of 3 elements"):
        assert_rewrites(
            opposite,
            f"{interface} {{ t = Less(a, b)  y = Not(t) }}",
            f"{interface} {{ y = GreaterOrEqual(a, b) }}",
        )


def test_varied_values_show_what_ordinary_ones_do_not() -> None:
    @rewrite(op.Log(op.Softmax(var.x, axis=var.axis)), opt_level=3, numerics="reassociating")
    def hasty(graph: Graph, x: Value, axis: int) -> Value:
        """Make a number of -Inf, where elements of x are far apart."""
        return graph.op.LogSoftmax(x, axis=axis)

    interface = "(float[12,4] x) => (float[12,4] y)"
    with pytest.raises(AssertionError, match="hasty changed the outputs"):
        assert_rewrites(
            hasty,
            f"{interface} {{ s = Softmax(x) y = Log(s) }}",
            f"{interface} {{ y = LogSoftmax<axis=-1>(x) }}",
        )


def test_the_runtime_that_is_named_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Noted(Session):
        def __init__(self, model: onnx.ModelProto) -> None:
            asked.append("onnxruntime")
            super().__init__(model)

    def noted(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> Any:
        asked.append("reference")
        return run_reference(model, feeds)

    monkeypatch.setattr("tiered.testing.Session", Noted)
    monkeypatch.setattr("tiered.testing.run_reference", noted)
    assert_rewrites(right, RELU_RELU, RELU)
    assert set(asked) == {"onnxruntime"}
    asked.clear()
    assert_rewrites(right, RELU_RELU, RELU, runtime="reference")
    assert set(asked) == {"reference"}
    asked.clear()
    assert_rewrites(right, RELU_RELU, RELU, runtime="none")
    assert asked == []


def test_ordinary_inputs_come_first_then_special_and_varied_ones_then_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kinds: list[str] = []

    def noted(model: onnx.ModelProto, **how: Any) -> Any:
        named = [name for name in ("special", "varied") if how.get(name)]
        kinds.append(" ".join(named) or ("empty" if "dims" in how else "ordinary"))
        return make_inputs(model, **how)

    monkeypatch.setattr("tiered.testing.make_inputs", noted)
    model = parse("(float[N] x) => (float[N] y) { y = Relu(x) }")
    assert len(list(_feeds(model, has_specials=True))) == 6
    assert kinds == ["ordinary", *["special"] * 3, "varied", "empty"]
    kinds.clear()
    assert len(list(_feeds(model, has_specials=False))) == 5
    assert kinds == ["ordinary", "ordinary", "varied", "varied", "empty"]


CANONICAL = """
input x float[2,3]
input p bool[]
input d float[1] float32[1] [4.0]
c0.3 = float32[] [6.0]
v0.4 = .Clip(x, , c0.3)
c0.5 = float32[3] [1.0, 2.0, 3.0]
v0.6 = .If(p)
then_branch:
  v1.7 = .Neg(v0.4)
  output v1.7
else_branch:
  v1.7 = .Add(v0.4, c0.5)
  output v1.7
v0.7 = own.f(c0.5)
v0.8 = .Abs(x)
v0.9 = .Constant() value= float32[1] [7.0]
unused float32[] [5.0]
output v0.6 as y
output v0.7 as z
('own', 'f', '') input in0.0
, v0.1 = .Split(in0.0) num_outputs=2
v0.2 = .Sin(v0.1)
output v0.2"""


def test_models_are_compared_as_text_without_internal_names() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float[2,3] x, bool p, float[1] d) => (float[2,3] y, float[3] z)
        <float[3] w = {1,2,3}, float[1] d = {4}, float u = {5}, float s = {6}> {
            b = Clip(x, , s)
            y = If (p) <then_branch = t () => (float[2,3] q) { q = Neg(b) },
                        else_branch = e () => (float[2,3] r) { r = Add(b, w) }>
            lone = Abs(x)  k = Constant<value = float[1] {7}>()  z = own.f(w) }
        <domain: "own", opset_import: ["" : 21]>
        f (v) => (o) { m, n = Split<num_outputs = 2>(v)  o = Sin(n) }"""
    given = onnx.parser.parse_model(text)
    given.functions[0].node[0].output[0] = ""
    lines = [line.rstrip() for line in _canonical(given).split("\n")]
    assert lines == CANONICAL.strip().split("\n")


def test_a_model_that_fails_on_ordinary_inputs_is_no_model_to_test_with() -> None:
    with pytest.raises(RuntimeFailure):
        assert_rewrites(
            "right",
            "(float[2] x) => (float[N] y) <int64[1] i = {9}> {"
            " a = Gather(x, i)  h = Relu(a)  y = Relu(h) }",
            "(float[2] x) => (float[N] y) <int64[1] i = {9}> { a = Gather(x, i)  y = Relu(a) }",
        )
