"""The error of a model beside the one that it was loaded from, in words, and its budget."""

from typing import Any

import numpy as np
import pytest

from tests.small import ops, parsed
from tiered import DataType, Model, TensorType, VerificationError, get_pass
from tiered.numerics.precision.budget import budget_of
from tiered.numerics.precision.measurement import measured_error
from tiered.support.errors import RuntimeFailure

TEXT = "(float[2] x) => (float[2] y) <float[2] k = {1,2}> { a = Mul(x, x)  y = Sub(a, k) }"


def floats(*numbers: float) -> Any:
    return np.array(numbers, np.float32)


def halves(text: str = TEXT) -> Model:
    model = parsed(text)
    get_pass("float_to_half").apply(model)
    return model


def said(model: Model, *feeds: Any, **options: Any) -> str:
    return measured_error(model, inputs=[{"x": floats(*each)} for each in feeds], **options)


def test_a_model_that_is_as_it_was_has_no_error() -> None:
    assert said(parsed(TEXT), (1, 2)) == (
        "error on 1 given input by onnxruntime: cosine 1, relative 0"
    )


def test_a_small_model_of_halves_runs_on_onnx_reference() -> None:
    model = halves()
    before = ops(model)
    found = said(model, (1, 2), (2, 3))
    assert found.startswith("error on 2 given inputs by onnx.reference: cosine 1, relative 0")
    assert ops(model) == before


def test_a_larger_model_or_an_operator_that_it_lacks_runs_on_onnxruntime(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tiered.numerics.precision import narrowed_runs

    monkeypatch.setattr(narrowed_runs, "_MOST_REFERRED", 0)
    assert said(halves(), (1, 2)).startswith("error on 1 given input by onnxruntime: cosine")


def test_an_output_that_is_no_longer_finite_is_noted() -> None:
    model = halves()
    found = said(model, (300, 2))
    assert "inf" in found or "nan" in found
    (note,) = [each for each in model.notes if "'y'" in each]
    assert note.startswith("'y': NaN or infinite where the original output is finite; keep")


def test_a_model_that_was_not_loaded_has_no_original() -> None:
    model = parsed(TEXT)
    model.origin = None
    assert measured_error(model) == "error not measured: the model was not loaded"


def test_a_model_of_many_weights_is_run_for_a_budget_only() -> None:
    model = parsed(TEXT)
    size = model.nbytes
    expected = f"error not measured: more than {size - 1:,} bytes of weights"
    assert said(model, (1, 2), max_bytes=size - 1) == expected
    assert said(model, (1, 2), max_bytes=size).startswith("error on 1 given input")
    budget = budget_of("relative<=1")
    assert said(model, (1, 2), max_bytes=0, budget=budget).endswith("relative 0, cosine 1")


def test_a_budget_that_does_not_hold_is_an_error() -> None:
    model = halves("(float[2] x) => (float[2] y) { a = Sin(x)  y = Cos(a) }")
    with pytest.raises(VerificationError) as caught:
        said(model, (1, 2), budget=budget_of("relative<=1e-9"))
    message = str(caught.value)
    assert message.startswith(
        "the budget relative<=1e-09 does not hold for the result: relative is"
    )
    assert message.endswith(" on 1 given input by onnx.reference")
    assert said(model, (1, 2), budget=budget_of("relative<=0.01"))


def test_a_budget_of_nothing_to_compare_is_an_error() -> None:
    model = parsed("(float[0] x) => (float[0] y) { y = Neg(x) }")
    with pytest.raises(VerificationError, match="cannot be checked: no output has an element"):
        said(model, (), budget=budget_of("relative<=1"))
    assert said(model, ()).endswith("no output has an element that can be compared")


def test_what_does_not_run_is_not_measured_unless_there_is_a_budget() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = acme.Any(x) }")
    found = said(model, (1, 2))
    assert found.startswith("error not measured: ")
    assert "\n" not in found
    with pytest.raises(RuntimeFailure):
        said(model, (1, 2), budget=budget_of("relative<=1"))


@pytest.mark.parametrize(
    ("dims", "given", "expected"),
    [
        ("N,M,3", [2, -1, -1], [{"x": [2, "M", 3]}]),
        ("?,M,3", [-1, 4, -1], [{"x": [-1, 4, 3]}]),
        ("N,M,3", [-1, -1, -1], []),
    ],
)
def test_dims_that_were_fixed_are_those_of_the_original(
    dims: str, given: list[int], expected: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = parsed(f"(float[{dims}] x) => (float[{dims}] y) {{ y = Neg(x) }}")
    model.set_input_shapes({"x": given})
    shapes: list[Any] = []
    monkeypatch.setattr(Model, "set_input_shapes", lambda self, named, *rest: shapes.append(named))
    measured_error(model, inputs=[{"x": np.zeros((2, 4, 3), np.float32)}])
    assert shapes == expected


def test_an_input_that_is_another_one_now_keeps_its_dims(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[Any] = []
    monkeypatch.setattr(Model, "set_input_shapes", lambda self, named, *rest: shapes.append(named))
    model = parsed("(float[2,M] x, float[N] z) => (float[2,M] y) { y = Neg(x) }")
    x, z = model.main.inputs
    model.main.remove_input(z)
    model.main.set_declared_type(x, TensorType(DataType.FLOAT, (3, "M")))
    measured_error(model, inputs=[{"x": np.zeros((2, 4), np.float32), "z": floats(1)}])
    assert shapes == []


def test_the_original_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Model] = []
    close = Model.close

    def noted(model: Model) -> None:
        closed.append(model)
        close(model)

    monkeypatch.setattr(Model, "close", noted)
    model = parsed(TEXT)
    said(model, (1, 2))
    assert any(each is not model for each in closed)
