"""Timing: a tree that can be read at any time."""

import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from tests.small import failing, look, model, registered
from tiered import Graph, PassContext, Sequential, function_pass
from tiered.pipeline.instruments import Timing
from tiered.support.errors import PassError


@function_pass(opt_level=0)
def sleep(graph: Graph, ctx: PassContext) -> None:
    """Take some time."""
    time.sleep(0.01)


def test_inclusive_time_holds_what_is_inside_and_exclusive_time_does_not() -> None:
    timing = Timing()
    with PassContext(instruments=[timing]):
        Sequential([sleep, Sequential([sleep], name="inner")], name="outer")(model())
    (outer,) = timing.root.children.values()
    assert list(outer.children) == ["sleep", "inner"]
    inner = outer.children["inner"]
    assert outer.inclusive >= outer.children["sleep"].inclusive + inner.inclusive
    assert outer.children["sleep"].exclusive == outer.children["sleep"].inclusive >= 0.01
    assert inner.exclusive < inner.inclusive
    total = sum(timed.exclusive for _, timed in timing.root.walk())
    assert total == pytest.approx(outer.inclusive)


def test_the_same_place_is_counted_and_a_dependency_stands_below_its_pipeline() -> None:
    needs = function_pass(opt_level=0, name="needs", required=["look"])(lambda graph, ctx: None)
    timing = Timing()
    with registered(look), PassContext(instruments=[timing]):
        Sequential([needs, sleep, sleep], name="all")(model())
    assert {n: t.calls for n, t in timing.root.children["all"].children.items()} == {
        "look": 1,
        "needs": 1,
        "sleep": 2,
    }


def test_a_pass_that_fails_is_timed_and_the_tree_stays_balanced() -> None:
    timing = Timing()
    with PassContext(instruments=[timing]), pytest.raises(PassError):
        Sequential([sleep, failing(ValueError())], name="outer")(model())
    with PassContext(instruments=[timing]):
        sleep(model())
    outer = timing.root.children["outer"]
    assert (outer.calls, outer.failures) == (1, 1)
    assert outer.children["failing"].failures == 1
    assert timing.root.children["sleep"].calls == 1
    assert "(1 failed)" in str(timing)


def test_it_reads_as_a_tree_during_and_after_the_run() -> None:
    timing = Timing()
    with PassContext(instruments=[timing]):
        Sequential([look], name="outer")(model())
        during = timing.render()
    assert timing.render() == during
    head, outer, inner = during.splitlines()
    assert head.split() == ["inclusive", "exclusive", "calls", "pass"]
    assert outer.endswith("  1  outer")
    assert inner.endswith("  1    look")


def test_totals_count_a_pass_once_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    clock = SimpleNamespace(perf_counter=lambda: now[0])
    monkeypatch.setattr("tiered.pipeline.instruments.timing.time", clock)

    @function_pass(opt_level=0)
    def slow(graph: Graph, ctx: PassContext) -> None:
        now[0] += 1

    timing = Timing()
    with PassContext(instruments=[timing]):
        Sequential([look, Sequential([slow, look])])(model())
    assert timing.totals()["look"].calls == 2
    assert next(iter(timing.totals())) == "slow"


def test_threads_do_not_mix_up_their_trees() -> None:
    timing = Timing()
    pipeline = Sequential([sleep, look], name="outer")
    with PassContext(instruments=[timing]) as ctx, ThreadPoolExecutor(4) as pool:
        list(pool.map(ctx.wrap(pipeline), [model() for _ in range(12)]))
    assert list(timing.root.children) == ["outer"]
    assert timing.root.children["outer"].calls == 12
    assert {t.calls for t in timing.root.children["outer"].children.values()} == {12}
