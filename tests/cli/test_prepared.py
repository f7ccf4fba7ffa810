"""The options of a run, read once: passes, settings, and which properties they decide."""

from typing import Any

import pytest

from tiered.cli.prepared import PreparedRun, decided_by
from tiered.cli.shared_options import OptimizeOptions
from tiered.cli.source_mark import OPSET, PRECISION
from tiered.cli.watch import WatchOptions
from tiered.pipeline import get_pass
from tiered.support.errors import (
    ConfigError,
    ModelError,
    OptionError,
    PassNotFoundError,
    PipelineSyntaxError,
    TieredError,
    UsageError,
)


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
    assert decided_by(PreparedRun.of(options)) == expected


@pytest.mark.parametrize(
    ("passes", "expected"),
    [
        ("fold_constants", set()),
        ("convert_opset{to=18},float_to_half", {OPSET, PRECISION}),
        ("fixpoint(float_to_half)", {PRECISION}),
    ],
)
def test_listed_passes_decide_too_at_any_depth(passes: str, expected: set[str]) -> None:
    assert decided_by(PreparedRun.of(OptimizeOptions(passes=passes))) == expected


def test_the_passes_of_a_command_decide_without_being_written_as_text() -> None:
    passes = [get_pass("convert_opset", to=18), get_pass("float_to_half")]
    prepared = PreparedRun.of(OptimizeOptions(strip=("names",)), passes=passes)
    assert list(prepared.passes or ())[:2] == passes
    assert decided_by(prepared) == {OPSET, PRECISION}


def test_what_is_stripped_is_required_or_the_last_pass_that_is_listed() -> None:
    prepared = PreparedRun.of(OptimizeOptions(strip=("names,docs",), require=("inline",)))
    assert prepared.settings["required"] == ("inline", "strip")
    assert prepared.edits == ("set strip{what=[names,docs]}",)
    assert prepared.passes is None
    prepared = PreparedRun.of(OptimizeOptions(strip=("names",), passes="inline"))
    assert prepared.settings["required"] == prepared.edits == ()
    assert list(map(str, prepared.passes or ())) == ["inline", "strip{what=[names]}"]


def test_options_become_settings_of_the_context() -> None:
    options = OptimizeOptions(
        opt_level=3, disable=("a,b",), edit=("drop c",), require=("inline,strip{what=[docs]}",)
    )
    prepared = PreparedRun.of(options)
    assert prepared.settings["opt_level"] == 3
    assert prepared.settings["disabled"] == ("a", "b")
    assert prepared.settings["required"] == ("inline", "strip")
    assert prepared.edits == ("drop c", "set strip{what=[docs]}")
    assert PreparedRun.of(OptimizeOptions()).settings["opt_level"] is None  # it is the default


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"passes": " "}, "--passes lists no pass"),
        ({"max_memory": "much"}, "--max-memory"),
        ({"strip": ("nams",)}, "--strip takes metadata"),
        ({"disable": ("a,,b",)}, "an empty pass name"),
        ({"expect": ("nodes",)}, "nodes"),
    ],
)
def test_a_wrong_value_is_an_error_before_any_file(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TieredError, match=message):
        PreparedRun.of(OptimizeOptions(**options))


def test_the_context_requires_the_passes_that_set_shapes() -> None:
    context = PreparedRun.of(OptimizeOptions(dim=("batch=2",))).context()
    required = {name for entry in context.required for name in entry.names}
    assert required == {"const_input_shape", "const_output_shape"}


@pytest.mark.parametrize(
    ("options", "watch", "kind", "message"),
    [
        ({"quiet": True, "verbose": True}, {}, UsageError, "-q and -v are opposites"),
        ({"passes": ""}, {}, UsageError, "--passes lists no pass"),
        ({"require": ("",)}, {}, UsageError, "--require: an empty pass name"),
        ({"input_shape": ("x",)}, {}, UsageError, "--input-shape 'x'"),
        ({"dim": ("n",)}, {}, UsageError, "--dim"),
        ({"test_input_shape": ("x",)}, {}, UsageError, "'x'"),
        ({"expect": ("nodes<>5",)}, {}, UsageError, "nodes<>5"),
        ({"certify": "stric"}, {}, UsageError, "stric"),
        ({"external_data": "big"}, {}, UsageError, "--external-data: 'big' is not a size"),
        ({"load": ("none.py",)}, {}, UsageError, "none.py"),
        ({}, {"limit": -1}, UsageError, "--limit takes a number from 0, not -1"),
        ({}, {"remarks": "mised"}, UsageError, "did you mean 'missed'"),
        ({}, {"trace": "t.txt"}, UsageError, "the suffix says the form"),
        ({}, {"trace": "none/t.json"}, ModelError, "no directory 'none'"),
        ({}, {"set": ("verify.seed",)}, UsageError, "--set takes NAME=VALUE"),
        ({}, {"set": ("no.name=3",)}, ConfigError, "no.name"),
    ],
)
def test_wrong_options_are_refused_before_any_file(
    options: Any, watch: Any, kind: Any, message: str
) -> None:
    with pytest.raises(kind, match=message):
        PreparedRun.of(OptimizeOptions(**options), WatchOptions(**watch))


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"passes": "inline,("}, PipelineSyntaxError),
        ({"passes": "inlin"}, PassNotFoundError),
        ({"require": ("inlin",)}, PassNotFoundError),
        ({"passes": "inline{depth=3}"}, OptionError),
    ],
)
def test_wrong_names_are_refused_by_the_context(options: Any, kind: Any) -> None:
    made = PreparedRun.of(OptimizeOptions(**options))
    with pytest.raises(kind):
        made.context()
