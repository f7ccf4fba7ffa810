"""Edits of a pipeline: their text, their author, and what is no edit."""

import pytest

from tiered.support.errors import PipelineSyntaxError
from tiered.targets.pipeline_edits import PipelineEdit, edits_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("before a: b, c{x=1}", ("before", "a", "b, c{x=1}")),
        (" after  a:2 : b ", ("after", "a:2", "b")),
        ("replace a.b-c: (d)", ("replace", "a.b-c", "(d)")),
        ("drop a", ("drop", "a", "")),
        ("set a{x=1,\n y=2}", ("set", "a", "{x=1,\n y=2}")),
        ("set a:3 {x=1}", ("set", "a:3", "{x=1}")),
    ],
)
def test_an_edit_has_a_kind_a_target_and_passes(text: str, expected: tuple[str, str, str]) -> None:
    made = PipelineEdit.parse(text, why="reason", by="npu")
    assert (made.kind, made.target, made.passes) == expected
    assert (made.why, made.by) == ("reason", "npu")
    assert PipelineEdit.parse(str(made), why="reason", by="npu") == made


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "'' is no edit \\(expected"),
        ("drop", "'drop' is no edit"),
        ("befor a: b", "'befor a: b' is no edit; did you mean 'before'"),
        ("drop a: b", "expected nothing after 'a'"),
        ("drop a b", "expected nothing after 'a'"),
        ("set a", "expected options in braces after 'a'"),
        ("set a: {x=1}", "expected options in braces after 'a'"),
        ("set a{x=1", "expected options in braces after 'a'"),
        ("before a", "expected ': passes' after 'a'"),
        ("before a:", "expected ': passes' after 'a'"),
        ("after a b", "expected ': passes' after 'a'"),
        ("replace a{x=1}", "expected ': passes' after 'a'"),
    ],
)
def test_what_is_no_edit_says_what_is_expected(text: str, reason: str) -> None:
    with pytest.raises(PipelineSyntaxError, match=reason):
        PipelineEdit.parse(text)


def test_an_author_is_set_once() -> None:
    first, second = edits_of([PipelineEdit("drop", "a", by="npu"), "drop b"], "user")
    assert (first.by, second.by) == ("npu", "user")
    assert edits_of("drop a", "user") == (PipelineEdit("drop", "a", by="user"),)
    assert edits_of((), "user") == ()
