"""Ranges are those of the user's samples, without masks, and inside of what is proven."""

import numpy as np
import onnx
import pytest

from tiered import Model, Value
from tiered.graph.intervals.interval import Interval
from tiered.numerics.calibration.calibrate import Calibration, SampledModel, calibrate
from tiered.numerics.calibration.observers import METHODS, Method, Range
from tiered.runtime.inputs.bound_model import BoundModel
from tiered.support.errors import UsageError
from tiered.testing import parse

SCORES = """
(float[N,4] x, bool[N,4] keep) => (float[N,4] y)
<float lowest = {-3.4e38}, float[4,4] w = {1,0,0,0, 0,1,0,0, 0,0,1,0, 0,0,0,1}>
{ s = MatMul(x, w)  m = Where(keep, s, lowest)  t = Identity(m)  y = Softmax(t) }
"""


def _model(text: str, opset: int = 17) -> Model:
    model = Model.from_proto(parse(text, opset=opset))
    model.refresh_types()
    return model


def _sample(low: float, high: float) -> dict[str, np.ndarray]:
    x = np.linspace(low, high, 8, dtype=np.float32).reshape(2, 4)
    return {"x": x, "keep": np.array([[True, False] * 2] * 2)}


def _values(model: Model, *names: str) -> list[Value]:
    values = [model.main.value(name) for name in names]
    return [value for value in values if value is not None]


def test_a_measured_range_is_within_what_is_proven_unless_they_have_nothing_in_common() -> None:
    rows: list[tuple[Interval | None, tuple[float, float]]] = [
        (None, (2, 5)), (Interval(3, 9), (3, 5)), (Interval(0, 4), (2, 4)),
        (Interval(5, 9), (5, 5)), (Interval(6, 9), (2, 5)), (Interval(0, 1), (2, 5)),
    ]  # fmt: skip
    for proof, expected in rows:
        proven = {} if proof is None else {"x": proof}
        found = Calibration({"x": Range(2, 5, 2, 5, 10)}, 1, proven=proven)
        assert found.interval("x") == expected
        assert found.interval("y") is None


def _interval(found: Calibration, name: str) -> tuple[float, float]:
    interval = found.interval(name)
    assert interval is not None
    return interval


def test_ranges_are_those_of_all_samples() -> None:
    model = _model(SCORES)
    found = calibrate(
        model, _values(model, "x", "s"), [_sample(-1, 2), _sample(-3, 1)], method="minmax"
    )
    assert found.samples == 2
    assert not found.is_made
    assert found.interval("x") == found.interval("s") == (-3.0, 2.0)
    assert found.ranges["s"].seen == 16


