"""Trace: it records everything, and answers questions."""

import gc
import json
import re
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
    optimize,
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


def test_where_a_node_came_from() -> None:
    given, trace = model(), Trace()
    with PassContext(instruments=[trace]):
        Sequential([fuse_relu, relu_to_clip, drop_neg], opt_level=0)(given)
    for asked in ("node_b", given.main.nodes_of("Abs")[1]):
        origin = trace.origin(asked)
        assert (origin.op_type, origin.label) == ("Abs", "node_b")
        assert origin.roots() == ["node_a", "node_b"]
        assert [r.pass_name for r in origin.rewrites()] == ["fuse_relu", "relu_to_clip"]
    assert str(trace.origin("node_b")).splitlines() == [
        "Abs 'node_b': made by relu_to_clip, #2 op.Relu(var.x) at 'node_b'",
        "  Relu 'node_b': made by fuse_relu, #1 op.Relu(op.Relu(var.x)) at 'node_b'",
        "    Relu 'node_a': of the file",
        "    Relu 'node_b': of the file",
    ]
    assert str(trace.origin("node_y")) == "'node_y': of the file"
    gone = trace.origin("node_a")
    assert gone.removed_by is trace.changes("fuse_relu")[0]
    assert str(gone) == (
        "Relu 'node_a': of the file; removed by fuse_relu, #1 op.Relu(op.Relu(var.x)) at 'node_b'"
    )


def test_where_a_node_came_from_in_a_pass_that_numbers_nothing() -> None:
    @function_pass(opt_level=0)
    def all_at_once(graph: Graph, ctx: PassContext) -> None:
        for node in graph.nodes_of("Relu"):
            graph.replace(node, [graph.op.Abs(node.inputs[0])], since=graph.model.peek_serial() - 2)

    given, trace = model(), Trace()
    with PassContext(instruments=[trace]):
        all_at_once(given)
    first = next(node for node in given.main.nodes if node.output.name == "a")
    assert trace.origin(first).roots() == ["node_a"]


def test_a_node_with_another_operator_is_of_the_one_before() -> None:
    @function_pass(opt_level=0)
    def change_operator(graph: Graph, ctx: PassContext) -> None:
        for node in list(graph.nodes_of("Relu")):
            graph.set_operator(node, "Exp" if node.label == "node_a" else "Neg")

    given, trace = model(), Trace()
    with PassContext(instruments=[trace]):
        change_operator(given)
    line = "#1 change_operator of 'node_a', 'node_b'"
    assert str(trace.changes("change_operator")[0]) == line
    first = next(iter(given.main.nodes_of("Exp")))
    for asked in ("node_a", first):
        assert str(trace.origin(asked)).splitlines() == [
            f"Exp 'node_a': made by change_operator, {line}",
            "  Relu 'node_a': of the file",
        ]


def test_what_a_pass_changed() -> None:
    trace = traced(Sequential([fuse_relu, relu_to_clip]))
    (change,) = trace.changes("relu_to_clip")
    assert [line[0] for line in change.lines()] == ["-", "+", "+"]
    assert trace.changes("look") == []


# --- forms ----------------------------------------------------------------------------------------


def test_it_prints_as_a_tree() -> None:
    lines = [re.sub(r"  \d+\.\d\d ms", "", line) for line in str(traced()).splitlines()]
    assert lines == [
        "two(fuse_relu,drop_neg,keep_abs)  4 -> 3 nodes",
        "├─ fuse_relu  1 rewrite  4 -> 3 nodes",
        "│       #1 op.Relu(op.Relu(var.x)) at 'node_b'",
        "├─ drop_neg  skipped: needs opt_level 3; it is 2, the default",
        "└─ keep_abs",
    ]


def test_passes_that_did_nothing_share_a_line_unless_asked_for() -> None:
    trace = traced(Sequential([look, keep_abs, fuse_relu, drop_neg]))
    assert "2 passes that changed nothing" in trace.tree()
    assert "look" in trace.tree(idle=True)
    assert "skipped" not in trace.tree(skipped=False)
    assert "#1" not in trace.tree(rewrites=0)
    assert "1 Abs unchanged: it is Abs after all" in trace.tree(remarks=True)


def test_opt_in_passes_that_were_not_asked_for_share_a_line() -> None:
    trace = Trace()
    optimize(model().to_proto(), instruments=[trace])
    lines = str(trace).splitlines()
    assert sum("opt-in" in line for line in lines) * 5 < str(trace.tree(idle=True)).count("opt-in")
    shared = re.compile(r"passes that changed nothing .* ms; \d+ opt-in passes$")
    assert any(map(shared.search, lines))
    assert "opt-in" not in trace.tree(skipped=False)


def test_json_lines_hold_all_of_it(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    traced().save(file)
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    assert [entry["event"] for entry in entries] == ["pass", "pass", "rewrite", "pass", "pass"]
    whole, fused, made, dropped, kept = entries
    assert [entry.get("parent") for entry in (whole, fused, dropped, kept)] == [None, 1, 1, 1]
    assert made["pass"] == fused["id"]
    assert [c["after"] and c["after"]["name"] for c in made["changes"]] == [None, None, "node_b"]
    assert dropped["outcome"] == "skipped"
    assert kept["missed"][0]["reason"] == "it is Abs after all"


def test_the_chrome_form_nests_by_time(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    traced().save(file)
    events = json.loads(file.read_text())["traceEvents"]
    whole, fused, made, skipped, _ = events
    assert [event["ph"] for event in events] == ["X", "X", "i", "i", "X"]
    assert whole["ts"] <= fused["ts"] <= made["ts"] <= fused["ts"] + fused["dur"]
    assert fused["ts"] + fused["dur"] <= whole["ts"] + whole["dur"]
    assert skipped["name"] == "skipped drop_neg"


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
