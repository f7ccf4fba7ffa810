"""Which properties of a model the passes on a command line decide."""

import pytest

from tiered.cli.options import OptimizeOptions
from tiered.cli.prepared import Prepared
from tiered.cli.source_mark import OPSET, PRECISION
from tiered.cli.writing import decided_by
from tiered.pipeline import get_pass


@pytest.mark.parametrize(
    ("require", "expected"),
    [
        ("", set()),
        ("fold_constants", set()),
        ("convert_opset", {OPSET}),
        ("float_to_half", {PRECISION}),
        ("float_to_half:2", {PRECISION}),
        ("fold_constants,convert_opset,float_to_half", {OPSET, PRECISION}),
        # A group or a pattern stands for passes of the pipeline, which decides by itself.
        ("convert_*", set()),
        ("cleanup/float_to_half", set()),
        # Those in a stage of their life are required, each by its name.
        ("life:stable", {OPSET, PRECISION}),
    ],
)
def test_required_passes_decide_what_they_change(require: str, expected: set[str]) -> None:
    options = OptimizeOptions(require=(require,) if require else ())
    assert decided_by(Prepared.of(options)) == expected


@pytest.mark.parametrize(
    ("passes", "expected"),
    [
        ("fold_constants", set()),
        ("convert_opset{to=18},float_to_half", {OPSET, PRECISION}),
        ("fixpoint(float_to_half)", {PRECISION}),
    ],
)
def test_listed_passes_decide_too_at_any_depth(passes: str, expected: set[str]) -> None:
    assert decided_by(Prepared.of(OptimizeOptions(passes=passes))) == expected


def test_the_passes_of_a_command_decide_without_being_written_as_text() -> None:
    passes = [get_pass("convert_opset", to=18), get_pass("float_to_half")]
    prepared = Prepared.of(OptimizeOptions(strip=("names",)), passes=passes)
    assert list(prepared.passes or ())[:2] == passes
    assert decided_by(prepared) == {OPSET, PRECISION}
