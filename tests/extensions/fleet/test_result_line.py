"""The line of one model: written and read again whole, or not at all."""

import json
from typing import get_args

import pytest

from tiered.extensions.fleet.result_line import SUCCESSFUL, Result, Status

WHOLE = Result(
    "ä.onnx", "out/a.onnx", "done", "", 0, 5, 2, 100, 50, 1.5, 1 << 20, "fold_constant=3", True,
    "in", "out", 7, "command", "versions",
)  # fmt: skip


@pytest.mark.parametrize("status", get_args(Status))
def test_a_result_is_there_or_not(status: Status) -> None:
    assert Result("a", "b", status).ok == (status in ("done", "cached", "skipped"))
    assert len(SUCCESSFUL) == 3


def test_a_line_is_ascii_and_is_read_again() -> None:
    line = WHOLE.line()
    assert line.isascii()
    assert "\n" not in line
    assert Result.of_line(line) == WHOLE
    assert Result.of_line(Result("a", "b", "failed", "line\nbreak").line()) is not None


@pytest.mark.parametrize("line", ["", "{", "[]", "3", "null", "{}", WHOLE.line()[:-1]])
def test_a_line_that_is_not_whole_is_none(line: str) -> None:
    assert Result.of_line(line) is None


@pytest.mark.parametrize("change", ["lacks", "has another"])
def test_a_line_of_other_fields_is_none(change: str) -> None:
    fields = json.loads(WHOLE.line())
    if change == "lacks":
        del fields["peak"]
    else:
        fields["more"] = 1
    assert Result.of_line(json.dumps(fields)) is None


def test_a_result_depends_on_input_command_and_versions() -> None:
    assert WHOLE.key == ("in", "command", "versions")


@pytest.mark.parametrize(
    ("passes", "found"),
    [
        ("", {}),
        ("fold_constant=3", {"fold_constant": 3}),
        ("fold_constant=3 fuse_gelu=12", {"fold_constant": 3, "fuse_gelu": 12}),
    ],
)
def test_the_passes_are_read_from_their_text(passes: str, found: dict[str, int]) -> None:
    assert Result("a", "b", "done", passes=passes).rewrites() == found
