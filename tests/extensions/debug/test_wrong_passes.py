"""Every wrong pass is caught, blamed, taken back and reproduced; no right one is."""

from pathlib import Path

import pytest

from tests.extensions.debug.acceptance import is_taken_back
from tests.extensions.debug.wrong_passes import WRONG, Wrong
from tiered import Model, Sequential
from tiered.extensions.debug import OutputOracle, Subject, bisect, load_bundle, replay, reproduce
from tiered.testing import parse

DOCS = Path(__file__).resolve().parents[3] / "docs" / "blame.md"

each_wrong_pass = pytest.mark.parametrize("case", WRONG, ids=lambda case: str(case.name))


def oracle_of(case: Wrong) -> OutputOracle:
    return OutputOracle(parse(case.model), inputs=[case.feeds] if case.feeds else ())


@each_wrong_pass
def test_a_wrong_pass_is_blamed_at_the_right_rewrite_and_its_bundle_shows_it(
    case: Wrong, tmp_path: Path
) -> None:
    oracle = oracle_of(case)
    passes = Sequential(["eliminate_identity", case.pass_, "eliminate_deadend"])
    subject = Subject(parse(case.model), passes)
    blame = bisect(subject.source, passes=passes, oracle=oracle)
    assert blame is not None, "it is not caught"
    assert (blame.pass_name, blame.anchor, blame.kind) == (case.name, case.at, case.kind)
    folder = reproduce(subject, blame, oracle.sample.feeds).save(tmp_path / "bundle")
    found = replay(load_bundle(folder), case.pass_)
    assert found.fails, found.symptom
    assert found.ran_pass


@each_wrong_pass
def test_a_wrong_pass_fails_verification_and_is_taken_back_exactly(case: Wrong) -> None:
    view = Model.from_proto(parse(case.model))
    assert is_taken_back(case.pass_, view, [case.feeds] if case.feeds else ())


@pytest.mark.parametrize("text", sorted({case.model for case in WRONG}))
def test_no_right_pass_is_blamed(text: str) -> None:
    assert bisect(parse(text), opt_level=4) is None


def test_the_documentation_lists_every_wrong_pass() -> None:
    lines = DOCS.read_text(encoding="utf-8").splitlines()
    rows = [line.split(" | ")[:3] for line in lines if line.startswith("| `")]
    assert rows == [[f"| `{case.name}`", case.flaw, case.kind] for case in WRONG]


def test_there_are_at_least_thirty() -> None:
    assert len({case.name for case in WRONG}) >= 30
