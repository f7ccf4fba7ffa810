"""Hooks: order, refusals, and errors of instruments and the trace callable."""

from collections.abc import Iterator
from typing import Any

import pytest

import tiered
from tests.small import (
    Recorder,
    content,
    drop_neg,
    failing,
    fuse_relu,
    keep_abs,
    look,
    model,
    ops,
    registered,
    rename_graph,
)
from tiered import Fixpoint, Model, PassContext, PassInfo, Sequential
from tiered.support.errors import (
    ModelError,
    PassError,
    UsageError,
    VerificationError,
)

PASSES = (fuse_relu, drop_neg, keep_abs, rename_graph, look)


@pytest.fixture(autouse=True)
def _named() -> Iterator[None]:
    with registered(*PASSES):
        yield


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


def test_what_is_no_instrument_and_no_trace_is_refused() -> None:
    with pytest.raises(
        UsageError, match="is no instrument: expected an object with at least one of"
    ):
        PassContext(instruments=[object()])
    with pytest.raises(
        UsageError, match=r"^trace takes a callable \(model, info, is_before\), not 3$"
    ):
        PassContext(trace=3)  # type: ignore[arg-type]  # the point


def test_a_class_may_be_the_trace() -> None:
    seen: list[bool] = []

    class Trace:
        def __init__(self, model: Model, info: PassInfo, is_before: bool) -> None:
            seen.append(is_before)

        def run_before_pass(self) -> None: ...

    with PassContext(trace=Trace):
        look(model())
    assert seen == [True, False]


def test_a_report_names_the_hook_and_where_it_raised() -> None:
    class Broken:
        def __call__(self, *_: object) -> None:
            raise ValueError("boom")

    line = Broken.__call__.__code__.co_firstlineno + 1
    text = f"trace Broken raised in run_before_pass at {__file__}:{line}: ValueError: boom"
    with pytest.warns(RuntimeWarning) as warned, PassContext(trace=Broken()) as ctx:
        look(model())
    assert [str(each.message) for each in warned] == [
        f"{text} (reported once; the passes continue)"
    ]
    assert [remark.reason for remark in ctx.remarks] == [text]


def test_a_function_that_is_the_trace_has_its_name_in_reports() -> None:
    def broken(*_: object) -> None:
        raise ValueError("boom")

    said = (
        r"^trace test_a_function_that_is_the_trace_has_its_name_in_reports.<locals>.broken raised"
    )
    with pytest.warns(RuntimeWarning, match=said) as warned, PassContext(trace=broken) as ctx:
        Sequential([look, look], name="two")(model())
    assert len(warned) == len(ctx.remarks) == 1


def test_a_required_instrument_ends_the_run() -> None:
    broken = raising("run_before_pass", ValueError("boom"))
    broken.is_required = True
    with pytest.raises(Exception, match="boom"), PassContext(instruments=[broken]):
        look(model())


def test_the_first_of_several_errors_and_refusals_counts() -> None:
    for hook in ("run_after_pass", "on_rewrite", "on_skip"):
        both = [raising(hook, UsageError(text)) for text in ("one", "two")]
        first = "two" if hook == "run_after_pass" else "one"
        with pytest.raises(UsageError, match=f"^{first}\\b"), PassContext(instruments=both):
            Sequential([fuse_relu, drop_neg])(model())

    class One:
        def should_run(self, model: Model, info: PassInfo) -> bool:
            return False

    class Two(One): ...

    with PassContext(instruments=[One(), Two()]) as ctx:
        look(model())
    assert [result.reason for result in ctx.report.results] == ["instrument One said no"]


def test_a_keyboard_interrupt_at_a_rewrite_goes_on() -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    instrument = type("Interrupting", (), {"on_rewrite": staticmethod(interrupt)})()
    with PassContext(instruments=[instrument]), pytest.raises(KeyboardInterrupt):
        fuse_relu(model())
