"""Promises: values for `numerics=`, decorators of passes, and what verification makes of them."""

from typing import Any

import numpy as np
import pytest

from tests.small import proto
from tiered import (
    Graph,
    PassContext,
    Value,
    VerificationError,
    op,
    optimize_model,
    rewrite,
    var,
    verify,
)
from tiered.extensions.debug import bisect
from tiered.runtime.compare.outputs import compare
from tiered.support.errors import UsageError
from tiered.support.numerics import EXACT, Numerics, Promise, loosest
from tiered.targets import Backend, Verification
from tiered.verify.pass_promises import (
    argmax_agreement,
    cosine,
    max_abs_error,
    mean_abs_error,
    mispredictions,
    top_5_agreement,
)

RELU = "g (float[N,3] x) => (float[N,3] y) { a = Abs(x)  y = Relu(a) }"


def scaled(by: float, **declared: Any) -> Any:
    @rewrite(op.Relu(var.x), opt_level=None, name="scaled", **declared)
    def made(graph: Graph, x: Value) -> Value:
        factor = graph.constant(np.array(by, np.float32))
        result: Value = graph.op.Mul(x, factor)
        return result

    return made


def holds(pass_: Any) -> bool:
    try:
        optimize_model(proto(RELU), passes=[pass_], verify=True)
    except VerificationError:
        return False
    return True


def test_a_promise_is_a_value_of_numerics_and_a_decorator() -> None:
    promise = verify.tolerance(rtol=1e-2, atol=0)
    for made in (scaled(1.005, numerics=promise), promise(scaled(1.005))):
        assert made.info.numerics is Numerics.APPROXIMATE
        assert made.info.promise == promise
        assert holds(made)
    assert not holds(verify.tolerance(rtol=1e-3, atol=0)(scaled(1.005)))
    assert not holds(verify.equality(scaled(1.005, numerics="lossy")))
    assert scaled(1, numerics="lossy").info.promise == Promise(Numerics.LOSSY)


def test_a_backend_states_the_accuracy_that_it_asks_for() -> None:
    def holds_on(numerics: str, **limits: float) -> bool:
        backend = Backend(name="npu", verification=Verification(**limits))
        with PassContext(backend=backend):
            return holds(scaled(1.005, numerics=numerics))

    assert not holds_on("reassociating")
    assert holds_on("reassociating", rtol=1e-2)
    assert holds_on("reassociating", min_cosine=0.99)
    assert not holds_on("exact", rtol=1e-2)


def test_no_target_narrows_what_dtype_and_class_allow() -> None:
    npu = Backend(name="npu", verification=Verification(rtol=1e-6, atol=1e-6))
    half = RELU.replace("float[", "float16[")
    made = scaled_half(1.002, numerics="reassociating")
    with PassContext(backend=npu):
        assert holds(scaled(1.005, numerics="approximate"))
        assert holds(scaled(1.005, numerics=verify.metric("cosine", (0.99, 2))))
        assert not holds(scaled(1.05, numerics="approximate"))
        result = optimize_model(proto(half), passes=[made], verify=True)
    assert result.verify is not None
    assert result.verify.limits == ["rtol 0.01, atol 0.001 of reassociating float16"]


def scaled_half(by: float, **declared: Any) -> Any:
    @rewrite(op.Relu(var.x), opt_level=None, name="scaled_half", **declared)
    def made(graph: Graph, x: Value) -> Value:
        result: Value = graph.op.Mul(x, graph.constant(np.array(by, np.float16)))
        return result

    return made


def test_the_report_names_the_limits_that_held_and_failed() -> None:
    npu = Backend(name="npu", verification=Verification(rtol=1e-2))
    with PassContext(backend=npu):
        made = scaled(1.005, numerics="reassociating")
        result = optimize_model(proto(RELU), passes=[made], verify=True)
        assert result.verify is not None
        (met,) = result.verify.limits
        assert met == "the target's rtol 0.01, atol 1e-05 of reassociating float32"
        wrong = scaled(1.05, numerics="reassociating")
        says = r"allowed: rtol 0.0001, atol 1e-05 of .*, or the target's rtol 0.01, atol"
        with pytest.raises(VerificationError, match=says):
            optimize_model(proto(RELU), passes=[wrong], verify=True)


def test_bisection_knows_the_limits_of_the_target() -> None:
    made = scaled(1.005, numerics="reassociating")
    for limits, is_right in ((Verification(rtol=1e-2), True), (Verification(), False)):
        blame = bisect(proto(RELU), passes=[made], backend=Backend(name="n", verification=limits))
        assert (blame is None) is is_right


