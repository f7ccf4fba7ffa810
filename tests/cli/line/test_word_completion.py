"""Completion: the lines for the last word, and words as bash splits them."""

import pytest

from tests.recorded import assert_values
from tiered.cli.commands import command_names, load_command
from tiered.cli.line.reader import WrongLine
from tiered.cli.line.word_completion import _joined, candidates


def completed(*words: str) -> list[str]:
    """Return the candidates without what they are."""
    return [line.partition("\t")[0] for line in candidates(words)]


@pytest.mark.parametrize("words", [[], [""], ["opt"], ['""']])
def test_the_first_word_is_a_command(words: list[str]) -> None:
    lines = list(candidates(words))
    assert [line.partition("\t")[0] for line in lines] == list(command_names())
    assert "optimize\tOptimise a model and print what changed." in lines


def test_a_command_may_have_others_below_it() -> None:
    below = [name.removeprefix("batch ") for name in command_names("batch")]
    assert completed("batch", "")[: len(below)] == below
    assert "quantize" not in completed("batch", "models", "")
    assert "quantize" not in completed("batch", "--jobs", "")


def test_a_dash_begins_an_option_with_its_help() -> None:
    lines = list(candidates(["memory", "m.onnx", "-"]))
    assert "--no-in-place\tnot --in-place" in lines
    options = load_command("memory").options
    typed = [name for each in options for name in (*each.names, each.off) if name]
    assert [line.partition("\t")[0] for line in lines] == typed
    assert all("\t" in line for line in lines)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["convert", "m.onnx", "--order", ""], ["auto", "error", "sensitivity"]),
        (["convert", "--order", ""], ["auto", "error", "sensitivity"]),
        (
            ["convert", "m.onnx", "--order=s"],
            ["--order=auto", "--order=error", "--order=sensitivity"],
        ),
        (["convert", "m.onnx", "--order", "=", "s"], ["auto", "error", "sensitivity"]),
        (["convert", "m.onnx", "--order", "="], ["auto", "error", "sensitivity"]),
        (["completion", ""], ["bash", "zsh", "fish", "powershell"]),
        (["completion", "bash", ""], ["bash", "zsh", "fish", "powershell"]),
        (["optimize", "m.onnx", "--limit", ""], []),
        (["optimize", "m.onnx", "--verify", ""], []),
    ],
)
def test_values_are_those_of_the_option_or_argument(words: list[str], found: list[str]) -> None:
    assert completed(*words) == found


def test_arguments_are_counted_without_options_and_their_values() -> None:
    first = completed("explain", "")
    second = completed("explain", "m.onnx", "")
    assert first == []
    assert "fold_constant" in second
    for words in (
        ["m.onnx", "--dim", "n=1"],
        ["-O3", "m.onnx"],
        ["--dim=n=1", "m.onnx"],
        ["--json", "m.onnx"],
        ["--opt-level", "3", "m.onnx"],
        ["--", "m.onnx"],
    ):
        assert completed("explain", *words, "") == second
        assert completed("explain", *(each for each in words if each != "m.onnx"), "") == first
    assert completed("explain", "-", "") == second  # of stdin
    assert completed("explain", "--", "m.onnx", "--fold") == second


def test_the_value_of_an_option_that_needs_none_is_no_argument() -> None:
    below = completed("batch", "")
    assert below
    assert completed("batch", "--verify", "final", "") == below
    assert completed("batch", "--verify", "m.onnx", "") != below


def test_an_unknown_command_has_no_candidates() -> None:
    with pytest.raises(WrongLine, match='Unknown command "optimise"'):
        completed("optimise", "")


def test_the_value_of_an_unknown_option_is_none_of_its_own() -> None:
    assert completed("convert", "--nosuch=s") == completed("convert", "--nosuch")


def test_candidates_are_recorded() -> None:
    names = {
        "joined": lambda *words: _joined(words),
        "words": lambda *typed: [each for each in completed(*typed) if len(each) < 40],
    }
    assert_values(__file__, names)
