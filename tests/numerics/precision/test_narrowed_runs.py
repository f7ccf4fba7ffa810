"""Inputs and what the model of floats computes for them: how far other outputs are from it."""

from typing import Any

import numpy as np
import pytest

from tests.small import ops, parsed
from tiered import DataType
from tiered.numerics.precision.budget import budget_of
from tiered.numerics.precision.narrowed_runs import NarrowedRuns, input_count
from tiered.numerics.precision.narrowing import FloatNarrowing

RELATIVE = budget_of("relative<=0.5")


def floats(*numbers: float) -> Any:
    return np.array(numbers, np.float32)


def trials(*expected: Any, name: str = "y") -> NarrowedRuns:
    return NarrowedRuns(
        tuple({} for _ in expected), tuple({name: each} for each in expected), False
    )


def test_the_metric_is_that_of_the_worst_run() -> None:
    runs = trials(floats(3, 4), floats(3, 4))
    same, off = {"y": floats(3, 4)}, {"y": floats(3, 5)}
    assert runs.measure(RELATIVE, [same, same]) == 0
    assert runs.measure(RELATIVE, [same, off]) == pytest.approx(0.2)
    assert runs.measure(RELATIVE, [off, same]) == pytest.approx(0.2)
    assert runs.relative_error([same, off]) == pytest.approx(0.2)
    assert trials(floats()).relative_error([{"y": floats()}]) == 0


def test_outputs_that_are_no_longer_finite_are_named() -> None:
    runs = NarrowedRuns(
        ({}, {}),
        ({"b": floats(1), "a": floats(1), "c": floats(np.inf)}, {"b": floats(1), "a": floats(1)}),
        False,
    )
    nan = floats(np.nan)
    first = {"b": nan, "a": floats(1), "c": floats(np.inf)}
    assert runs.not_finite_in([first, {"b": nan, "a": floats(np.inf)}]) == ["a", "b"]
    assert runs.not_finite_in([{"b": floats(2)}, {}]) == []


@pytest.mark.parametrize(
    ("deployed", "judged", "is_worse"),
    [(0.3, [0.1], True), (0.2, [0.1], False), (0.15, [0.0, 0.1], False), (9e-5, [0.0], False),
     (2e-4, [0.0], True), (1.0, [0.5], False)],
)  # fmt: skip
def test_onnxruntime_itself_is_worse_by_twice_the_error(
    deployed: float, judged: list[float], is_worse: bool
) -> None:
    runs = trials(np.array([1.0]))
    assert runs.is_worse_deployed([{"y": np.array([1 + deployed])}], judged) == is_worse


def test_outputs_are_described_by_cosine_and_relative_error() -> None:
    runs, found = trials(floats(3, 4)), [{"y": floats(3, 5)}]
    assert runs.describe(found) == "cosine 0.994692, relative 0.2"
    assert runs.describe(found, budget_of("relative<=1")) == "relative 0.2, cosine 0.994692"
    said = runs.describe(found, budget_of("max_abs<=1"))
    assert said == "max_abs 1, cosine 0.994692, relative 0.2"


def test_outputs_of_integers_have_no_cosine() -> None:
    runs = trials(np.array([1, 2, 3, 4]))
    assert runs.describe([{"y": np.array([1, 2, 3, 5])}]).startswith("relative ")
    empty = trials(floats())
    nothing = "no output has an element that can be compared"
    assert empty.describe([{"y": floats()}]) == nothing
    assert trials([floats(1)]).describe([{"y": [floats(1)]}]) == "relative 0"


def test_inputs_are_counted_in_words() -> None:
    assert input_count(1, is_made=True) == "1 generated input"
    assert input_count(2, is_made=False) == "2 given inputs"
    assert str(trials(floats(1), floats(1))) == "2 given inputs"
    assert str(NarrowedRuns(({},), ({},), True)) == "1 generated input"


# --- runs -----------------------------------------------------------------------------------------

