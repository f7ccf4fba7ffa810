"""A model that amplifies last bits is no reason to blame a pass; a wrong pass still is."""

from typing import Any

import numpy as np
import onnx
import pytest

from tests.small import proto
from tests.verify.in_process import in_process
from tiered import Graph, Skip, Value, VerificationError, op, optimize_model, rewrite, var
from tiered.extensions.debug import bisect
from tiered.runtime import QUANTIZED
from tiered.runtime.compare.outputs import Comparison, OutputDifference
from tiered.support.numerics import EXACT, Numerics, Promise
from tiered.verify.baseline import RunnableModel
from tiered.verify.last_bits import (
    _changed_nodes_amplify,
    _is_like,
    _moved,
    _narrowest,
    _Probe,
    _probed,
    _shown,
    _stepped,
    _with_moved_constants,
    amplification,
)
from tiered.verify.model_pair import ModelPair

THIRD = np.float32(1) / np.float32(3)
X = np.linspace(1, 2, 999, dtype=np.float32)
# x / 3 and x * (1 / 3) are on two sides of a threshold that one of them is.
AT = int(np.flatnonzero(X / np.float32(3) < X * THIRD)[0])
EDGE = repr(float(X[AT] / np.float32(3)))
CLIFF = f"""g (float[999] x) => (int64[1,n] y) <float three = {{3}}, float edge = {{{EDGE}}}> {{
    a = Neg(x)  b = Neg(a)  d = Div(b, three)  c = Greater(d, edge)  y = NonZero(c) }}"""
GAP = """g (float[999] x) => (float[999] y) <float three = {3}, float k = {100000}> {
    d = Div(x, three)  f = Mul(d, k)  g = Floor(f)  h = Sub(f, g)  y = Mul(h, k) }"""


REASSOCIATING = Promise(Numerics.REASSOCIATING)
INPUT = "an input moved by one ulp"
CONSTANT = "a constant moved by one ulp"
STEP = "an input quantised once more"


def differing(name: str = "y", **held: Any) -> OutputDifference:
    return OutputDifference(name, **{"ok": False, "max_abs": 16.0, "max_ulp": 9, **held})


def test_a_difference_is_like_that_of_a_probe_of_its_size() -> None:
    probed = differing(max_abs=1.0)
    shape = differing(reason="shape [1] is not [2]")
    rows: list[tuple[OutputDifference, OutputDifference | None, bool]] = [
        (differing(), probed, True),
        (differing(max_abs=16.1), probed, False),
        (differing(max_abs=99.0), shape, True),
        (differing(max_abs=99.0, reason="shape [1] is not [2]"), probed, True),
        (differing(max_abs=99.0, max_ulp=None), probed, True),
        (differing(max_abs=0.0, nan_mismatch=1), probed, False),
        (differing(max_abs=0.0, nan_mismatch=1), differing(nan_mismatch=1), True),
        (differing(max_abs=0.0), differing(nan_mismatch=1), True),
        (differing(max_abs=0.0), None, False),
    ]
    for output, other, expected in rows:
        assert _is_like(output, other, 16.0) is expected, (output, other)


def test_all_that_differs_is_like_a_probe() -> None:
    def shown(outputs: list[OutputDifference], *whats: str) -> str | None:
        probes = [
            _Probe(what, Comparison([differing(max_abs=1.0, ok=what == "ok")], Numerics.EXACT))
            for what in whats
        ]
        found = _shown(Comparison(outputs, Numerics.EXACT), probes)
        return None if found is None else found.what

    for outputs, whats, expected in (
        ([differing()], (INPUT,), INPUT),
        ([differing()], (STEP, CONSTANT), CONSTANT),
        ([differing(max_abs=2.0)], (STEP, CONSTANT), STEP),
        ([differing(), differing("z", ok=True)], (INPUT,), INPUT),
        ([differing(), differing("z")], (INPUT,), None),
        ([differing("z")], (INPUT,), None),
        ([differing()], ("ok",), None),
        ([differing()], (), None),
    ):
        assert shown(list(outputs), *whats) == expected, (outputs, whats)


def pair(before: str, after: str, x: Any, promise: Promise = REASSOCIATING) -> ModelPair:
    _, worker = in_process()
    one, two = (
        RunnableModel(proto(f"g (float[N] x) => (float[N] y) {text}")) for text in (before, after)
    )
    return ModelPair(worker, one, two, {"x": np.asarray(x, np.float32)}, promise)


