"""Decisions are made once for all calls under the same settings."""

from typing import Any

import pytest

import tiered
from benchmarks.idle import LIMIT, microseconds_per_turn, small
from tiered import PassContext, Sequential
from tiered.passes.execution import execute
from tiered.passes.interface.pass_info import PassResult, Place
from tiered.passes.interface.registry import registry


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the passes that contexts decide about from now on."""
    found: list[str] = []
    decide = PassContext.decide

    def counted(self: PassContext, pass_: Any, place: Any = None) -> Any:
        found.append(getattr(pass_, "name", pass_))
        return decide(self, pass_, place)

    monkeypatch.setattr(PassContext, "decide", counted)
    return found


def results(pipeline: Sequential, **settings: Any) -> list[PassResult]:
    """Return what a run reports, but for the time and the number of the model."""
    context = PassContext(**settings)
    execute(pipeline, small(), context, Place())
    return [result._replace(seconds=0.0, model=0) for result in context.report.results]


def test_a_second_call_decides_nothing_and_reports_the_same(asked: list[str]) -> None:
    pipeline = Sequential(["fold_constant", "fix(fuse_gelu,eliminate_deadend)"])
    first = results(pipeline, opt_level=2)
    assert {"fold_constant", "fuse_gelu", "eliminate_deadend"} <= set(asked)
    asked.clear()
    assert results(pipeline, opt_level=2) == first
    assert not asked


@pytest.mark.parametrize(
    "settings",
    [
        {"opt_level": 3},
        {"opt_level": 2, "disabled": ["fold_constant"]},
        {"opt_level": 2, "required": ["fuse_gelu"]},
        {"opt_level": 2, "backend": "onnxruntime_cpu"},
        {"opt_level": 2, "config": {"fixpoint.max_rounds": 3}},
    ],
)
def test_other_settings_are_decided_anew(settings: dict[str, Any], asked: list[str]) -> None:
    pipeline = Sequential(["fold_constant", "fuse_gelu"])
    before = results(pipeline, opt_level=2)
    asked.clear()
    fresh = results(Sequential(["fold_constant", "fuse_gelu"]), **settings)
    asked.clear()
    assert [r[:4] for r in results(pipeline, **settings)] == [r[:4] for r in fresh]
    assert asked
    asked.clear()
    assert results(pipeline, opt_level=2) == before
    assert not asked


def test_a_context_around_it_decides_too(asked: list[str]) -> None:
    pipeline = Sequential(["fold_constant"])
    results(pipeline, opt_level=2)
    with PassContext(disabled=["fold_constant"]):
        assert [r.ran for r in results(pipeline) if r.name == "fold_constant"] == [False]


def test_the_reason_names_the_line_that_set_the_level_now() -> None:
    pipeline = Sequential(["fuse_gelu"], opt_ins="parked")
    one = PassContext(opt_level=2)
    two = PassContext(opt_level=2)
    for context in (one, two):
        execute(pipeline, small(), context, Place())
    reasons = [context.report.of("fuse_gelu")[0].reason for context in (one, two)]
    assert reasons[0] != reasons[1]


def test_a_pass_that_is_registered_later_counts(asked: list[str]) -> None:
    pipeline = Sequential(["fold_constant"])
    results(pipeline)
    asked.clear()

    @tiered.module_pass(opt_level=0)
    def registered_by_the_test_of_plans(model: tiered.Model, ctx: PassContext) -> None:
        """Do nothing."""

    tiered.register(registered_by_the_test_of_plans)
    try:
        results(pipeline)
        assert asked
    finally:
        registry.unregister("registered_by_the_test_of_plans")


def test_a_pipeline_keeps_few_plans() -> None:
    pipeline = Sequential(["fold_constant"])
    for rounds in range(1, 50):
        results(pipeline, config={"fixpoint.max_rounds": rounds})
    assert len(pipeline.plans) <= 16


def test_the_benchmark_measures_turns() -> None:
    """The limit holds on a quiet machine: `make bench-idle`; here only that it is near."""
    assert 0 < microseconds_per_turn(5) < 40 * LIMIT
