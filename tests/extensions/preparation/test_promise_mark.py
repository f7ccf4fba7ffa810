"""The promise in the metadata of a result: text and back, and the sum of several."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from tiered import optimize_model
from tiered.extensions.preparation.precisions import budget_promise
from tiered.extensions.preparation.promise_mark import (
    Carried,
    _of_pass,
    carried_by,
    carried_in,
    together,
)
from tiered.numerics.precision.budget import METRICS, budget_of
from tiered.support.numerics import QUANTIZED, Numerics, Promise
from tiered.testing import parse
from tiered.verify import metric, tolerance

BUDGETS = [f"{name}{'>=' if METRICS[name].is_least else '<='}0.25" for name in METRICS]


@pytest.mark.parametrize(
    "promise",
    [
        *(Promise(numerics) for numerics in Numerics),
        *(budget_promise(budget_of(text)) for text in BUDGETS),
        tolerance(rtol=1e-3, atol=1e-4),
        metric("argmax_agreement", (0.5, 1.0), numerics="lossy"),
        QUANTIZED,
    ],
    ids=str,
)
@pytest.mark.parametrize("ranges", ["", "generated", "given"])
def test_text_and_back(promise: Promise, ranges: str) -> None:
    carried = Carried(promise, ranges)  # type: ignore[arg-type]  # one of them
    found = carried_in(carried.text)
    assert found is not None
    assert found.ranges == ranges
    assert str(found.promise) == str(promise)
    assert found.text == carried.text


def test_an_exact_promise_is_short() -> None:
    assert Carried().text == '{"numerics": "exact"}'


def test_the_loosest_limit_of_two_budgets_is_that_of_both() -> None:
    first, second = (Carried(budget_promise(budget_of(f"sqnr>={n}"))) for n in (20, 30))
    both = first + Carried(Promise(Numerics.REASSOCIATING)) + second
    assert str(both) == "lossy (sqnr in [20, inf])"
    other = Carried(budget_promise(budget_of("cosine>=0.9")), "given")
    assert str(first + other) == "lossy, on given samples"
    assert together(()) == Carried()


def test_the_promise_of_a_run_is_that_of_the_passes_that_changed_something() -> None:
    text = "(float[40,40] x) => (float[40,40] y) { a = Identity(x)  y = Softmax(a) }"
    made = optimize_model(parse(text, opset=17), opt_level=3)
    assert carried_by(made.report.results) == Carried()
    half = optimize_model(parse(text, opset=17), passes="float_to_half")
    assert str(carried_by(half.report.results)) == "lossy"


def test_a_metric_without_a_limit_is_infinite() -> None:
    found = carried_in('{"numerics": "lossy", "metric": "cosine", "low": 0.5}')
    assert found is not None
    assert found.promise.metric is not None
    assert math.isinf(found.promise.metric.high)


def test_the_promise_of_a_pass_of_a_user_is_its_own() -> None:
    lossy, exact = Promise(Numerics.LOSSY), Promise(Numerics.EXACT)
    for numerics, promise in ((Numerics.LOSSY, lossy), (Numerics.EXACT, exact)):
        info = SimpleNamespace(numerics=numerics, is_built_in=False, promise=promise, name="own")
        result: Any = SimpleNamespace(info=info, text="no pipeline {")
        assert _of_pass(result) == Carried(promise)


def test_a_metric_that_is_not_known_makes_no_promise() -> None:
    for text in ('{"numerics": "lossy", "metric": "own"}', '{"numerics": "own"}', "no json", "[]"):
        assert carried_in(text) is None