def test_a_metric_is_a_function_or_a_name_and_a_range() -> None:
    def ratio(expected: Any, actual: Any) -> float:
        return float(np.sum(actual) / np.sum(expected))

    assert holds(scaled(1.5, numerics=verify.metric(ratio, (1.4, 1.6))))
    assert not holds(scaled(1.5, numerics=verify.metric(ratio, (0.9, 1.1))))
    assert holds(scaled(1.5, numerics=verify.metric("cosine", (0.999, 1.001))))
    assert holds(scaled(1.5, numerics=verify.metric("argmax_agreement", (1, 1))))
    assert not holds(scaled(-1.5, numerics=verify.metric("argmax_agreement", (1, 1))))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: verify.tolerance(numerics="exact"), "exact outputs have no tolerance"),
        (lambda: verify.tolerance(rtol=-1), "rtol takes a number from 0"),
        (lambda: verify.metric("cosinus", (0, 1)), "did you mean 'cosine'"),
        (lambda: verify.metric("cosine", (1, 0)), "no value lies between"),
        (lambda: verify.metric("cosine", (0, 1), numerics="exact"), "exact outputs take no metric"),
    ],
)
def test_an_invalid_promise_is_an_error(make: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        make()


def test_no_level_may_imply_a_promise_that_is_lossy() -> None:
    @rewrite(op.Relu(var.x), opt_level=1)
    def leveled(graph: Graph, x: Value) -> Value:
        return x

    with pytest.raises(UsageError, match="is lossy, so no level"):
        verify.tolerance(numerics="lossy")(leveled)


def test_several_promises_make_the_loosest() -> None:
    narrow = Promise(Numerics.APPROXIMATE, 1e-3, 1e-4)
    wide = Promise(Numerics.APPROXIMATE, 1e-2, 1e-5)
    assert loosest([]) == EXACT
    assert loosest([EXACT, narrow]) == narrow
    assert loosest([narrow, wide]) == Promise(Numerics.APPROXIMATE, 1e-2, 1e-4)
    assert loosest([narrow, Promise(Numerics.APPROXIMATE)]) == Promise(Numerics.APPROXIMATE)
    one = verify.metric("cosine", (0, 1))
    assert loosest([one, EXACT]) == one
    assert loosest([one, narrow]).metric == one.metric
    assert loosest([verify.metric("cosine", (0.5, 0.9)), one]).metric == one.metric
    assert loosest([one, verify.metric("max_abs_error", (0, 1))]).metric is None


def test_promises_read_as_words() -> None:
    assert str(EXACT) == "exact"
    assert str(Promise(Numerics.LOSSY, rtol=0.1)) == "lossy (rtol 0.1)"
    assert str(verify.metric("cosine", (0.9, 1))) == "approximate (cosine in [0.9, 1])"


def test_metrics_have_the_values_of_their_definitions() -> None:
    a, b = np.array([[1.0, 2], [3, 0]]), np.array([[1.0, 4], [3, 0]])
    metrics = verify.METRICS
    assert metrics["max_abs_error"](a, b) == 2
    assert metrics["mean_abs_error"](a, b) == 0.5
    assert metrics["cosine"](a, a) == pytest.approx(1)
    assert metrics["cosine"](a * 0, a * 0) == 1
    assert metrics["cosine"](a, a * 0) == 0
    assert metrics["argmax_agreement"](a, a[:, ::-1]) == 0
    empty = np.zeros((0, 2), np.float32)
    assert all(metrics[name](empty, empty) in (0, 1) for name in metrics)


def test_a_metric_excuses_no_nan() -> None:
    promise = verify.metric("max_abs_error", (0, 9))
    (found,) = compare({"y": np.ones(1)}, {"y": np.full(1, np.nan)}, promise).outputs
    assert found.reason.startswith("a number became NaN")


def test_rankings_are_compared_by_their_best_elements() -> None:
    expected = np.arange(12.0).reshape(2, 6)
    actual = expected.copy()
    actual[0] = -actual[0]
    assert verify.METRICS["mispredictions"](expected, actual) == 1.0
    assert verify.METRICS["argmax_agreement"](expected, actual) == 0.5
    assert verify.METRICS["top_5_agreement"](expected, actual) == 0.5
    empty = np.zeros((0, 6))
    assert verify.METRICS["mispredictions"](empty, empty) == 0.0
    assert verify.METRICS["top_5_agreement"](empty, empty) == 1.0


def test_metrics_of_single_numbers_and_of_none() -> None:
    none, one, two = np.zeros((0, 3)), np.array(2.0), np.array(3.0)
    for metric, of_none, of_one in (
        (argmax_agreement, 1.0, 1.0), (top_5_agreement, 1.0, 1.0), (mispredictions, 0.0, 0.0),
        (cosine, 1.0, 1.0), (max_abs_error, 0.0, 1.0), (mean_abs_error, 0.0, 1.0),
    ):  # fmt: skip
        assert metric(none, none) == of_none, metric
        assert metric(one, two) == of_one, metric
    zeros = np.zeros(2)
    assert [cosine(zeros, zeros), cosine(zeros, zeros + 1), cosine(zeros + 1, zeros)] == [1, 0, 0]
