"""PassContext: what decides, what is inherited, who watches."""

import asyncio
import contextlib
import inspect
import os
from collections.abc import AsyncGenerator, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import tiered
from tests.small import (
    content,
    drop_neg,
    failing,
    fuse_relu,
    keep_abs,
    look,
    model,
    ops,
    proto,
    registered,
    rename_graph,
)
from tiered import Fixpoint, Graph, Model, Pass, PassContext, PassInfo, PassResult, Sequential
from tiered.errors import (
    ConfigError,
    ModelError,
    PassError,
    PassNotFoundError,
    UsageError,
    VerificationError,
)
from tiered.passes.pass_info import Decision, Place

PASSES = (fuse_relu, drop_neg, keep_abs, rename_graph, look)


@pytest.fixture(autouse=True)
def _named() -> Iterator[None]:
    with registered(*PASSES):
        yield


def decides(pass_: Pass | str, place: Place | None = None, **settings: Any) -> bool:
    return PassContext(**settings).decide(pass_, place).run


# --- decisions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "runs"), [(0, False), (2, False), (3, True), (4, True)])
def test_the_level_decides_where_nobody_mentions_the_pass(level: int, runs: bool) -> None:
    assert decides(drop_neg, opt_level=level) is runs


def test_the_default_level_is_two() -> None:
    assert PassContext().opt_level == 2
    assert decides(keep_abs)
    assert not decides(drop_neg)


def test_required_beats_the_level_and_disabled_beats_required() -> None:
    assert decides(drop_neg, opt_level=0, required=["drop_neg"])
    assert not decides(look, disabled=["look"])
    assert not decides(look, required=["look"], disabled=["lo*"])
    assert not decides(look, required=["l*"], disabled=["look"])


@pytest.mark.parametrize(
    "entry", ["fuse_relu", "FuseRelu", "fuse-relu", "fuse_*", "*relu", fuse_relu]
)
def test_entries_name_passes_in_many_ways(entry: Pass | str) -> None:
    assert not decides("fuse_relu", disabled=[entry])
    assert decides(look, disabled=[entry])


def test_an_alias_that_stands_for_two_disables_both() -> None:
    for name in ("fuse_bn_into_conv", "fuse_bn_into_gemm"):
        assert not decides(name, opt_level=3, disabled=["fuse_bn"])


@pytest.mark.parametrize("argument", ["required", "disabled"])
@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (["fuse_rleu"], "no pass named 'fuse_rleu'; did you mean 'fuse_relu'"),
        (["fusing_*"], r"no pass fits 'fusing_\*'"),
        ([" fuse_relu:x"], "no pass|no entry"),
        (["a/b:c"], "is no entry"),
        ("fuse_relu", r"takes a list of passes, not one text: \['fuse_relu'\]"),
        (fuse_relu, "takes a list of passes, not"),
        (None, "takes a list of passes, not None"),
        ([3], "takes names and passes, not 3"),
        (["rename_graph@'/a/**'"], "rename_graph is a module pass"),
    ],
)
def test_wrong_entries_raise_at_once(argument: str, entries: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PassContext(**{argument: entries})


@pytest.mark.parametrize("other", ["fuse_relu", "FuseRelu", fuse_relu])
def test_the_same_name_required_and_disabled_is_an_error(other: Any) -> None:
    with pytest.raises(UsageError, match=r"required and .* disabled in the same context"):
        PassContext(required=["fuse_relu"], disabled=[other])


def test_a_pass_with_options_is_meant_with_those_options_only() -> None:
    twice = rename_graph.with_options(times=2)
    with PassContext(disabled=[twice]) as ctx:
        assert not ctx.decide(twice)
        assert ctx.decide(rename_graph)
    with PassContext(disabled=[rename_graph]) as ctx:
        assert not ctx.decide(twice)


def test_decisions_say_why_and_where_it_was_set() -> None:
    with PassContext(opt_level=1, disabled=["fuse_*"]) as ctx:
        disabled = ctx.decide(fuse_relu)
        assert disabled == Decision(False, f"disabled by 'fuse_*', set at {ctx.site}")
        assert ctx.decide(drop_neg).reason == f"needs opt_level 3; it is 1, set at {ctx.site}"
        assert ctx.decide(look).reason == "opt_level 1 includes level 0"
        assert ctx.decide(rename_graph).reason == "asked for by name"


def test_the_place_is_the_line_of_the_user() -> None:
    line, ctx = inspect.currentframe().f_lineno, PassContext()  # type: ignore[union-attr]  # CPython
    assert str(ctx.site) == f"{os.path.relpath(__file__)}:{line}"


def test_opt_ins_wait_only_where_they_are_parked() -> None:
    parked = Place(parks=True)
    assert decides(rename_graph, opt_level=0)
    assert not decides(rename_graph, parked, opt_level=4)
    assert decides(rename_graph, parked, required=["rename_graph"])
    assert PassContext().decide(rename_graph, parked).reason == "opt-in: runs only when required"


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
        f"required 'drop_neg', set at {ctx.site} met no pass",
        f"disabled 'fuse_*', set at {ctx.site} met no pass",
    ]