@pytest.mark.parametrize("ir_version", [3, 4, 10])
def test_the_default_of_an_input_is_measured_where_a_sample_has_none(ir_version: int) -> None:
    text = "(float[N,2] x, float[2,2] w) => (float[N,2] y) { y = MatMul(x, w) }"
    proto = parse(text, opset=10)
    weight = np.array([[1, -2], [3, 4]], np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    proto.ir_version = ir_version
    model = Model.from_proto(proto)
    model.refresh_types()
    feeds = {"x": np.ones((1, 2), np.float32)}
    found = calibrate(model, _values(model, "x", "w", "y"), [feeds], method="minmax")
    assert _interval(found, "w") == (-2, 4)
    assert _interval(found, "y") == (2, 4)
    feeds["w"] = np.eye(2, dtype=np.float32)
    said = list[str]()
    found = calibrate(
        model, _values(model, "w", "y"), [feeds] * 2, method="minmax", on_sample=said.append
    )
    assert _interval(found, "w") == (0, 1)
    assert said == ["calibrating: sample 1 of 2", "calibrating: sample 2 of 2"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mask", ["-3.4e38", "-1e9", "-10000"])
def test_masks_decide_no_range(method: Method, mask: str) -> None:
    model = _model(SCORES.replace("-3.4e38", mask))
    found = calibrate(model, _values(model, "m", "t"), [_sample(-1, 2)], method=method)
    for name in ("m", "t"):
        low, high = _interval(found, name)
        assert -1.1 <= low <= 0 <= high <= 2.1
        assert found.ranges[name].masked == 4


@pytest.mark.parametrize(
    "nodes",
    [
        "a = Mul(x, k) b = Sub(one, k) c = Mul(b, large) m = Sub(a, c)",  # GPT-2
        "a = Mul(x, k) b = Sub(one, k) c = Mul(large, b) d = Neg(c) m = Add(a, d)",
        "a = Mul(x, k) b = Sub(k, one) c = Mul(b, large) d = Neg(c) m = Sub(a, d)",
        "b = Sub(k, one) c = Mul(b, large) m = Add(x, c)",
        "b = Sub(one, k) c = Mul(b, low) d = Add(x, c) m = Div(d, eight)",
        "b = Sub(one, k) c = Mul(b, low) d = Add(x, c) m = Mul(d, tenth)",
    ],
)
def test_masks_that_are_subtracted_or_scaled_decide_no_range(nodes: str) -> None:
    model = _model(
        f"""(float[N,4] x, float[N,4] k) => (float[N,4] y) <float one = {{1}}, float eight = {{8}},
        float large = {{10000}}, float low = {{-10000}}, float tenth = {{0.1}}>
        {{ {nodes} y = Softmax(m) }}"""
    )
    feeds = _sample(-1, 2)
    feeds["k"] = feeds.pop("keep").astype(np.float32)
    found = calibrate(model, _values(model, "m"), [feeds], method="minmax")
    assert found.ranges["m"].masked == 4
    low, high = _interval(found, "m")
    assert -1 <= low < high <= 2


def test_a_large_divisor_is_no_mask() -> None:
    model = _model(
        "(float[4] x) => (float[4] y) <float low = {-20000}> { a = Div(x, low) y = Softmax(a) }"
    )
    feeds = {"x": np.array([1, -2, 3, -2e4], np.float32)}
    found = calibrate(model, _values(model, "a"), [feeds], method="minmax")
    assert found.ranges["a"].masked == 0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mask", [-np.inf, -3.4e38, -1e9, -1e4])
def test_masks_that_are_fed_decide_no_range(method: Method, mask: float) -> None:
    model = _model("(float[N,4] x, float[4] k) => (float[N,4] y) { m = Add(x, k) y = Softmax(m) }")
    feeds = _sample(-1, 2)
    del feeds["keep"]
    fed = [{**feeds, "k": np.array([0, mask if at else 0, np.nan, 0], np.float32)} for at in (0, 1)]
    found = calibrate(model, _values(model, "k", "m"), fed, method=method)
    assert _interval(found, "k") == (0, 0)
    low, high = _interval(found, "m")
    assert -1.1 <= low <= 0 <= high <= 2.1


def test_a_large_negative_number_that_is_fed_and_reaches_no_softmax_counts() -> None:
    model = _model("(float[4] x) => (float[4] y) { y = Neg(x) }")
    found = calibrate(model, _values(model, "x"), [{"x": np.full(4, -2e4, np.float32)}])
    assert _interval(found, "x")[0] == pytest.approx(-20000)


def test_a_mask_of_minus_infinity_decides_no_range() -> None:
    text = SCORES.replace("-3.4e38", "-1e38").replace(
        "m = Where(keep, s, lowest)",
        "l = Add(lowest, lowest) k = Mul(l, l) n = Neg(k)  m = Where(keep, s, n)",
    )
    model = _model(text)
    found = calibrate(model, _values(model, "m"), [_sample(-1, 2)], method="minmax")
    assert found.interval("m") == pytest.approx((-1.0, 1.5714285))


def test_a_large_negative_number_that_reaches_no_softmax_counts() -> None:
    model = _model("(float[4] x) => (float[4] y) <float c = {-20000}> { y = Add(x, c) }")
    found = calibrate(model, _values(model, "y"), [{"x": np.zeros(4, np.float32)}])
    assert _interval(found, "y")[0] == pytest.approx(-20000)


def test_a_measured_range_is_inside_of_the_proven_one() -> None:
    model = _model("(float[4] x) => (float[4] y) { y = Sigmoid(x) }")
    x = np.array([-50, 0, 1, 50], np.float32)
    low, high = _interval(calibrate(model, _values(model, "y"), [{"x": x}]), "y")
    assert 0 <= low <= high <= 1.0000001


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "array", [np.zeros(5), np.full(5, np.nan), np.zeros(0), np.array([1e-42, 0]), np.array([3.0])]
)
def test_degenerate_tensors_have_finite_ranges(method: Method, array: np.ndarray) -> None:
    model = _model("(float[N] x) => (float[N] y) { y = Neg(x) }")
    large = {"x": np.array([1e6], np.float32)}
    for samples in ([{"x": array.astype(np.float32)}], [{"x": array.astype(np.float32)}, large]):
        found = calibrate(model, _values(model, "x"), samples, method=method)
        interval = found.interval("x")
        assert interval is None or np.isfinite(interval).all()


def test_inputs_are_made_without_samples() -> None:
    model = _model(SCORES)
    found = calibrate(model, _values(model, "s"), samples=3)
    assert found.is_made
    assert found.samples == 3
    assert found.ranges["s"].seen > 0


def test_made_samples_share_a_view_of_the_model_and_are_those_of_one_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with SampledModel.of(_model(SCORES)) as running:
        alone = [running.samples(seed=seed, count=1)[0] for seed in range(3)]
        opened: list[onnx.ModelProto] = []

        def noted(proto: onnx.ModelProto) -> BoundModel:
            opened.append(proto)
            return BoundModel(proto)

        monkeypatch.setattr("tiered.numerics.calibration.calibrate.BoundModel", noted)
        monkeypatch.setattr("tiered.runtime.inputs.samples.BoundModel", noted)
        together = running.samples(count=3)
    assert len(opened) == 1
    for one, other in zip(alone, together, strict=True):
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[name], other[name]) for name in one)


