"""Whatever dies, wherever it dies: the model is exactly as it was."""

import _thread
import contextlib
import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import tiered
from tests.small import content, drop_neg, fuse_relu, keep_abs, look, model, ops
from tiered import (
    Fixpoint,
    Graph,
    Model,
    Pass,
    PassContext,
    PassInfo,
    Sequential,
    default_pipeline,
    optimize_model,
)
from tiered.pipeline.instruments import Invariants, Timing, Trace
from tiered.support.errors import PassError, TieredError

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"

TEXTS = {
    "relus": "g (float[2,3] x) => (float[2,3] y) { a = Relu(x) b = Relu(a) c = Neg(b) y = Abs(c) }",
    "shapes": """g (float[N,6] x) => (float[N,2,3] y) <int64[1] i = {0}, int64[2] t = {2,3}> {
        s = Shape(x)  n = Gather<axis = 0>(s, i)  u = Concat<axis = 0>(n, t)
        h = Identity(x)  r = Reshape(h, u)  k = Constant<value = float {1}>()  y = Mul(r, k)
    }""",
    "nested": """g (float[2] x, bool c) => (float[2] y) {
        z = Identity(x)
        w = If (c) <then_branch = t () => (float[2] a) { q = Cast<to = 1>(z)  a = Relu(q) },
                    else_branch = e () => (float[2] b) { k = Constant<value = float[2] {1,2}>()
                                                         l = Identity(k)  b = Add(z, l) }>
        y = Identity(w)
    }""",
}

NESTED = Sequential(
    [fuse_relu, Fixpoint([Sequential([drop_neg, keep_abs], name="inner")]), default_pipeline()],
    name="outer",
)


class Bang(Exception):
    """What a pass dies of."""


@contextmanager
def dying_at(number: int, error: BaseException) -> Iterator[list[int]]:
    """Raise instead of the edit of that number; yield the count of edits that were tried."""
    count = [0]
    log = Graph._log

    def dies(graph: Graph, *entry: Any) -> None:
        if count[0] == number:
            raise error
        count[0] += 1
        log(graph, *entry)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Graph, "_log", dies)
        yield count


def edits_of(pipeline: Pass, given: Model) -> int:
    """Return how many edits a pipeline makes, and take them back."""
    mark = given.mark()
    with dying_at(-1, Bang()) as count, PassContext(opt_level=4):
        pipeline(given)
    given.undo_to(mark)
    return count[0]


def assert_dies_without_a_trace(pipeline: Pass, given: Model, at: int, error: Any) -> None:
    before, order = content(given), given.main.nodes
    trace = Trace()
    context = PassContext(opt_level=4, instruments=[trace])
    with dying_at(at, error), pytest.raises((PassError, KeyboardInterrupt)), context:
        pipeline(given)
    assert content(given) == before
    assert given.main.nodes == order
    assert not PassContext.is_active()
    assert given.gate.listeners == []
    assert all(span.outcome != "running" for span in trace.walk())


# --- at every edit --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("error", [Bang("boom"), KeyboardInterrupt()])
def test_a_pipeline_that_dies_at_any_edit_leaves_the_model_exactly_as_it_was(
    name: str, error: BaseException
) -> None:
    given = model(TEXTS[name])
    total = edits_of(NESTED, given)
    assert total > 4
    for at in range(total):
        assert_dies_without_a_trace(NESTED, given, at, error)
    given.check_view()
    with PassContext(opt_level=4):
        NESTED(given)
    fresh = model(TEXTS[name])
    with PassContext(opt_level=4):
        NESTED(fresh)
    assert ops(given) == ops(fresh)


@pytest.mark.parametrize("name", TEXTS)
def test_with_on_error_skip_the_rest_of_the_pipeline_goes_on(name: str) -> None:
    given = model(TEXTS[name])
    mark = given.mark()
    for at in range(edits_of(NESTED, given)):
        with dying_at(at, Bang("boom")), PassContext(4, on_error="skip") as ctx:
            NESTED(given)
        assert ctx.report.failed()
        given.check_view()
        given.undo_to(mark)


def test_a_real_model_survives_a_death_at_edits_all_over_the_run() -> None:
    given = Model.load(MODELS / "bert.ts.onnx")
    total = edits_of(default_pipeline(), given)
    for part in range(8):
        at = total * part // 8
        error = KeyboardInterrupt() if part % 2 else Bang("boom")
        assert_dies_without_a_trace(default_pipeline(), given, at, error)
    given.check_view()


