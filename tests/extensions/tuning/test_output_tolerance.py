"""Budgets: how far outputs may move, and the levels that follow."""

from pathlib import Path
from types import SimpleNamespace

import onnx
import pytest

from tiered.extensions.tuning import output_tolerance
from tiered.extensions.tuning.output_tolerance import parse_budget
from tiered.support.errors import UsageError
from tiered.support.numerics import Numerics
from tiered.testing import parse

ADD = "(float[2,3] x) => (float[2,3] y) <float w = {1}> { y = Add(x, w) }"


@pytest.mark.parametrize(
    ("text", "level", "reference", "allowed"),
    [
        ("exact", 2, 2, {Numerics.EXACT}),
        ("reassociating", 3, 3, {Numerics.EXACT, Numerics.REASSOCIATING}),
        ("cosine >= 0.999", 4, 3, {*Numerics}),
    ],
)
def test_a_budget_decides_levels_and_passes(
    text: str, level: int, reference: int, allowed: set[Numerics]
) -> None:
    budget = parse_budget(text)
    assert (budget.level, budget.reference) == (level, reference)
    assert {each for each in Numerics if budget.allows(each)} == allowed
    assert str(budget) == text.replace(" ", "")


@pytest.mark.parametrize("text", ["", "lossy", "cosine>=2", "cosine>=0", "cosine<=0.9", "cosine"])
def test_what_is_no_budget_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="--budget"):
        parse_budget(text)


@pytest.mark.parametrize(
    ("change", "text", "fault"),
    [
        ("w = {1}", "exact", ""),
        ("w = {1.0001}", "exact", "computes something else"),
        ("w = {1.5}", "reassociating", "computes something else"),
        ("w = {1.0001}", "cosine>=0.99", ""),
        ("w = {-9}", "cosine>=0.999", "computes something else"),
    ],
)
def test_a_form_is_held_to_the_budget(tmp_path: Path, change: str, text: str, fault: str) -> None:
    paths = [str(tmp_path / name) for name in ("a.onnx", "b.onnx")]
    onnx.save(parse(ADD), paths[0])
    onnx.save(parse(ADD.replace("w = {1}", change)), paths[1])
    found = parse_budget(text).fault(paths[0], paths[1], (), 0)
    assert (fault in found) if fault else not found


def test_a_form_that_does_not_run_exceeds_every_budget(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("a.onnx", "b.onnx")]
    onnx.save(parse(ADD), paths[0])
    onnx.save(parse(ADD.replace("Add(", "no.such.Operator(")), paths[1])
    assert parse_budget("cosine>=0.1").fault(paths[0], paths[1], (), 0)


def test_outputs_that_cannot_be_compared_exceed_every_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for is_empty, trials, fault in (
        (True, 1, "its outputs cannot be compared"), (True, 0, ""), (False, 1, ""),
    ):  # fmt: skip
        found = SimpleNamespace(
            is_empty=is_empty, trials=trials, raise_if_different=lambda label: None
        )
        monkeypatch.setattr(output_tolerance, "compare_models", lambda *_, **__: found)  # noqa: B023 - called in this turn
        assert parse_budget("exact").fault("a", "b", (), 0) == fault