TEXT = "(float[2] x) => (float[2] y, float[2] r) { y = Mul(x, x)  r = RandomNormalLike(x) }"


def test_random_outputs_are_not_expected() -> None:
    model = parsed(TEXT)
    given = NarrowedRuns.of(model, [{"x": floats(2, 3)}], seed=0, made=5)
    assert len(given.feeds) == 1
    assert not given.is_made
    assert [list(run) for run in given.expected] == [["y"]]
    np.testing.assert_array_equal(given.expected[0]["y"], [4, 9])
    made = NarrowedRuns.of(model, [], seed=0, made=3)
    assert (len(made.feeds), made.is_made) == (3, True)


def test_a_narrower_version_is_run_and_all_edits_are_undone() -> None:
    model = parsed("(float[2] x) => (float[2] y) { a = Mul(x, x)  y = Sub(a, x) }")
    runs = NarrowedRuns.of(model, [{"x": floats(300, 3)}], seed=0, made=1)
    mark = model.mark()
    (found,) = runs.narrowed_outputs(model, FloatNarrowing(DataType.FLOAT16), keeps_io=True)
    assert found["y"].tolist() == [np.inf, 6]  # 90,000 is no number of float16
    (wide,) = runs.outputs(model)
    assert wide["y"].tolist() == [89700, 6]
    assert not model.changed_since(mark)
    assert ops(model) == ["Mul", "Sub"]
    assert runs.not_finite_in([found]) == ["y"]


def test_onnx_reference_is_trusted_where_it_computes_the_same() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Mul(x, x) }")
    runs = NarrowedRuns.of(model, [{"x": floats(2, 3)}], seed=0, made=1)
    assert runs.trusts_reference(model)
    wrong = runs._replace(expected=({"y": floats(4, 9.1)},))
    assert not wrong.trusts_reference(model)
    near = runs._replace(expected=({"y": floats(4, 9.001)},))
    assert near.trusts_reference(model)


@pytest.mark.parametrize(
    "text",
    [
        "(float[2] x) => (float[2] y) { y = com.microsoft.BiasGelu(x, x) }",
        "(float[2] x) => (float[0] y) <int64[1] none = {0}> { y = Slice(x, none, none) }",
    ],
)
def test_onnx_reference_is_not_trusted_where_nothing_can_be_compared(text: str) -> None:
    model = parsed(text)
    runs = NarrowedRuns.of(model, [{"x": floats(2, 3)}], seed=0, made=1)
    assert not runs.trusts_reference(model)


@pytest.mark.parametrize(
    ("by_reference", "is_emulated", "steps"),
    [(False, True, ["emulate"]), (False, False, []), (True, True, ["take_in"]),
     (True, False, ["take_in"])],
)  # fmt: skip
def test_onnxruntime_emulates_and_onnx_reference_takes_weights_in(
    by_reference: bool, is_emulated: bool, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tiered.numerics.precision import narrowed_runs as module

    done = list[str]()
    for name in ("emulate", "take_in"):
        monkeypatch.setattr(module, name, lambda *given, name=name: done.append(name))
    model = parsed("(float[2] x) => (float[2] y) { y = Mul(x, x) }")
    runs = NarrowedRuns(({"x": floats(2, 3)},), (), False)
    (found,) = runs.outputs(model, by_reference=by_reference, is_emulated=is_emulated)
    assert found["y"].tolist() == [4, 9]
    assert done == steps


def test_a_small_model_has_few_weights_and_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    from tiered.numerics.precision import narrowed_runs as module

    model = parsed("(float[2] x) => (float[2] y) <float[2] k = {1,2}> { y = Mul(x, k) }")
    runs = NarrowedRuns(({"x": floats(1, 2)}, {"x": floats(1, 2), "s": [floats(1)]}), (), False)
    size = model.nbytes + 2 * 2 * 4
    for most, is_small in ((size, True), (size - 1, False)):
        monkeypatch.setattr(module, "_MOST_REFERRED", most)
        assert runs.is_small(model) == is_small