def test_probes_are_runs_that_differ() -> None:
    stepwise = Promise(Numerics.REASSOCIATING, steps=1)
    whole = np.arange(1, 9)
    for text, promise, expected in (
        ("{ y = Floor(x) }", REASSOCIATING, [INPUT] * 2),
        ("{ y = Floor(x) }", stepwise, [STEP] * 2 + [INPUT] * 2),
        ("{ y = Neg(x) }", REASSOCIATING, []),
        ("<float[8] c = {1,2,3,4,5,6,7,8}> { i = Floor(c)  s = Sign(x)  y = Mul(i, s) }",
         REASSOCIATING, [CONSTANT] * 2),
    ):  # fmt: skip
        found = [probe.what for probe in _probed(pair(text, text, whole, promise))]
        assert found == expected, (text, promise)


def test_what_the_changed_nodes_show() -> None:
    floor = "{ a = Floor(x)  y = Neg(a) }"
    third = "<float c = {41}, float s = {1.5}> { d = Div(x, c)  f = Floor(d)  y = Mul(f, s) }"
    inverse = third.replace("{41}", f"{{{1 / 41!r}}}").replace("Div", "Mul")
    both = third.replace("c = {41}", f"k = {{{1 / 41!r}}}").replace(
        "d = Div(x, c)  f = Floor(d)", "e = Mul(x, k)  f = Floor(e)"
    )
    at = np.arange(1, 1000) * 41
    for before, after, expected in (
        (floor, floor, ""),
        (floor, "{ a = Neg(x)  y = Neg(a) }", ""),
        (third, inverse, "the 1 changed nodes agree: 1 output agree (reassociating"),
        (third, both, f"the changed nodes differ by what {INPUT} changes, too"),
    ):
        found = _changed_nodes_amplify(pair(before, after, at))
        assert found.startswith(expected), (before, after)
        assert bool(found) == bool(expected), (before, after)


def test_the_words_of_what_a_model_amplifies() -> None:
    def said_of(after: str, promise: Promise = REASSOCIATING) -> str:
        text = "<float c = {41}, float s = {1.5}> { d = Div(x, c)  f = Floor(d)  y = Mul(f, s) }"
        models = pair(text, after, np.arange(1, 1000) * 41, promise)
        return amplification(models, models.compared())

    inverse = (
        f"<float k = {{{1 / 41!r}}}, float s = {{1.5}}> {{"
        " d = Mul(x, k)  f = Floor(d)  y = Mul(f, s) }"
    )
    assert said_of(inverse).startswith(
        f"the model amplifies last bits: {INPUT} changes its outputs as well (y: "
    )
    stepwise = Promise(Numerics.REASSOCIATING, steps=1)
    assert said_of(inverse, stepwise).startswith(
        f"the model amplifies steps of a quantisation: {STEP} changes its outputs as well (y: "
    )
    assert said_of(inverse, EXACT) == ""
    assert said_of("{ y = Neg(x) }") == ""


def test_integers_and_floats_are_moved_by_steps_of_their_own() -> None:
    for kind in (np.uint8, np.int8):
        given = np.full(99, 7, kind)
        moved = _stepped(given, 0)
        assert moved.dtype == kind
        assert np.unique(moved.astype(int) - 7).tolist() == [-1, 0, 1], kind
    for stays in ([1.0], np.zeros(0, np.float32), np.zeros(3, np.int32), np.array([1, np.nan])):
        assert _stepped(stays, 0) is stays
    assert np.abs(_stepped(np.array([0, 255.0]), 3) - [0, 255]).max() <= 0.5
    assert _stepped(np.array([0, 2550.0]), 0).tolist() != [0, 2550]


def test_small_inline_constants_are_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiered.verify.last_bits._MOST_MOVED", 8)
    model = proto(
        "g (float[2] x) => (float[2] y)"
        "<float[2] a = {1,2}, float[2] b = {1,2}, float c = {1}> { y = Neg(x) }"
    )
    model.graph.initializer[0].data_location = onnx.TensorProto.EXTERNAL
    moved = _with_moved_constants(model, 0)
    pairs = zip(model.graph.initializer, moved.graph.initializer, strict=True)
    assert [one == other for one, other in pairs] == [True, False, True]


def test_the_narrowest_floats_that_an_output_is_computed_from() -> None:
    half, single, whole = (np.dtype(each) for each in (np.float16, np.float32, np.int8))
    for dtypes, expected in (
        ((single, half), half), ((half, single), half), ((single,), single),
        ((whole,), None), ((), None),
    ):  # fmt: skip
        promise = Promise(computed=tuple(("y", dtype) for dtype in dtypes))
        assert _narrowest(promise) == expected, dtypes