def test_the_error_names_the_node_of_the_rewrite_that_died() -> None:
    given = model(TEXTS["shapes"])
    with dying_at(0, Bang("boom")), pytest.raises(PassError) as caught:
        tiered.get_pass("eliminate_identity").apply(given)
    assert str(caught.value) == (
        "eliminate_identity failed at rewrite #1, node 'node_h', of the model: Bang: boom"
    )

    @tiered.function_pass(opt_level=0)
    def dies(graph: Graph, ctx: PassContext) -> None:
        with graph.rewrite("a law", graph.nodes[1]):
            raise Bang("boom")

    with pytest.raises(PassError, match="dies failed at rewrite #1, node 'node_n', of the model"):
        dies(given)


# --- at every hook --------------------------------------------------------------------------------

HOOKS = ("should_run", "run_before_pass", "run_after_pass", "run_after_pass_failed", "on_skip",
         "on_rewrite", "on_result")  # fmt: skip


class Balanced:
    """Notes what is open, so that nothing stays open."""

    def __init__(self) -> None:
        self.open: list[str] = []

    def run_before_pass(self, model: Model, info: PassInfo) -> None:
        self.open.append(info.name)

    def run_after_pass(self, model: Model, info: PassInfo) -> None:
        assert self.open.pop() == info.name

    def run_after_pass_failed(self, model: Model, info: PassInfo, error: BaseException) -> None:
        assert self.open.pop() == info.name


def raising_at_call(hook: str, number: int, error: BaseException) -> Any:
    calls = [0]

    def maybe(*_: object) -> bool:
        calls[0] += 1
        if calls[0] == number:
            raise error
        return True

    return type("Raising", (), {hook: staticmethod(maybe)})()


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("position", range(3))
@pytest.mark.parametrize("error", [KeyboardInterrupt(), TieredError("meant"), ValueError("bug")])
@pytest.mark.filterwarnings("ignore:Raising raised:RuntimeWarning")
def test_each_raise_in_each_hook_at_each_position_leaves_all_in_order(
    hook: str, position: int, error: BaseException
) -> None:
    @tiered.function_pass(opt_level=0)
    def fails(graph: Graph, ctx: PassContext) -> None:
        graph.rename_node(graph.nodes[0], "other")
        raise Bang("boom")

    pipeline = Sequential(
        [look, Sequential([fuse_relu, drop_neg], name="inner"), fails, look], name="outer"
    )
    given = model()
    before, mark = content(given), given.mark()
    for number in range(1, 7):
        watchers = [Balanced(), Balanced()]
        instruments: list[Any] = list(watchers)
        instruments.insert(position, raising_at_call(hook, number, error))
        try:
            with PassContext(instruments=instruments, on_error="skip"):
                pipeline(given)
        except (KeyboardInterrupt, TieredError) as raised:
            assert raised is error  # noqa: PT017 - whether it raises is not the point
            assert content(given) == before
        else:
            given.undo_to(mark)
        assert [watcher.open for watcher in watchers] == [[], []]
        assert content(given) == before
        assert given.journal.frozen is None
        assert not PassContext.is_active()
    given.check_view()


@pytest.mark.parametrize("hook", ["run_before_pass", "run_after_pass", "on_rewrite", "on_result"])
def test_a_hook_that_adds_a_node_leaves_nothing_behind(hook: str) -> None:
    def add(model: Model, *_: object) -> None:
        model.main.op.Abs(model.main.inputs[0])

    given = model()
    before = content(given)
    editor: Any = type("Editor", (), {hook: staticmethod(add)})()
    with PassContext(instruments=[editor]), pytest.raises(TieredError, match="may not be edited"):
        fuse_relu(given)
    assert content(given) == before
    given.check_view()


# --- limits ---------------------------------------------------------------------------------------


def limited(limit: int | None) -> tuple[bytes, int]:
    result = optimize_model(MODELS / "bert.ts.onnx", opt_level=3, rewrite_limit=limit)
    return content(result.model), result.model.gate.count