def test_an_entry_that_another_one_overrules_was_met_all_the_same() -> None:
    with PassContext(disabled=["look"]) as outer, PassContext(required=["look"]):
        look(model())
    assert not outer.remarks


def test_strict_makes_an_error_of_it_unless_there_is_one_already() -> None:
    strict, unmet = PassContext(required=["look"], strict=True), r"'look', set at .* met no pass"
    with pytest.raises(UsageError, match=unmet), strict:
        pass
    with pytest.raises(ValueError, match="boom"), PassContext(required=["look"], strict=True):
        raise ValueError("boom")


# --- places and scopes ----------------------------------------------------------------------------


def ran(pipeline: Sequential, **settings: Any) -> list[str]:
    """Return `name:occurrence` of the passes of a pipeline that would run."""
    ctx = PassContext(4, **settings)
    return [f"{s.pass_.name}:{s.place.occurrence}" for s in pipeline.plan(ctx) if s.decision]


NESTED = Sequential(
    [look, Sequential([look, fuse_relu], name="cleanup"), tiered.Fixpoint([look], name="again")]
)


@pytest.mark.parametrize(
    ("entry", "left"),
    [
        ("look:1", ["look:2", "fuse_relu:1", "look:3"]),
        ("look:2", ["look:1", "fuse_relu:1", "look:3"]),
        ("look:3", ["look:1", "look:2", "fuse_relu:1"]),
        ("look:4", ["look:1", "look:2", "fuse_relu:1", "look:3"]),
        ("*:1", ["look:2", "look:3"]),
        ("cleanup/look", ["look:1", "fuse_relu:1", "look:3"]),
        ("cleanup/*", ["look:1", "look:3"]),
        ("clean*/look", ["look:1", "fuse_relu:1", "look:3"]),
        ("again/look:3", ["look:1", "look:2", "fuse_relu:1"]),
        ("again/look:1", ["look:1", "look:2", "fuse_relu:1", "look:3"]),
        (NESTED.passes[1], ["look:1", "look:3"]),
    ],
)
def test_entries_mean_places_in_the_pipeline(entry: Any, left: list[str]) -> None:
    assert ran(NESTED, disabled=[entry]) == left


def test_the_places_that_are_planned_are_those_that_run() -> None:
    with PassContext(4, disabled=["look:2", "again/*"]) as ctx:
        NESTED(model())
    leaves = [result for result in ctx.report.results if result.info.kind != "pipeline"]
    assert [(result.name, result.ran) for result in leaves] == [
        ("look", True),
        ("look", False),
        ("fuse_relu", True),
        ("look", False),
    ]


def test_a_group_can_be_disabled_by_name_once_its_pipeline_is_made() -> None:
    group = Sequential([look], name="tidy_up")
    assert ran(Sequential([group, look]), disabled=["tidy_up"]) == ["look:2"]
    assert ran(Sequential([group, look]), disabled=["tidy_up/*"]) == ["look:2"]
    assert ran(Sequential([group, look]), required=["tidy_up"]) == ["look:1", "look:2"]
    with pytest.raises(PassNotFoundError, match=r"no pass named 'tidyup'"):
        PassContext(disabled=["tidyup"])
    with pytest.raises(PassNotFoundError) as caught:
        PassContext(disabled=["not_made_yet"])
    assert "'not_made_yet/*' means what is in it at any time" in caught.value.__notes__[0]
    with pytest.raises(UsageError, match="tidy_up is a group"):
        PassContext(disabled=["tidy_up@'/encoder/**'"])


def test_optimize_knows_the_groups_of_its_passes() -> None:
    source = proto("g (float[2] x) => (float[2] y) { h = Identity(x) y = Neg(h) }")
    kept = tiered.optimize(
        source, passes="sweep(eliminate_identity),eliminate_deadend", disabled=["sweep"]
    )
    assert [node.op_type for node in kept.graph.node] == ["Identity", "Neg"]


