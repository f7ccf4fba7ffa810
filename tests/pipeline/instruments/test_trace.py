"""Trace: it records everything, and answers questions."""

import gc
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.small import drop_neg, failing, fuse_relu, keep_abs, look, model, registered
from tiered import (
    Fixpoint,
    Graph,
    Model,
    PassContext,
    PassInfo,
    Sequential,
    Value,
    function_pass,
    op,
    rewrite,
    var,
)
from tiered.pipeline.instruments import Trace
from tiered.support.errors import ModelError, PassError, UsageError, VerificationError

PIPELINE = Sequential([fuse_relu, drop_neg, keep_abs], name="two")


@pytest.fixture(autouse=True)
def _named() -> Iterator[None]:
    with registered(look, failing(ValueError("boom"))):
        yield


def traced(pass_: Any = PIPELINE, **settings: Any) -> Trace:
    trace = Trace()
    with PassContext(instruments=[trace], **settings):
        pass_(model())
    return trace


def outline(trace: Trace) -> list[tuple[str, str]]:
    return [(span.name, span.outcome) for span in trace.walk()]


# --- what is recorded -----------------------------------------------------------------------------


def test_every_decision_is_a_span_below_what_made_it() -> None:
    trace = traced()
    (whole,) = trace.spans
    assert (whole.name, len(whole.children)) == ("two", 3)
    assert outline(trace) == [
        ("two", "ran"), ("fuse_relu", "ran"), ("drop_neg", "skipped"), ("keep_abs", "ran")
    ]  # fmt: skip
    fused, dropped, kept = whole.children
    assert dropped.reason == "needs opt_level 3; it is 2, the default"
    assert fused.reason == "opt_level 2 includes level 1"
    assert (fused.nodes_before, fused.nodes_after, fused.changed) == (4, 3, True)
    assert [note.reason for note in kept.missed] == ["it is Abs after all"]
    assert whole.seconds >= fused.seconds + kept.seconds > 0


def test_a_rewrite_has_its_law_its_nodes_before_and_after_and_its_values() -> None:
    (made,) = traced().rewrites
    assert (made.number, made.pass_name, made.law) == (1, "fuse_relu", "op.Relu(op.Relu(var.x))")
    assert (made.graph, made.anchor) == ("g", "node_b")
    assert [str(node) for node in made.before] == [
        "[node_a] a = Relu (x)",
        "[node_b] b = Relu (a)",
    ]
    assert [str(node) for node in made.after] == ["[node_b] b = Relu (x)"]
    assert made.values == ["a", "b"]


def test_dependencies_and_followers_say_who_needed_them() -> None:
    needs = function_pass(opt_level=0, name="needs", required=["look"])(lambda graph, ctx: None)
    trace = traced(Sequential([needs]))
    assert [(span.name, span.needed_by) for span in trace.walk()] == [
        ("sequential", ""),
        ("look", "needs"),
        ("needs", ""),
    ]


def test_options_and_scope_are_part_of_the_text() -> None:
    trace = traced(Sequential([fuse_relu.on("/none/*")]))
    assert trace.of("fuse_relu")[0].text == "fuse_relu@'/none/*'"


def test_what_a_pass_found_out_is_kept() -> None:
    flip = rewrite(op.Abs(var.x), opt_level=0, name="flip")(lambda graph, x: graph.op.Neg(x))
    flop = rewrite(op.Neg(var.x), opt_level=0, name="flop")(lambda graph, x: graph.op.Abs(x))
    trace = traced(Fixpoint([flip, flop], max_rounds=2))
    assert "no fixed point after 2 rounds" in trace.of("fix")[0].found[0].reason
    assert "no fixed point after 2 rounds" in str(trace)


def test_a_trace_hook_and_an_instrument_record_the_same_and_once() -> None:
    plain = outline(traced())
    for settings in ({"both": True}, {}):
        trace = Trace()
        instruments = [trace] if settings else []
        with PassContext(trace=trace, instruments=instruments), PassContext(trace=trace):
            PIPELINE(model())
        assert outline(trace) == plain
        assert len(trace.rewrites) == 1


def test_it_can_be_called_from_a_hook_of_ones_own() -> None:
    trace = Trace()

    def hook(model: Model, info: PassInfo, is_before: bool) -> None:
        trace(model, info, is_before)

    with PassContext(trace=hook):
        PIPELINE(model())
    assert outline(trace) == [("fuse_relu", "ran"), ("keep_abs", "ran")]