@rewrite(op.Div(var.x, var.c), opt_level=3, numerics="reassociating")
def multiply(graph: Graph, x: Value, c: Value) -> Value | Skip:
    """Right within the tolerance."""
    if c.const is None:
        return Skip("c is not a constant")
    result: Value = graph.op.Mul(x, graph.constant(np.float32(1) / c.const))
    return result


@rewrite(op.Div(var.x, var.c), opt_level=3, numerics="reassociating")
def wrong(graph: Graph, x: Value, c: Value) -> Value | Skip:
    """Wrong by one percent."""
    if c.const is None:
        return Skip("c is not a constant")
    result: Value = graph.op.Mul(x, graph.constant(np.float32(1.01) / c.const))
    return result


def said(pass_: Any, text: str, how: Any = "each", feeds: Any = X) -> str:
    result = optimize_model(
        proto(text),
        passes=[pass_],
        verify=how,
        inputs=[{"x": feeds}],
        config={"verify.default_session": False},
    )
    (remark,) = [remark.reason for remark in result.remarks if remark.kind == "verify"]
    return remark


@pytest.mark.parametrize("how", ["each", "final"])
@pytest.mark.parametrize("text", [CLIFF, GAP])
def test_a_pass_is_not_blamed_for_a_model_that_amplifies(text: str, how: str) -> None:
    remark = said(multiply, text, how)
    assert remark.startswith("the model amplifies last bits: an input moved by one ulp changes its")
    assert "; the 1 changed nodes agree: " in remark


def test_a_constant_is_moved_where_no_input_is_a_float() -> None:
    table = f"float[999] table = {{{', '.join(map(repr, map(float, X)))}}}, float three"
    text = CLIFF.replace("float[999] x", "int64[999] i").replace("float three", table)
    text = text.replace("a = Neg(x)", "x = Gather(table, i)  a = Neg(x)")
    result = optimize_model(
        proto(text),
        passes=[multiply],
        verify=True,
        inputs=[{"i": np.arange(999)}],
        config={"verify.default_session": False},
    )
    (remark,) = [remark.reason for remark in result.remarks if remark.kind == "verify"]
    assert "a constant moved by one ulp changes its outputs" in remark


@pytest.mark.parametrize("text", [CLIFF, GAP])
def test_a_wrong_pass_is_blamed_on_such_a_model_too(text: str) -> None:
    with pytest.raises(VerificationError, match="wrong changed output 'y'"):
        optimize_model(proto(text), passes=[wrong], verify=True, inputs=[{"x": X}])


def test_a_difference_of_an_exact_pass_is_not_excused() -> None:
    exact = rewrite(op.Div(var.x, var.c), opt_level=2)(_times)
    with pytest.raises(VerificationError, match="promised: exact"):
        optimize_model(proto(CLIFF), passes=[exact], verify=True, inputs=[{"x": X}])


def _times(graph: Graph, x: Value, c: Value) -> Value:
    """Multiply."""
    result: Value = graph.op.Mul(x, graph.constant(np.array(THIRD)))
    return result


def test_changed_nodes_that_amplify_themselves_are_judged_by_the_probe() -> None:
    @rewrite(op.Floor(op.Div(var.x, var.c)), opt_level=3, numerics="reassociating")
    def floor(graph: Graph, x: Value, c: Value) -> Value:
        """Right within the tolerance, but for what it rounds."""
        inverse = graph.constant(np.array(1 / 41, np.float32))
        result: Value = graph.op.Floor(graph.op.Mul(x, inverse))
        return result

    at = np.arange(1, 1000, dtype=np.float32) * 41
    text = """g (float[999] x) => (float[999] y) <float three = {41}, float s = {1.5}> {
        d = Div(x, three)  f = Floor(d)  y = Mul(f, s) }"""
    remark = said(floor, text, feeds=at)
    assert "the changed nodes differ by what an input moved by one ulp changes, too" in remark


def test_bisection_goes_on_where_the_model_amplifies() -> None:
    feeds = [{"x": X}]
    heard: list[str] = []
    assert bisect(proto(CLIFF), passes=[multiply], inputs=feeds, say=heard.append) is None
    assert any("rewrite #1 is excused: the model amplifies last bits" in line for line in heard)
    blame = bisect(proto(CLIFF), passes=[wrong], inputs=feeds)
    assert blame is not None
    assert blame.pass_name == "wrong"


STEPS = """g (float[64] x) => (float[64] y)
    <float s = {0.00392}, uint8 z = {128}, float k = {100000}> {
    q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  e = Mul(d, d)
    p = QuantizeLinear(e, s, z)  f = DequantizeLinear(p, s, z)
    c = Sub(f, e)  y = Mul(c, k) }"""