def test_a_group_can_be_disabled_by_name_once_it_is_registered() -> None:
    group = Sequential([look], name="cleanup")
    with registered(group):
        assert ran(Sequential([group, look]), disabled=["cleanup"]) == ["look:2"]
        assert ran(Sequential([group, look]), disabled=["clean*"]) == ["look:1", "look:2"]


def test_an_unnamed_pipeline_is_meant_by_no_name() -> None:
    with pytest.raises(PassNotFoundError):
        PassContext(disabled=["sequential"])


PAIRS = """g (float[2] x) => (float[2] y) { a = Neg(x)  b = Neg(a)  c = Neg(b)  y = Abs(c) }"""


def negs_left(**settings: Any) -> list[str]:
    given = proto(PAIRS)
    with PassContext(**settings):
        result = drop_neg(given)
    return [node.name for node in result.graph.node if node.op_type == "Neg"]


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ({"opt_level": 3, "disabled": ["drop_neg@node_b"]}, ["node_b"]),
        ({"opt_level": 3, "disabled": ["drop_*@'node_[ab]'"]}, ["node_a", "node_b"]),
        ({"opt_level": 0, "required": ["drop_neg@'node_b'"]}, ["node_a", "node_c"]),
        (
            {"required": ["drop_neg@'node_?'"], "disabled": ["drop_neg@'node_a'"]},
            ["node_a"],
        ),
        ({"required": ["drop_neg"], "disabled": ["drop_neg@'node_a'"]}, ["node_a"]),
        (
            {"required": ["drop_neg@'node_a'"], "disabled": ["drop_neg"]},
            ["node_a", "node_b", "node_c"],
        ),
    ],
)
def test_entries_with_a_scope_decide_for_their_nodes(settings: Any, left: list[str]) -> None:
    assert negs_left(**settings) == left


def test_an_inner_context_overrules_an_outer_one_for_some_nodes() -> None:
    with PassContext(disabled=["drop_neg"]):
        assert negs_left(required=["drop_neg@node_b"]) == ["node_a", "node_c"]


# --- hooks ----------------------------------------------------------------------------------------