def test_the_same_limit_gives_the_same_model_every_time() -> None:
    _, total = limited(None)
    for limit in (1, total // 3, total - 1):
        first, count = limited(limit)
        assert count == limit
        assert limited(limit) == (first, limit)
    assert limited(total) == limited(None)


def test_every_rewrite_has_the_same_number_in_every_run() -> None:
    traces = [Trace(), Trace()]
    for trace, limit in zip(traces, (None, 40), strict=True):
        optimize_model(
            MODELS / "bert.ts.onnx", opt_level=3, instruments=[trace], rewrite_limit=limit
        )
    whole, part = ([str(rewrite) for rewrite in trace.rewrites] for trace in traces)
    assert part == whole[:40]


# --- Ctrl-C ---------------------------------------------------------------------------------------


@contextmanager
def interrupting(seconds: float) -> Iterator[None]:
    """Send SIGINT to this process once, after some time.

    From a thread: where another signal's handler sends it, the program seems to be in that handler.
    """
    timer = threading.Timer(seconds, _thread.interrupt_main)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@tiered.module_pass(opt_level=0)
def rename_for_ever(model: Model, ctx: PassContext) -> None:
    """Edit for as long as a signal can take on the slowest machine."""
    nodes, number, end = model.main.nodes, 0, time.monotonic() + 60
    while time.monotonic() < end:
        number += 1
        model.main.rename_node(nodes[number % len(nodes)], f"name_{number}")
        model.main.rename_value(nodes[0].output, f"value_{number}")
        for _ in range(100):  # a signal that waits for the end of an edit must find one in time
            pass


@pytest.mark.parametrize("milliseconds", range(3, 43, 2))
def test_ctrl_c_at_any_moment_leaves_a_whole_model(milliseconds: int) -> None:
    given = model()
    before = content(given)
    trace = Trace()
    instruments: list[object] = [trace, Timing()]
    # The context is the outermost: on a busy machine the signal comes before the pipeline begins.
    context = PassContext(instruments=instruments)
    with context, pytest.raises(KeyboardInterrupt), interrupting(milliseconds / 1000):
        Sequential([fuse_relu, Sequential([rename_for_ever])])(given)
    assert content(given) == before
    given.check_view()
    assert not PassContext.is_active()
    assert all(span.outcome == "failed" or span.undone for span in trace.walk())
    assert ops(fuse_relu(given)) == ["Relu", "Neg", "Abs"]


def test_ctrl_c_is_not_lost_in_the_garbage_collector() -> None:
    def callback(phase: str, info: dict[str, int]) -> None:
        assert phase in ("start", "stop")

    gc.callbacks.append(callback)
    try:
        for _ in range(20):
            with pytest.raises(KeyboardInterrupt), interrupting(0.01):
                rename_for_ever(model())
    finally:
        gc.callbacks.remove(callback)


def test_a_second_ctrl_c_does_not_wait() -> None:
    from tiered.passes.interrupts import interrupted_between_edits

    # As if the program were inside an edit, where the first one waits.
    inside: Callable[[Any], None] = eval(
        "lambda handler: handler(2, __import__('sys')._getframe())",
        {"__name__": "tiered.graph.edits.nodes"},
    )
    with contextlib.suppress(KeyboardInterrupt), interrupted_between_edits():
        handler = signal.getsignal(signal.SIGINT)
        inside(handler)
        with pytest.raises(KeyboardInterrupt):
            inside(handler)


def test_a_signal_that_waits_is_obeyed_before_the_result_is_kept() -> None:
    given = model()
    before = content(given)

    @tiered.module_pass(opt_level=0)
    def asks(model: Model, ctx: PassContext) -> None:
        model.main.rename_node(model.main.nodes[0], "renamed")
        signal.getsignal(signal.SIGINT)._asked = 1  # type: ignore[union-attr]  # ours

    with pytest.raises(KeyboardInterrupt):
        asks(given)
    assert content(given) == before


def test_the_handler_of_the_program_is_back_afterwards_and_never_taken_from_it() -> None:
    default = signal.getsignal(signal.SIGINT)
    assert default is signal.default_int_handler
    seen: list[Any] = []

    @tiered.module_pass(opt_level=0)
    def see(model: Model, ctx: PassContext) -> None:
        seen.append(signal.getsignal(signal.SIGINT))

    see(model())
    assert signal.getsignal(signal.SIGINT) is default
    signal.signal(signal.SIGINT, own := lambda *_: None)
    try:
        see(model())
    finally:
        signal.signal(signal.SIGINT, default)
    assert seen[0] is not default
    assert seen[1] is own
    thread = threading.Thread(target=see, args=(model(),))
    thread.start()
    thread.join()
    assert seen[2] is default


def test_nothing_in_the_default_pipeline_changes_a_model_behind_the_journal() -> None:
    for name in sorted(TEXTS):
        with PassContext(instruments=[Invariants()]):
            optimize_model(model(TEXTS[name]), opt_level=4)
    with PassContext(instruments=[Invariants()]):
        optimize_model(MODELS / "tf_nhwc_conv.direct.onnx", opt_level=3)