def test_values_of_bodies_are_not_measured() -> None:
    text = """
    (bool c, float[2] x) => (float[2] y)
    { y = If(c) <then_branch = g () => (float[2] a) { a = Neg(x) },
                 else_branch = h () => (float[2] b) { b = Abs(x) }> }
    """
    model = _model(text)
    (body, _) = next(model.main.topological_order().__iter__()).bodies
    found = calibrate(model, [body.outputs[0], *_values(model, "x", "y")])
    assert sorted(found.ranges) == ["x", "y"]


def test_a_range_that_leaves_out_an_outlier_has_a_smaller_error() -> None:
    model = _model("(float[N] x) => (float[N] y) { y = Neg(x) }")
    numbers = np.random.default_rng(0).standard_normal(100_000).astype(np.float32)
    numbers[0] = 12.0
    sample = {"x": numbers}
    bounds = {}
    for method in METHODS:
        found = calibrate(model, _values(model, "x"), [sample], method=method, percentile=99.9)
        bounds[method] = _interval(found, "x")

    def error(low: float, high: float) -> float:
        step = (high - low) / 255
        rounded = np.clip(np.rint(numbers / step), np.rint(low / step), np.rint(high / step))
        return float(np.square(rounded * step - numbers).mean())

    assert error(*bounds["mse"]) < 0.9 * error(*bounds["minmax"])
    assert bounds["percentile"][1] < 5


def test_only_planned_values_leave_the_worker() -> None:
    model = _model("(float[4] x) => (float[4] y) { a = Neg(x) b = Abs(a) c = Exp(b) y = Neg(c) }")
    with SampledModel.of(model) as running:
        found = [name for name, _ in running.stream({"x": np.ones(4, np.float32)}, ["b"])]
    assert found == ["b"]


def test_an_unknown_method_is_an_error() -> None:
    model = _model(SCORES)
    with pytest.raises(UsageError, match="no calibration method 'max'"):
        calibrate(model, _values(model, "s"), method="max")  # type: ignore[arg-type]  # wrong


def test_nodes_that_no_planned_value_needs_do_not_run() -> None:
    text = """
    (float[N] x) => (float[N] y) <int64[1] four = {4}>
    { d = Reshape(x, four) a = Neg(x) y = Abs(a) }
    """
    model = _model(text)
    found = calibrate(model, _values(model, "a"), [{"x": np.ones(3, np.float32)}])
    assert sorted(found.ranges) == ["a"]


@pytest.mark.parametrize("ends", [(-1.0, 3.0), (0.0, 5.0), (-2.0, 0.0)])
def test_a_range_of_one_bit_has_a_single_step(ends: tuple[float, float]) -> None:
    model = _model("(float[64] x) => (float[64] y) { y = Identity(x) }")
    numbers = np.linspace(*ends, 64, dtype=np.float32)
    found = calibrate(model, _values(model, "x"), [{"x": numbers}], method="mse", levels=1)
    low, high = _interval(found, "x")
    assert ends[0] - 0.1 <= low <= 0.0 <= high <= ends[1] + 0.1
    assert low < high

    def error(low: float, high: float) -> float:
        step = (high - low) / 1
        codes = np.rint((np.clip(numbers, low, high) - low) / step)
        return float(np.square(low + codes * step - numbers).sum())

    # Rounding to one step is no uniform error, so the range need not be the best one of all.
    assert error(low, high) <= 1.05 * error(min(ends[0], 0.0), max(ends[1], 0.0))


def test_a_histogram_counts_numbers_that_differ_in_one_bit() -> None:
    model = _model("(float[4] x) => (float[4] y) { y = Identity(x) }")
    one = np.float32(1)
    numbers = np.array([one, np.nextafter(one, np.float32(2))] * 2, np.float32)
    for method in METHODS:
        found = calibrate(model, _values(model, "x"), [{"x": numbers}] * 2, method=method)
        low, high = _interval(found, "x")
        assert np.isfinite([low, high]).all()
        assert found.ranges["x"].seen == 8
        assert found.ranges["x"].most == numbers[1]