class Recorder:
    """Notes every hook that is called."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.calls: list[str] = []
        self.results: list[PassResult] = []

    def _note(self, *what: object) -> None:
        self.calls.append(" ".join(filter(None, map(str, what))))

    def enter_pass_ctx(self) -> None:
        self._note("enter", self.name)

    def exit_pass_ctx(self) -> None:
        self._note("exit", self.name)

    def should_run(self, model: Model, info: PassInfo) -> bool:
        return True

    def run_before_pass(self, model: Model, info: PassInfo) -> None:
        self._note("before", self.name, info.name)

    def run_after_pass(self, model: Model, info: PassInfo) -> None:
        self._note("after", self.name, info.name)

    def run_after_pass_failed(self, model: Model, info: PassInfo, error: BaseException) -> None:
        self._note("failed", self.name, info.name, type(error).__name__)

    def on_skip(self, model: Model, info: PassInfo, decision: Decision) -> None:
        self._note("skip", self.name, info.name, decision.reason)

    def on_rewrite(self, model: Model, info: PassInfo, record: Any) -> None:
        self._note("rewrite", self.name, info.name, record.number)

    def on_result(self, model: Model, result: PassResult) -> None:
        self.results.append(result)


def test_hooks_are_called_around_passes_and_pipelines() -> None:
    recorder = Recorder()
    with PassContext(instruments=[recorder]):
        Sequential([fuse_relu, drop_neg], name="two")(model())
    assert recorder.calls == [
        "enter",
        "before two",
        "before fuse_relu",
        "rewrite fuse_relu 1",
        "after fuse_relu",
        "skip drop_neg needs opt_level 3; it is 2, the default",
        "after two",
        "exit",
    ]


def test_after_hooks_run_in_reverse_and_outer_instruments_watch_too() -> None:
    shared = list[str]()
    one, two, three = Recorder("1"), Recorder("2"), Recorder("3")
    for recorder in (one, two, three):
        recorder.calls = shared
    with PassContext(instruments=[one, two]), PassContext(instruments=[three]):
        look(model())
    assert shared == [
        "enter 1", "enter 2", "enter 3",
        "before 1 look", "before 2 look", "before 3 look",
        "after 3 look", "after 2 look", "after 1 look",
        "exit 3", "exit 2", "exit 1",
    ]  # fmt: skip


def test_every_before_has_its_end_when_a_pass_fails() -> None:
    recorder = Recorder()
    with pytest.raises(PassError), PassContext(instruments=[recorder]):
        Sequential([look, failing(ValueError())], name="two")(model())
    assert recorder.calls == [
        "enter",
        "before two",
        "before look",
        "after look",
        "before failing",
        "failed failing PassError",
        "failed two PassError",
        "exit",
    ]


def test_results_are_told_as_they_are_reported() -> None:
    recorder = Recorder()
    with PassContext(on_error="skip", instruments=[recorder]) as ctx:
        Sequential([fuse_relu, drop_neg, failing(ValueError())], name="two")(model())
    assert recorder.results == ctx.report.results
    assert [result.ran for result in recorder.results] == [True, False, True, True]


def test_what_is_reported_does_not_depend_on_who_watches() -> None:
    # Nothing is there for most of them, and in the second round nothing has moved.
    passes = Fixpoint([drop_neg, look, "fuse_consecutive_cast", "eliminate_nop_expand", fuse_relu])
    seen = []
    for instruments in ([], [Recorder()]):
        with PassContext(opt_level=3, instruments=instruments) as ctx:
            passes(model())
        seen.append([(r.text, r.ran, r.reason, r.edits, r.applied) for r in ctx.report.results])
    assert seen[0] == seen[1]
    assert [text for text, *_ in seen[0]].count("fuse_consecutive_cast") == 2


def test_an_instrument_of_two_contexts_is_told_once() -> None:
    recorder = Recorder()
    with PassContext(instruments=[recorder]), PassContext(instruments=[recorder]):
        look(model())
    assert recorder.calls == ["enter", "enter", "before look", "after look", "exit", "exit"]


def test_an_instrument_may_be_given_as_the_trace() -> None:
    recorder = Recorder()
    with PassContext(trace=recorder, instruments=[recorder]):  # type: ignore[arg-type]  # the point
        look(model())
    assert recorder.calls == ["enter", "before look", "after look", "exit"]


def test_an_error_in_the_hook_of_a_failure_does_not_hide_the_failure() -> None:
    for hook in ("run_after_pass_failed", "on_result"):
        broken = raising(hook, UsageError("late"))
        with PassContext(instruments=[broken]), pytest.raises(PassError) as caught:
            failing(ValueError("boom"))(model())
        assert "and a hook raised after that: late" in caught.value.__notes__


def test_an_instrument_may_have_some_of_the_hooks_only() -> None:
    class Few:
        def __init__(self) -> None:
            self.seen: list[str] = []

        def run_after_pass(self, model: Model, info: PassInfo) -> None:
            self.seen.append(info.name)

    few = Few()
    with PassContext(instruments=[few]):
        look(model())
    assert few.seen == ["look"]


def test_an_instrument_is_an_object_and_no_class() -> None:
    with pytest.raises(UsageError, match="is no instrument"):
        PassContext(instruments=[Recorder])


def test_an_instrument_may_say_no_and_all_are_asked() -> None:
    class Veto(Recorder):
        def should_run(self, model: Model, info: PassInfo) -> bool:
            self._note("asked", self.name)
            return info.name != "fuse_relu"

    first, second = Veto("1"), Veto("2")
    with PassContext(instruments=[first, second]) as ctx:
        assert ops(fuse_relu(model())) == ["Relu", "Relu", "Neg", "Abs"]
    assert first.calls == [
        "enter 1",
        "asked 1",
        "skip 1 fuse_relu instrument Veto said no",
        "exit 1",
    ]
    assert "asked 2" in second.calls
    assert ctx.report.results[0].reason == "instrument Veto said no"


def test_the_trace_is_called_as_in_tvm_and_not_for_pipelines() -> None:
    calls: list[tuple[str, bool, list[str]]] = []

    def trace(model: Model, info: PassInfo, is_before: bool) -> None:
        calls.append((info.name, is_before, ops(model)))

    needs = tiered.function_pass(opt_level=0, name="needs", required=["look"])(lambda g, c: None)
    with PassContext(trace=trace):
        Sequential([fuse_relu, drop_neg, needs])(model())
    before, after = ["Relu", "Relu", "Neg", "Abs"], ["Relu", "Neg", "Abs"]
    assert calls == [
        ("fuse_relu", True, before), ("fuse_relu", False, after),
        ("look", True, after), ("look", False, after),
        ("needs", True, after), ("needs", False, after),
    ]  # fmt: skip


def test_a_pass_that_fails_gets_no_after_of_the_trace() -> None:
    calls: list[bool] = []
    with pytest.raises(PassError), PassContext(trace=lambda m, i, before: calls.append(before)):
        failing(ValueError())(model())
    assert calls == [True]


HOOKS = ("enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass",
         "on_skip", "on_rewrite", "trace", "run_after_pass_failed", "on_result")  # fmt: skip


def raising(hook: str, error: Exception) -> Any:
    """Return an instrument, or for "trace" a callable, that raises in one hook."""

    def fail(*_: object) -> None:
        raise error

    return fail if hook == "trace" else type("Raising", (), {hook: staticmethod(fail)})()


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("position", range(3))
def test_a_hook_that_raises_is_reported_once_and_harms_nobody(hook: str, position: int) -> None:
    healthy = [Recorder("1"), Recorder("2")]
    instruments: list[Any] = list(healthy)
    settings: dict[str, Any] = {"instruments": instruments, "on_error": "skip"}
    broken = raising(hook, RuntimeError("broken"))
    if hook == "trace":
        settings["trace"] = broken
    else:
        instruments.insert(position, broken)
    warns = pytest.warns(RuntimeWarning, match=r"raised in .*RuntimeError: broken")
    with warns as warned, PassContext(**settings) as ctx:
        given = Sequential([fuse_relu, drop_neg, failing(ValueError()), fuse_relu])(model())
    assert len(warned) == 1
    assert ops(given) == ["Relu", "Neg", "Abs"]
    assert len([remark for remark in ctx.remarks if remark.kind == "hook"]) == 1
    for recorder in healthy:
        kinds = [call.split()[0] for call in recorder.calls]
        assert kinds.count("before") == kinds.count("after") + kinds.count("failed") == 4
        assert (kinds[0], kinds[-1]) == ("enter", "exit")


@pytest.mark.parametrize("position", range(3))
def test_an_error_that_is_meant_fails_the_pass(position: int) -> None:
    healthy = [Recorder("1"), Recorder("2")]
    instruments: list[Any] = list(healthy)
    instruments.insert(position, raising("run_after_pass", VerificationError("wrong")))
    given = model()
    before = content(given)
    with PassContext(instruments=instruments), pytest.raises(VerificationError, match="wrong"):
        fuse_relu(given)
    assert content(given) == before
    for recorder in healthy:
        assert recorder.calls[1:-1] == [
            f"before {recorder.name} fuse_relu",
            f"rewrite {recorder.name} fuse_relu 1",
            f"after {recorder.name} fuse_relu",
        ]


def test_an_error_that_is_meant_before_a_pass_ends_those_that_were_told() -> None:
    first, last = Recorder("1"), Recorder("2")
    broken = raising("run_before_pass", UsageError("no"))
    with PassContext(instruments=[first, broken, last]), pytest.raises(UsageError, match="no"):
        look(model())
    assert first.calls == ["enter 1", "before 1 look", "failed 1 look UsageError", "exit 1"]
    assert last.calls == ["enter 2", "exit 2"]


def test_a_context_that_an_instrument_refuses_is_not_entered() -> None:
    first, last = Recorder("1"), Recorder("2")
    broken = raising("enter_pass_ctx", UsageError("no folder"))
    refused = pytest.raises(UsageError, match="no folder")
    with refused, PassContext(instruments=[first, broken, last]):
        pytest.fail("the body does not run")
    assert first.calls == ["enter 1", "exit 1"]
    assert last.calls == []
    assert not PassContext.is_active()


def test_an_error_on_leaving_does_not_hide_the_one_of_the_body() -> None:
    broken = raising("exit_pass_ctx", UsageError("late"))
    with pytest.raises(UsageError, match="late"), PassContext(instruments=[broken]):
        pass
    with pytest.raises(ValueError, match="boom") as caught, PassContext(instruments=[broken]):
        raise ValueError("boom")
    assert caught.value.__notes__ == ["and on leaving the context: late"]


@pytest.mark.parametrize(
    "hook", ["run_before_pass", "run_after_pass", "on_skip", "on_rewrite", "trace"]
)
def test_a_hook_cannot_edit_the_model(hook: str) -> None:
    def edit(model: Model, *_: object) -> None:
        model.main.rename_node(model.main.nodes[0], "edited")

    settings: dict[str, Any] = (
        {"trace": edit}
        if hook == "trace"
        else {"instruments": [type("Editor", (), {hook: staticmethod(edit)})()]}
    )
    given = model()
    before = content(given)
    with PassContext(**settings), pytest.raises(ModelError, match="may not be edited now"):
        Sequential([fuse_relu, drop_neg])(given)
    assert content(given) == before
    fuse_relu(given)


def test_a_keyboard_interrupt_in_a_hook_goes_on() -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    given = model()
    with PassContext(trace=interrupt), pytest.raises(KeyboardInterrupt):
        fuse_relu(given)
    assert ops(given) == ["Relu", "Relu", "Neg", "Abs"]


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
