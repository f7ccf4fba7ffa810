"""Verdicts in a file: only those of the same search are known again."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnx
import pytest

from tests.small import FOUR, drop_neg, neg_to_abs, proto
from tiered.extensions.debug.pipeline_runs import Subject
from tiered.extensions.debug.resume_file import ResumeFile
from tiered.support.errors import ModelError

ORACLE: Any = SimpleNamespace(name="outputs")


def subject(**more: Any) -> Subject:
    return Subject(proto(FOUR), [neg_to_abs], **more)


def test_without_a_file_verdicts_are_in_memory() -> None:
    found = ResumeFile.of(None, subject(), ORACLE)
    found.keep("3", "wrong")
    assert (found.path, found.subject, found.verdicts) == (None, "", {"3": "wrong"})
    assert ResumeFile.of(None, subject(), ORACLE).verdicts == {}


def test_verdicts_of_the_same_search_come_back(tmp_path: Path) -> None:
    path = tmp_path / "resume.json"
    first = ResumeFile.of(path, subject(), ORACLE)
    assert first.verdicts == {}
    assert not path.exists()
    first.keep("3", "wrong")
    first.keep("1", "")
    again = ResumeFile.of(str(path), subject(), ORACLE)
    assert again.verdicts == {"3": "wrong", "1": ""}
    assert again.subject == first.subject
    assert json.loads(path.read_text()) == {"subject": first.subject, "verdicts": first.verdicts}


@pytest.mark.parametrize(
    "other",
    [
        (Subject(proto(FOUR), [drop_neg]), ORACLE),
        (Subject(proto(FOUR), [neg_to_abs], {"opt_level": 1}), ORACLE),
        (Subject(proto(), [neg_to_abs]), ORACLE),
        (Subject(proto(FOUR), [neg_to_abs]), SimpleNamespace(name="command x")),
    ],
    ids=["passes", "settings", "model", "oracle"],
)
def test_another_search_knows_nothing_of_them(tmp_path: Path, other: Any) -> None:
    path = tmp_path / "resume.json"
    ResumeFile.of(path, subject(), ORACLE).keep("3", "wrong")
    found = ResumeFile.of(path, *other)
    assert found.verdicts == {}
    found.keep("1", "")
    assert ResumeFile.of(path, subject(), ORACLE).verdicts == {}


def test_the_model_of_a_file_counts_by_its_bytes(tmp_path: Path) -> None:
    model, path = tmp_path / "m.onnx", tmp_path / "resume.json"
    onnx.save(proto(FOUR), model)
    of = Subject(model, [neg_to_abs])
    ResumeFile.of(path, of, ORACLE).keep("3", "wrong")
    assert ResumeFile.of(path, of, ORACLE).verdicts == {"3": "wrong"}
    onnx.save(proto(), model)
    assert ResumeFile.of(path, of, ORACLE).verdicts == {}


@pytest.mark.parametrize("content", ["[]", "{}", '{"subject": 1, "verdicts": {}}', "3"])
def test_a_file_of_something_else_is_overwritten(tmp_path: Path, content: str) -> None:
    path = tmp_path / "resume.json"
    path.write_text(content)
    found = ResumeFile.of(path, subject(), ORACLE)
    assert found.verdicts == {}
    found.keep("1", "")
    assert ResumeFile.of(path, subject(), ORACLE).verdicts == {"1": ""}


def test_a_file_of_this_search_without_verdicts_has_none(tmp_path: Path) -> None:
    path = tmp_path / "resume.json"
    own = ResumeFile.of(path, subject(), ORACLE).subject
    for content in ({"subject": own}, {"subject": own, "verdicts": [1]}):
        path.write_text(json.dumps(content))
        assert ResumeFile.of(path, subject(), ORACLE).verdicts == {}


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "resume.json"
    path.write_text("{")
    with pytest.raises(ModelError, match=r"cannot read .*resume.json to resume from"):
        ResumeFile.of(path, subject(), ORACLE)
    with pytest.raises(ModelError, match="to resume from"):
        ResumeFile.of(tmp_path, subject(), ORACLE)
