"""A step that was done: its figures, its verdict, and the remarks of its conversion."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from tests.small import parsed
from tiered import Backend
from tiered.extensions.preparation.done_step import DoneStep
from tiered.extensions.preparation.precisions import PrecisionOptions, precision_pass
from tiered.extensions.preparation.preparation_steps import PreparationStep
from tiered.extensions.preparation.promise_mark import Carried
from tiered.passes.interface.report import Remark
from tiered.pipeline.optimize import optimize_model
from tiered.pipeline.result import ModelStatistics
from tiered.pipeline.sequential import Sequential, parse_pipeline
from tiered.support.numerics import EXACT

TEXT = "(float[2,2] x) => (float[2,2] y) { i = Identity(x)  a = Relu(i)  y = Erf(a) }"
CLEAN = PreparationStep(
    name="optimise", what="for any runtime", command="optimize", words=(),
    passes=parse_pipeline("eliminate_identity"), opt_level=2,
)  # fmt: skip
HALF = PreparationStep(
    name="bf16", what="", command="convert", words=(), precision="bf16",
    passes=Sequential([precision_pass("bf16", PrecisionOptions())]),
)  # fmt: skip
NONE = ModelStatistics(0, {}, 0, 0)


def done(step: PreparationStep = HALF, **more: Any) -> DoneStep:
    """Return a step with some of its figures."""
    figures: dict[str, Any] = {
        "changed": True, "before": NONE, "after": NONE, "seconds": 0.0, "verdict": "",
        "is_proved": False, "carried": Carried(), "largest": 0.0, "taken": None, "refused": None,
    }  # fmt: skip
    return DoneStep(step=step, **{**figures, **more})


def test_the_figures_are_those_of_the_run() -> None:
    model = parsed(TEXT)
    result = optimize_model(model, passes=CLEAN.passes, verify="final")
    found = DoneStep.of(CLEAN, result, None)
    assert found.changed
    assert (found.before.nodes, found.after.nodes) == (3, 2)
    assert found.seconds == result.seconds
    assert (found.verdict, found.is_proved, found.largest) == ("yes", True, 0.0)
    assert (found.taken, found.refused) == (None, None)
    assert found.promise == EXACT
    assert not found.is_conversion


def test_without_verification_there_is_no_verdict() -> None:
    result = optimize_model(parsed(TEXT), passes=CLEAN.passes, verify="off")
    found = DoneStep.of(CLEAN, result, None)
    assert (found.verdict, found.is_proved, found.largest) == ("", False, 0.0)


def test_a_run_that_changed_nothing_has_nothing_to_prove() -> None:
    text = "(float[2,2] x) => (float[2,2] y) { y = Relu(x) }"
    found = DoneStep.of(
        CLEAN, optimize_model(parsed(text), passes=CLEAN.passes, verify="final"), None
    )
    assert not found.changed
    assert found.is_proved
    assert found.verdict.startswith("nothing to verify")


@pytest.mark.parametrize(("operators", "taken"), [(("Relu", "Erf"), 2), (("Relu",), 1), ((), 0)])
def test_the_nodes_that_the_target_takes_are_counted(
    operators: tuple[str, ...], taken: int
) -> None:
    from tiered.targets.operator_rule import OperatorRule

    model = parsed(TEXT)
    result = optimize_model(model, passes=CLEAN.passes, verify="off")
    backend = Backend(name="npu", operators={("", each): (OperatorRule(),) for each in operators})
    found = DoneStep.of(CLEAN, result, backend.coverage(model))
    assert (found.taken, found.refused) == (taken, 2 - taken)


def test_a_conversion_that_changed_something_is_one() -> None:
    assert done(HALF).is_conversion
    assert not done(HALF, changed=False).is_conversion
    assert not done(CLEAN).is_conversion


REMARKS = (
    Remark("missed", "float_to_bfloat16", "the operator is kept", 2, "Erf"),
    Remark("missed", "fuse_gelu", "another pass"),
    Remark("analysis", "float_to_bfloat16", "a half of the nodes"),
    Remark("analysis", "another", "no"),
    Remark("applied", "float_to_bfloat16", "no"),
)


def test_remarks_of_the_conversion_are_told_from_others() -> None:
    found = done(HALF, remarks=REMARKS)
    assert found.stays_float == [REMARKS[0]]
    assert found.found == ["a half of the nodes"]
    for other in (
        CLEAN,
        PreparationStep(name="fp16", what="", command="convert", words=(), precision="fp16"),
    ):
        plain = done(other, remarks=REMARKS)
        assert (plain.stays_float, plain.found) == ([], [])


def test_the_record_is_plain_data() -> None:
    after = ModelStatistics(4, {"Relu": 4}, 10, 99)
    found = done(
        HALF, after=after, verdict="yes", largest=0.5, taken=3, refused=1, seconds=1.5,
        remarks=REMARKS,
    ).record()  # fmt: skip
    assert found == {
        "name": "bf16", "what": "", "passes": "float_to_bfloat16", "opt_level": None,
        "backend": None, "changed": True, "nodes": 4, "bytes": 99, "taken": 3, "refused": 1,
        "verdict": "yes", "promise": "exact", "largest_difference": 0.5,
        "found": ["a half of the nodes"], "seconds": 1.5,
    }  # fmt: skip
    target = PreparationStep(
        name="target", what="for npu", command="optimize", words=(), backend="npu", opt_level=3
    )
    found = done(target).record()
    assert (found["backend"], found["passes"], found["opt_level"]) == ("npu", "default", 3)


def test_what_is_proved_and_taken() -> None:
    report = SimpleNamespace(changing=lambda: [1], results=[])
    for word, largest, refused, expected in (
        ("yes", 0.5, None, (True, "yes!", 0.5, None, None)),
        ("nothing to verify", 0.0, 3, (True, "nothing to verify!", 0.0, 4, 3)),
        ("no", 2.0, 0, (False, "no!", 2.0, 7, 0)),
        (None, 0.0, 7, (False, "", 0.0, 0, 7)),
    ):
        verdict = Verdict(word)
        result: Any = SimpleNamespace(
            verify=None if word is None else SimpleNamespace(verdict=verdict, largest=largest),
            report=report, before=NONE, after=NONE, seconds=1.0, remarks=["r"],
            model=SimpleNamespace(notes=["n"]),
        )  # fmt: skip
        coverage: Any = SimpleNamespace(nodes=7, refused=Counter({"Op": refused or 0}))
        made = DoneStep.of(CLEAN, result, None if refused is None else coverage)
        assert (made.is_proved, made.verdict, made.largest, made.taken, made.refused) == expected
        assert (made.changed, made.notes, len(made.remarks)) == (True, ("n",), 1)


class Verdict:
    def __init__(self, word: str | None) -> None:
        self.word = word

    def __str__(self) -> str:
        return f"{self.word}!"