def quantized(by: float) -> Any:
    @rewrite(op.Mul(var.d, var.d), opt_level=3, numerics=QUANTIZED)
    def square(graph: Graph, d: Value) -> Value:
        """Off by a little, which becomes a step, or by a lot."""
        two, factor = (graph.constant(np.array(number, np.float32)) for number in (2, by))
        result: Value = graph.op.Mul(graph.op.Pow(d, two), factor)
        return result

    return square


def test_a_pass_on_integers_is_held_to_a_step_at_the_inputs() -> None:
    feeds = np.linspace(-0.5, 0.5, 64, dtype=np.float32)
    remark = said(quantized(1.01), STEPS, feeds=feeds)
    assert remark.startswith("the model amplifies steps of a quantisation: an input quantised once")
    with pytest.raises(VerificationError):
        said(quantized(3), STEPS, feeds=feeds)


def test_integers_move_by_a_step_and_floats_by_half_a_one() -> None:
    moved = _stepped(np.array([0, 255, 7, 8] * 9, np.uint8), 0).astype(int)
    assert np.abs(moved - [0, 255, 7, 8] * 9).max() == 1
    x = np.linspace(0, 255, 99, dtype=np.float32)
    assert 0.3 < np.abs(_stepped(x, 0) - x).max() <= 0.5
    for stays in (np.arange(3), np.zeros((0,), np.float32), np.array([np.inf], np.float32)):
        assert _stepped(stays, 0) is stays


def test_only_finite_floats_other_than_zero_are_moved() -> None:
    given = np.array([0.0, -0.0, np.inf, np.nan, 1.0, -1.0], np.float32)
    moved = _moved(given, 0)
    assert np.array_equal(moved[:4], given[:4], equal_nan=True)
    assert (np.abs(np.abs(moved[4:]) - 1) < 1e-6).all()
    assert (moved[4:] != given[4:]).all()
    for stays in (np.arange(3), [np.ones(2, np.float32)], "text"):
        assert _moved(stays, 0) is stays


HALVES = """g (float[999] x) => (float[999] y) <float16 three = {16896}, float k = {1.1}> {
    h = Cast <to = 10> (x)  d = Div(h, three)  f = Cast <to = 1> (d)  y = Mul(f, k) }"""


@pytest.mark.parametrize("how", ["each", "final", "region"])
def test_floats_that_halves_are_computed_to_have_the_tolerance_of_halves(how: Any) -> None:
    feeds = [{"x": X}]
    result = optimize_model(proto(HALVES), passes=[thirds], verify=how, inputs=feeds)
    assert result.report.changing()
    with pytest.raises(VerificationError, match="of reassociating float16"):
        optimize_model(proto(HALVES), passes=[wrong_thirds], verify=how, inputs=feeds)
    single = HALVES.replace("float16 three = {16896}", "float three = {3}").replace(
        "to = 10", "to = 1"
    )
    with pytest.raises(VerificationError, match="of reassociating float32"):
        optimize_model(proto(single), passes=[thirds], verify=how, inputs=feeds)


@rewrite(op.Div(var.x, var.c), opt_level=3, numerics="reassociating")
def thirds(graph: Graph, x: Value, c: Value) -> Value | Skip:
    """Right within the digits of a half, where the factor is rounded."""
    if c.const is None:
        return Skip("c is not a constant")
    factor = (1 / c.const.astype(np.float32)).astype(np.float16).astype(c.const.dtype)
    result: Value = graph.op.Mul(x, graph.constant(factor))
    return result


@rewrite(op.Div(var.x, var.c), opt_level=3, numerics="reassociating")
def wrong_thirds(graph: Graph, x: Value, c: Value) -> Value | Skip:
    """Wrong by three percent."""
    if c.const is None:
        return Skip("c is not a constant")
    factor = (1.03 / c.const.astype(np.float32)).astype(c.const.dtype)
    result: Value = graph.op.Mul(x, graph.constant(factor))
    return result


def test_the_largest_number_is_not_moved_to_infinity() -> None:
    ends = np.array([np.finfo(np.float16).min, 65504, 2], np.float16)
    for seed in range(8):
        assert np.isfinite(_moved(ends, seed)).all()


def test_a_float_is_moved_by_the_ulp_of_a_half_where_halves_are_computed() -> None:
    x = np.array([1, 3e38, 0, 100], np.float32)
    moved = np.abs(_moved(x, 0, np.dtype(np.float16)) - x)
    assert moved[1:3].tolist() == [0, 0], "no half is as large, and 0 stays"
    assert 2**-12 < moved[0] < 2**-9