# --- what went wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError("boom"), KeyboardInterrupt(), ModelError("bad")])
def test_a_failure_closes_every_span_and_marks_what_was_undone(error: BaseException) -> None:
    trace, inner = Trace(), Sequential([fuse_relu, failing(error)], name="inner")
    with PassContext(instruments=[trace]):
        with pytest.raises((PassError, KeyboardInterrupt, ModelError)):
            Sequential([inner, look], name="outer")(model())
        look(model())
    assert outline(trace) == [
        ("outer", "failed"), ("inner", "failed"), ("fuse_relu", "ran"), ("failing", "failed"),
        ("look", "ran"),
    ]  # fmt: skip
    assert [span.undone for span in trace.walk()] == [True, True, True, True, False]
    assert all(rewrite.undone for rewrite in trace.rewrites)
    assert trace.changes("fuse_relu") == []
    assert "failed and undone" in str(trace)


def test_a_pass_that_is_skipped_on_error_leaves_the_others_standing() -> None:
    trace = traced(Sequential([fuse_relu, failing(ValueError("boom")), look]), on_error="skip")
    assert [span.undone for span in trace.walk()] == [False, False, True, False]
    assert trace.of("failing")[0].error == (
        "PassError: failing failed at rewrite #2 of the model: ValueError: boom\n"
        "  changed before it by fuse_relu"
    )


@pytest.mark.parametrize("hook", ["run_before_pass", "run_after_pass", "on_skip", "on_result"])
@pytest.mark.parametrize("position", [0, 1])
def test_another_instrument_that_refuses_leaves_it_balanced(hook: str, position: int) -> None:
    def refuse(*_: object) -> None:
        raise VerificationError("wrong")

    trace = Trace()
    instruments: list[Any] = [trace]
    instruments.insert(position, type("Refusing", (), {hook: staticmethod(refuse)})())
    with PassContext(instruments=instruments), pytest.raises(VerificationError):
        PIPELINE(model())
    with PassContext(instruments=[trace]):
        PIPELINE(model())
    assert outline(trace)[-4:] == outline(traced())
    assert all(span.outcome != "running" for span in trace.walk())


# --- questions ------------------------------------------------------------------------------------


@rewrite(op.Relu(var.x), opt_level=0)
def relu_to_clip(graph: Graph, x: Value) -> Value:
    """Relu(x) => Max(Neg(Neg(x)), 0), of no meaning."""
    return graph.op.Abs(graph.op.Neg(x))


def test_which_rewrites_touched_a_node() -> None:
    trace = traced(Sequential([fuse_relu, relu_to_clip]))
    assert [r.pass_name for r in trace.touching("node_a")] == ["fuse_relu"]
    assert [r.pass_name for r in trace.touching("node_b")] == ["fuse_relu", "relu_to_clip"]
    assert trace.touching("node_y") == []


def test_a_node_is_found_by_itself_or_by_its_name() -> None:
    given, trace = model(), Trace()
    with PassContext(instruments=[trace]):
        Sequential([fuse_relu, relu_to_clip])(given)
    nodes = given.main.nodes
    found = [[rewrite.pass_name for rewrite in trace.touching(node)] for node in nodes]
    assert [node.op_type for node in nodes] == ["Neg", "Abs", "Neg", "Abs"]
    assert found == [[], [], ["relu_to_clip"], ["relu_to_clip"]]


def test_what_a_pass_changed() -> None:
    trace = traced(Sequential([fuse_relu, relu_to_clip]))
    (change,) = trace.changes("relu_to_clip")
    assert [line[0] for line in change.lines()] == ["-", "+", "+"]
    assert trace.changes("look") == []


# --- forms ----------------------------------------------------------------------------------------


def test_a_notebook_shows_the_passes_that_changed_something() -> None:
    html = traced()._repr_html_()
    assert "fuse_relu" in html
    assert "4 → 3" in html
    assert "keep_abs" not in html
    assert ">two<" not in html


def test_an_unknown_suffix_or_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"saved as \.jsonl"):
        Trace().save(tmp_path / "trace.txt")
    with pytest.raises(ModelError, match="cannot write"):
        Trace().save(tmp_path / "nowhere" / "trace.json")


# --- many models ----------------------------------------------------------------------------------


def test_one_trace_watches_many_threads() -> None:
    trace = Trace()
    with PassContext(instruments=[trace]) as ctx, ThreadPoolExecutor(4) as pool:
        list(pool.map(ctx.wrap(PIPELINE), [model() for _ in range(16)]))
    assert len(trace.spans) == 16
    assert len({span.model_number for span in trace.spans}) == 16
    assert all(len(span.children) == 3 for span in trace.spans)


def test_it_keeps_no_model_alive() -> None:
    given, trace = model(), Trace()
    with PassContext(instruments=[trace]):
        PIPELINE(given)
    gone = weakref.ref(given)
    del given
    gc.collect()
    assert gone() is None
    assert trace.rewrites
