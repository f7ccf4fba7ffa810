"""The result of a search: held to its budget, replayed as text, and as data."""

from pathlib import Path
from typing import Any

import pytest

from tiered.extensions.measurement.medians import MedianInterval
from tiered.extensions.tuning.found import Found, Tried
from tiered.extensions.tuning.maker import Maker
from tiered.extensions.tuning.model_forms import Choice, ModelForm
from tiered.extensions.tuning.output_tolerance import OutputTolerance
from tiered.extensions.tuning.race import Gain
from tiered.extensions.tuning.tuning_result import Tuned
from tiered.support.errors import RuntimeFailure
from tiered.support.numerics import Numerics
from tiered.testing import parse

TEXT = "(float[2] x) => (float[2] y) { a = Identity(x)  b = Relu(a)  y = Relu(b) }"
O2, O3 = ModelForm(2), ModelForm(3)
GAIN = Gain(MedianInterval(0.8, 0.9, 0.95, 0.99), 14, "better")
CHOICE = Choice("without fuse_gelu", disabled=("fuse_gelu",))


def tuned(
    maker: Maker, best: ModelForm, *, fault: str = "", is_complete: bool = True, tried: Any = ()
) -> Tuned:
    """Return the result of a search that found a form."""
    found = Found(
        best, [*tried], [CHOICE], beside_reference=GAIN, beside_original=GAIN, notes=["a note"]
    )
    return Tuned.of(
        found, O3, OutputTolerance(Numerics.EXACT), maker, is_complete=is_complete,
        fault=lambda made: fault, measured=7, hits=2,
    )  # fmt: skip


@pytest.fixture
def maker(tmp_path: Path) -> Maker:
    return Maker(parse(TEXT), str(tmp_path))


def test_the_best_form_is_the_result_with_its_text(maker: Maker) -> None:
    found = tuned(maker, O2)
    assert (found.form, found.reference) == (O2, O3)
    assert found.settings == O2.settings
    assert found.choices == (CHOICE,)
    assert (found.beside_reference, found.beside_original) == (GAIN, GAIN)
    assert found.remarks == ("a note",)
    assert (found.measured, found.reused, found.is_complete) == (7, 2, True)
    assert "eliminate_identity" in found.pipeline
    assert found.backend.startswith("# without fuse_gelu\n")
    assert found.nodes == 1
    made = maker.made(O2)
    assert made is not None
    assert found.nbytes == made.nbytes


def test_a_form_beyond_the_budget_leaves_the_original(maker: Maker) -> None:
    found = tuned(maker, O2, fault="off by 3")
    assert found.form == ModelForm(None)
    assert (found.choices, found.beside_reference, found.beside_original) == ((), None, None)
    assert (found.pipeline, found.backend, found.settings) == ("", "", {})
    assert found.nodes == 3
    assert found.remarks == (
        "a note", "-O2 exceeds the budget exact: off by 3; the original is kept"
    )  # fmt: skip


def test_a_form_that_cannot_be_made_leaves_the_original(maker: Maker) -> None:
    found = tuned(maker, ModelForm(2, disabled=("no_such_pass",)))
    assert found.form == ModelForm(None)
    assert "no_such_pass" in found.remarks[1]


def test_an_original_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeFailure):
        tuned(Maker(str(tmp_path / "none.onnx"), str(tmp_path)), O2)


def test_an_interruption_is_told(maker: Maker) -> None:
    found = tuned(maker, O2, is_complete=False)
    assert found.remarks[1] == ("interrupted: the result is the best that was proved until then")
    assert not found.is_complete


def test_text_that_makes_something_else_is_told(
    maker: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tiered.extensions.tuning.tuning_result.pipeline_text", lambda form: "fuse_gelu"
    )
    assert tuned(maker, O2).remarks[1].startswith("the pipeline as text makes another model")
    monkeypatch.setattr(
        "tiered.extensions.tuning.tuning_result.pipeline_text", lambda form: "no_pass"
    )
    assert tuned(maker, O2).remarks[1].startswith("the pipeline as text fails: ")


def test_the_data_are_plain(maker: Maker) -> None:
    data = tuned(maker, O2).to_dict()
    ratio = {"low": 0.8, "median": 0.9, "high": 0.95, "confidence": 0.99, "rounds": 14,
             "verdict": "better"}  # fmt: skip
    assert {key: data[key] for key in data if key not in ("pipeline", "backend", "bytes")} == {
        "form": "-O2", "options": ["-O2"], "file": "", "is_original": False, "reference": "-O3",
        "beside_reference": ratio, "beside_original": ratio,
        "decisions": ["without fuse_gelu"], "tried": [], "nodes": 1, "rounds": 7, "reused": 2,
        "interrupted": False, "remarks": ["a note"],
    }  # fmt: skip
    original = tuned(maker, O2, fault="no", is_complete=False).to_dict()
    assert (original["is_original"], original["beside_reference"]) == (True, None)
    assert original["interrupted"]
    assert original["options"] == []


def test_what_was_tried_is_told(maker: Maker) -> None:
    tried = [Tried("decision", "without a", GAIN, True, "better")]
    data = tuned(maker, O2, tried=tried).to_dict()
    assert data["tried"] == [
        {"stage": "decision", "text": "without a", "gain": data["beside_reference"],
         "taken": True, "reason": "better"}
    ]  # fmt: skip
