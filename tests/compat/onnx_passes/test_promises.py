"""`verify`: the promises of classes about the outputs."""

from typing import Any

import numpy as np
import pytest

from tests.compat.onnx_passes.small_classes import DropNeg
from tests.recorded import assert_values
from tiered import Model
from tiered.compat import onnx_passes
from tiered.compat.onnx_passes import (
    Transformation,
    pass_of,
    promises,
    verify,
)
from tiered.compat.onnx_passes.promises import metric_of
from tiered.support.errors import (
    UsageError,
)
from tiered.support.numerics import Numerics


def test_verification_is_a_promise() -> None:
    promised = {"equality": "exact", "tolerance": "reassociating", "metric": "approximate"}
    for name, numerics in promised.items():
        decorated = getattr(verify, name)(type("Own", (DropNeg,), {}))
        assert pass_of(decorated).info.numerics == numerics


def test_a_promise_keeps_its_metric_and_its_tolerance() -> None:
    def promise(decorate: Any) -> Any:
        return pass_of(decorate(type("Own", (DropNeg,), {}))).info.promise

    for decorate in (verify.metric("cosine", (0.99, 1.01)), verify.metric(cosine=(0.99, 1.01))):
        assert str(promise(decorate)) == "approximate (cosine in [0.99, 1.01])"
    assert "top_5_agreement in [0.9, 1]" in str(promise(verify.metric(top_5_accuracy=(0.9, 1))))
    assert "mispredictions" in str(promise(verify.metric("count_mispredictions", (0, 3))))
    own = promise(verify.metric(lambda expected, actual: 1.0, (0, 2)))
    assert own.metric.high == 2
    assert str(promise(verify.tolerance(rtol=1e-3))) == "approximate (rtol 0.001)"
    with pytest.raises(UsageError, match="takes metrics with their ranges"):
        verify.metric()
    with pytest.raises(UsageError, match="no metric 'cosin'"):
        verify.metric("cosin", (0, 1))


def test_several_metrics_hold_together() -> None:
    @verify.metric(cosine=(0.99, 1.01), max_abs_error=(0, 0.1))
    class Cheap(Transformation):
        def call(self, model: Model) -> None:
            """Change nothing."""

    function = Cheap.numerics.metric.function  # type: ignore[union-attr]  # it is a Promise
    one = np.ones(4)
    assert [function(one, one), function(one, one * 2), function(one, -one)] == [0, 1, 2]
    assert "cosine in [0.99, 1.01] and max_abs_error in [0, 0.1]" in str(Cheap.numerics)
    with pytest.raises(UsageError, match="no metric 'cosin'"):
        verify.metric(cosin=(0, 1))
    with pytest.raises(UsageError, match="takes metrics with their ranges"):
        verify.metric("cosine")


@pytest.mark.parametrize(("given", "accepted"), [("cosine", None), (None, (0, 1)), (None, None)])
def test_a_metric_has_its_range(given: Any, accepted: Any) -> None:
    with pytest.raises(UsageError, match=r"verify.metric takes metrics with their ranges"):
        verify.metric(given, accepted)


def test_limits_belong_to_decorated_classes_or_make_a_decorator() -> None:
    own: Any = type("Own", (DropNeg,), {})
    assert verify.tolerance(own) is own
    assert own.numerics == Numerics.REASSOCIATING
    assert verify.tolerance()(own).numerics == Numerics.REASSOCIATING
    promise: Any = verify.tolerance(own, atol=0.5).numerics
    assert (promise.atol, promise.numerics) == (0.5, Numerics.APPROXIMATE)
    assert verify.metric(own).numerics == Numerics.APPROXIMATE
    assert verify.equality(own).numerics is Numerics.EXACT
    assert DropNeg.numerics is Numerics.EXACT


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("accuracy", "argmax_agreement"),
        ("count_mispredictions", "mispredictions"),
        ("top_5_accuracy", "top_5_agreement"),
        ("cosine", "cosine"),
    ],
)
def test_metrics_have_the_names_of_onnx_passes(name: str, own: str) -> None:
    metric = metric_of(name, (0.25, 0.5)).metric
    assert metric is not None
    assert (metric.name, metric.low, metric.high) == (own, 0.25, 0.5)


def test_the_ends_of_a_range_are_in_it() -> None:
    promise = verify.metric(max_abs_error=(0.5, 1), cosine=(-1, 1))(type("Own", (DropNeg,), {}))
    function = promise.numerics.metric.function
    one = np.ones(4)
    found = [function(one, one + step) for step in (0.5, 1.0, 0.25, 1.25)]
    assert found == [0, 0, 1, 1]
    assert (promise.numerics.metric.low, promise.numerics.metric.high) == (0, 0)


def test_promises_of_classes_are_recorded() -> None:
    class Kind(onnx_passes.Transformation):
        """A class to promise something of."""

    def promised(decorate: Any) -> object:
        found = decorate(type("Made", (Kind,), {})).numerics
        metric = getattr(found, "metric", None)
        return str(found), None if metric is None else (metric.low, metric.high)

    names = {"v": promises.verify, "promised": promised, "metric_of": promises.metric_of,
             "np": np}  # fmt: skip
    assert_values(__file__, names)
