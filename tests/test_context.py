"""PassContext: inheritance, settings, unused entries, threads and tasks."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import tiered
from tests.small import (
    Recorder,
    drop_neg,
    fuse_relu,
    keep_abs,
    look,
    model,
    ops,
    registered,
    rename_graph,
)
from tiered import Graph, Model, Pass, PassContext, Sequential, Skip, function_pass, module_pass
from tiered.passes.interface.pass_info import Place
from tiered.support.errors import (
    ConfigError,
    UsageError,
)
from tiered.targets.any_runtime import ANY_RUNTIME, DEFAULT

PASSES = (fuse_relu, drop_neg, keep_abs, rename_graph, look)


@pytest.fixture(autouse=True)
def _named() -> Iterator[None]:
    with registered(*PASSES):
        yield


def decides(pass_: Pass | str, place: Place | None = None, **settings: Any) -> bool:
    return PassContext(**settings).decide(pass_, place).run


# --- nesting --------------------------------------------------------------------------------------


def test_what_is_not_given_is_inherited() -> None:
    with (
        PassContext(
            3,
            backend="onnxruntime_cpu",
            on_error="skip",
            strict=True,
            rewrite_limit=7,
            config={"remarks.examples": 1},
            disabled=["look"],
        ),
        PassContext(config={"verify.seed": 3}) as inner,
    ):
        assert (inner.opt_level, inner.on_error) == (3, "skip")
        assert inner.backend.name == "onnxruntime_cpu"
        assert (inner.strict, inner.rewrite_limit) == (True, 7)
        assert inner.config["remarks.examples"] == 1
        assert inner.config["verify.seed"] == 3
        assert not inner.decide(look)
        inner.decide(look)
    assert (inner.opt_level, inner.on_error, inner.strict) == (2, "raise", False)


def test_the_innermost_context_that_mentions_a_pass_decides() -> None:
    with PassContext(0, required=["drop_neg"], disabled=["look"]):
        with PassContext(required=["look"]) as inner:
            assert inner.decide(look)
            assert inner.decide(drop_neg)
            assert not inner.decide(fuse_relu)
        with PassContext(disabled=["drop_neg"]) as inner:
            assert not inner.decide(drop_neg)
            assert not inner.decide(look)


def test_an_isolated_context_inherits_nothing_and_tells_nobody() -> None:
    recorder = Recorder()
    with PassContext(4, disabled=["look"], instruments=[recorder]) as outer:
        with PassContext.isolated(required=["drop_neg"]) as ctx:
            assert ctx.opt_level == 2
            look(model())
            assert ctx.decide(drop_neg)
            with PassContext(disabled=["fuse_relu"]) as inner:
                assert inner.opt_level == 2
                assert inner.decide(drop_neg)
        assert not outer.decide(look)
    assert recorder.calls == ["enter", "exit"]
    assert not outer.report.results
    assert [result.name for result in ctx.report.results] == ["look"]


def test_apply_keeps_the_backend_and_the_config_around_it() -> None:
    seen: list[tuple[bool, object, int]] = []

    @module_pass(opt_level=4)
    def looks(model: Model, ctx: PassContext) -> None:
        seen.append((ctx.names_backend, ctx.config["verify.seed"], ctx.opt_level))

    config = {"verify.seed": 7}
    with PassContext(1, disabled=[looks], backend="onnxruntime_cpu", config=config) as around:
        looks.apply(model())
        looks.apply(model(), PassContext.isolated())
    looks.apply(model())
    assert seen == [(True, 7, 2), (False, 0, 2), (False, 0, 2)]
    assert not around.report.results


def test_current_is_the_innermost_context_and_without_one_the_defaults() -> None:
    assert not PassContext.is_active()
    assert PassContext.current().opt_level == 2
    with PassContext(1) as outer:
        with PassContext(3) as inner:
            assert PassContext.current() is inner
        assert PassContext.current() is outer


def test_a_context_can_be_entered_again_and_inside_itself() -> None:
    ctx = PassContext(3)
    for _ in range(2):
        with ctx, PassContext(1), ctx:
            assert PassContext.current().opt_level == 3
    assert not PassContext.is_active()


def test_a_context_is_left_when_its_body_raises() -> None:
    with pytest.raises(ValueError, match="boom"), PassContext(3):
        raise ValueError("boom")
    assert not PassContext.is_active()


def test_the_results_of_inner_contexts_are_known_outside() -> None:
    with PassContext() as outer:
        with PassContext() as inner:
            look(model())
        fuse_relu(model())
    assert [result.name for result in inner.report.results] == ["look"]
    assert [result.name for result in outer.report.results] == ["look", "fuse_relu"]


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"opt_level": "3"}, "opt_level takes an integer from 0 to 4, not '3'"),
        ({"opt_level": True}, "opt_level takes an integer"),
        ({"opt_level": -1}, "opt_level takes an integer"),
        ({"on_error": "ignore"}, "on_error takes 'raise' or 'skip', not 'ignore'"),
        ({"strict": 1}, "strict takes true or false"),
        ({"backend": 3}, "backend takes a Backend, the name of one"),
        ({"rewrite_limit": -1}, "rewrite_limit takes an integer from 0"),
        ({"trace": 3}, "trace takes a callable"),
        ({"instruments": [object()]}, "is no instrument"),
        ({"instruments": object()}, "instruments takes a list"),
    ],
)
def test_wrong_settings_raise_at_once(settings: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PassContext(**settings)


def test_wrong_config_raises_at_once() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'remarks\.examples'"):
        PassContext(config={"remarks.exmples": 1})
    with pytest.raises(ConfigError, match="takes an integer"):
        PassContext(config={"remarks.examples": "many"})


def test_config_is_read_only_and_has_every_default() -> None:
    config = PassContext().config
    assert config["remarks.examples"] == 5
    with pytest.raises(TypeError):
        config["remarks.examples"] = 1  # type: ignore[index]  # the point


# --- entries that nothing met ---------------------------------------------------------------------


def test_an_entry_that_met_nothing_is_a_remark() -> None:
    with PassContext(required=["drop_neg"], disabled=["look", "fuse_*"]) as ctx:
        look(model())
    assert [str(remark) for remark in ctx.remarks if remark.kind == "unmet"] == [
        f"required 'drop_neg', set at {ctx.site} matches no pass",
        f"disabled 'fuse_*', set at {ctx.site} matches no pass",
    ]


def test_an_entry_that_another_one_overrules_was_met_all_the_same() -> None:
    with PassContext(disabled=["look"]) as outer, PassContext(required=["look"]):
        look(model())
    assert not outer.remarks


def test_strict_makes_an_error_of_it_unless_there_is_one_already() -> None:
    strict = PassContext(required=["look"], strict=True)
    unmet = r"'look', set at .* matches no pass"
    with pytest.raises(UsageError, match=unmet), strict:
        pass
    with pytest.raises(ValueError, match="boom"), PassContext(required=["look"], strict=True):
        raise ValueError("boom")


# --- threads, tasks, generators -------------------------------------------------------------------


def test_a_thread_starts_without_a_context_unless_it_is_carried_over() -> None:
    def level() -> int:
        return PassContext.current().opt_level

    with ThreadPoolExecutor(2) as pool, PassContext(4) as ctx:
        assert pool.submit(level).result() == 2
        assert [pool.submit(ctx.wrap(level)).result() for _ in range(20)] == [4] * 20
        assert pool.submit(level).result() == 2


def test_one_context_serves_many_threads() -> None:
    recorder = Recorder()
    ctx = PassContext(3, instruments=[recorder])

    def work(number: int) -> list[str]:
        with ctx, PassContext(disabled=["fuse_relu"] if number % 2 else []):
            return ops(Sequential([fuse_relu, drop_neg])(model()))

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(40)))
    assert results[0::2] == [["Relu", "Abs"]] * 20
    assert results[1::2] == [["Relu", "Relu", "Abs"]] * 20
    assert recorder.calls.count("enter") == recorder.calls.count("exit") == 40
    assert len(ctx.report.of("drop_neg")) == 40


def test_what_runs_in_a_carried_context_is_reported_there() -> None:
    with ThreadPoolExecutor(4) as pool, PassContext() as ctx:
        list(pool.map(ctx.wrap(fuse_relu), [model() for _ in range(8)]))
    assert len(ctx.report.of("fuse_relu")) == 8


def test_tasks_do_not_see_each_others_contexts() -> None:
    async def work(level: int) -> tuple[int, int]:
        before = PassContext.current().opt_level
        with PassContext(level):
            await asyncio.sleep(0)
            return before, PassContext.current().opt_level

    async def main() -> list[tuple[int, int]]:
        with PassContext(1):
            return await asyncio.gather(*(work(level) for level in (0, 3, 4)))

    assert asyncio.run(main()) == [(1, 0), (1, 3), (1, 4)]


def test_tasks_and_threads_of_a_task_start_with_its_context() -> None:
    def level() -> int:
        return PassContext.current().opt_level

    async def inner() -> int:
        with PassContext(disabled=["look"]) as ctx:
            return await asyncio.to_thread(level) + (0 if ctx.decide(look) else 10)

    async def main() -> tuple[int, int, int]:
        with PassContext(4):
            task = asyncio.create_task(inner())
        # The task keeps the context that it was made in.
        return await task, await asyncio.to_thread(level), level()

    assert asyncio.run(main()) == (14, 2, 2)


def test_models_in_tasks_of_their_own_do_not_mix() -> None:
    recorder = Recorder()

    async def work(number: int) -> list[str]:
        with PassContext(3, disabled=["fuse_relu"] if number % 2 else []):
            given = fuse_relu(model())
            await asyncio.sleep(0)
            return ops(drop_neg(given))

    async def main() -> list[list[str]]:
        with PassContext(instruments=[recorder]):
            return await asyncio.gather(*(work(number) for number in range(6)))

    assert asyncio.run(main()) == [["Relu", "Abs"], ["Relu", "Relu", "Abs"]] * 3
    assert recorder.calls.count("before drop_neg") == recorder.calls.count("after drop_neg") == 6


def test_an_async_generator_closed_by_another_task_tells_its_instruments() -> None:
    recorder = Recorder()

    async def levels() -> AsyncGenerator[int, None]:
        with PassContext(4, instruments=[recorder]):
            yield PassContext.current().opt_level

    async def main() -> int:
        generator = levels()
        first = await anext(generator)
        await asyncio.create_task(_closed(generator))
        return first

    async def _closed(generator: AsyncGenerator[int, None]) -> None:
        await generator.aclose()

    assert asyncio.run(main()) == 4
    assert recorder.calls == ["enter", "exit"]
    assert not PassContext.is_active()


def test_a_wrapped_function_that_raises_leaves_its_thread_as_it_was() -> None:
    def fail() -> None:
        assert PassContext.current().opt_level == 4
        raise ValueError("boom")

    with ThreadPoolExecutor(1) as pool, PassContext(4) as ctx:
        with pytest.raises(ValueError, match="boom"):
            pool.submit(ctx.wrap(fail)).result()
        assert not pool.submit(PassContext.is_active).result()


def test_generators_may_leave_contexts_in_any_order() -> None:
    def within(level: int) -> Generator[int, None, None]:
        with PassContext(level):
            yield level

    first, second = within(3), within(4)
    next(first)
    next(second)
    with PassContext(1):
        with contextlib.suppress(StopIteration):
            next(first)
        assert PassContext.current().opt_level == 1
        second.close()
        assert PassContext.current().opt_level == 1
    assert not PassContext.is_active()


def test_a_context_that_was_not_entered_here_cannot_be_left() -> None:
    with pytest.raises(UsageError, match="is not entered here"):
        PassContext().__exit__(None, None, None)


def test_a_pass_that_a_pass_calls_sees_the_same_context() -> None:
    levels: list[int] = []

    @tiered.function_pass(opt_level=0)
    def inner(graph: Graph, ctx: PassContext) -> None:
        levels.append(ctx.opt_level)

    @tiered.module_pass(opt_level=0)
    def outer(model: Model, ctx: PassContext) -> None:
        inner(model)

    with PassContext(4):
        outer(model())
    assert levels == [4]


@pytest.mark.parametrize(
    ("name", "meant"),
    [("disable", "disabled"), ("required_pass", "required"), ("level", "opt_level")],
)
def test_a_setting_under_another_name_leads_to_the_name_here(name: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"no setting '{name}'; here it is called '{meant}'"):
        PassContext(**dict[str, Any]({name: []}))


def test_an_unknown_setting_suggests_a_similar_one() -> None:
    settings: dict[str, Any] = {"instrument": []}
    with pytest.raises(UsageError, match="did you mean 'instruments'"):
        PassContext(**settings)


@function_pass(opt_level=0)
def talks(graph: Graph, ctx: PassContext) -> None:
    """Say something of a node, and of none."""
    (node, *_) = graph.nodes
    ctx.remark("it is the first", node)
    ctx.skip(node, "it stays")
    ctx.remark(Skip("there are {}", len(graph)))
    ctx.skip(None, "all stays")


def test_what_a_pass_says_is_in_the_report() -> None:
    ctx = PassContext.isolated()
    with ctx:
        talks(model())
    said = [(each.kind, each.reason, each.op_type) for each in ctx.remarks]
    assert sorted(said) == [
        ("analysis", "it is the first", "Relu"), ("analysis", "there are 4", ""),
        ("missed", "all stays", ""), ("missed", "it stays", "Relu"),
    ]  # fmt: skip


def test_outside_of_passes_nobody_listens() -> None:
    ctx = PassContext.isolated()
    ctx.remark("nothing")
    ctx.skip(None, "nothing")
    assert ctx.remarks == []


def test_numbers_of_settings_have_bounds() -> None:
    for limit in (True, "3", 1.5):
        with pytest.raises(UsageError, match="rewrite_limit takes an integer from 0"):
            PassContext(rewrite_limit=limit)  # type: ignore[arg-type]  # the point
    assert PassContext(rewrite_limit=0).rewrite_limit == 0
    for level in (0, 4):
        assert PassContext(level).opt_level == level
    wrongs: tuple[Any, ...] = (5, 1.5, [])
    for wrong in wrongs:
        with pytest.raises(UsageError, match="opt_level takes an integer"):
            PassContext(wrong)


def test_without_a_backend_the_default_one_is_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    ctx = PassContext.isolated()
    assert ctx.backend.name == DEFAULT
    assert not ctx.names_backend
    for registered_backends, name in (({}, ANY_RUNTIME), ({DEFAULT: None}, ctx.backend)):
        monkeypatch.setattr("tiered.context.REGISTERED", registered_backends)
        assert ctx.target is name
    cpu = PassContext(backend="onnxruntime_cpu")
    assert cpu.names_backend
    for registered_backends in ({}, {DEFAULT: None}):
        monkeypatch.setattr("tiered.context.REGISTERED", registered_backends)
        assert cpu.target is cpu.backend


def test_a_limit_of_memory_is_in_bytes() -> None:
    assert PassContext.isolated().max_memory is None
    assert PassContext(config={"memory.max": "3KiB"}).max_memory == 3072


def test_a_pass_may_be_named_for_a_decision() -> None:
    assert PassContext().decide("look") == PassContext().decide(look)


class Leaving(Recorder):
    def exit_pass_ctx(self) -> None:
        raise UsageError("late")


def test_an_error_on_leaving_is_added_to_that_of_the_body() -> None:
    with pytest.raises(UsageError, match=r"^late$"), PassContext(instruments=[Leaving()]):
        pass
    with pytest.raises(ValueError, match="boom") as caught, PassContext(instruments=[Leaving()]):
        raise ValueError("boom")
    assert caught.value.__notes__ == ["and on leaving the context: late"]


def test_other_instruments_may_watch_from_now_on() -> None:
    first, second, around, trace = (Recorder(name) for name in "1234")
    with pytest.raises(UsageError, match="override_instruments needs a context that is entered"):
        PassContext().override_instruments([])
    inner = PassContext(instruments=[first], trace=trace)  # type: ignore[arg-type]  # an instrument
    with PassContext(instruments=[around]), inner, PassContext():
        inner.override_instruments([second])
        look(model())
        inner.override_instruments(None)
        look(model())
    assert first.calls == ["enter 1", "exit 1"]
    assert second.calls == ["enter 2", "before 2 look", "after 2 look", "exit 2"]
    assert around.calls == ["enter 3", *["before 3 look", "after 3 look"] * 2, "exit 3"]
    assert trace.calls == [
        *["enter 4", "exit 4"],
        *["enter 4", "before 4 look", "after 4 look", "exit 4"] * 2,
    ]
    assert not PassContext.is_active()


def test_an_instrument_that_is_the_trace_too_is_told_once() -> None:
    recorder = Recorder()
    with PassContext(trace=recorder, instruments=[Recorder(), recorder]):  # type: ignore[arg-type]  # the point
        look(model())
    assert recorder.calls == ["enter", "before look", "after look", "exit"]


def test_required_passes_that_no_decision_met_are_known() -> None:
    with PassContext(required=["look", "fuse_relu"]) as ctx:
        look(model())
        assert [entry.text for entry in ctx.unmet()] == ["fuse_relu"]
