"""Passes: values that are called with models, and what happens when they run."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
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
from tiered import (
    Graph,
    Model,
    Pass,
    PassContext,
    PassInfo,
    Sequential,
    Skip,
    Tensor,
    Value,
    op,
    var,
)
from tiered.errors import ModelError, OptionError, PassError, UsageError
from tiered.passes import ModulePass

# --- what a pass is -------------------------------------------------------------------------------


def test_a_pass_is_a_value() -> None:
    long = rename_graph.with_options(suffix="?", times=2)
    assert str(long) == "rename_graph{suffix=?,times=2}"
    assert long == rename_graph.with_options(times=2).with_options(suffix="?")
    assert len({long, rename_graph, rename_graph.with_options(suffix="!")}) == 2
    assert rename_graph.options == {"suffix": "!", "times": 1}


def test_a_pass_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="'scope' of look cannot be set"):
        look.scope = None
    with pytest.raises(AttributeError, match="'scope' of look cannot be deleted"):
        del look.scope
    with pytest.raises(TypeError):
        rename_graph.options["times"] = 3  # type: ignore[index]  # the point


def test_options_that_are_lists_are_not_shared() -> None:
    def keep(graph: Graph, ctx: PassContext, *, names: list[str] = ["a"]) -> None:  # noqa: B006 - the point
        names.append("b")

    pass_ = tiered.function_pass(opt_level=0)(keep)
    pass_.options["names"].append("c")
    pass_(model())
    assert str(pass_) == "keep"
    assert pass_.options["names"] == ["a"]


class Loud(ModulePass):
    """A pass that works something out of its parts."""

    @cached_property
    def shout(self) -> str:
        return self.text.upper()


def test_what_a_pass_worked_out_is_not_that_of_the_same_with_other_options() -> None:
    assert isinstance(rename_graph, ModulePass)
    quiet = rename_graph
    loud = Loud(info=quiet.info, options=quiet.options, body=quiet.body)
    assert loud.shout == "RENAME_GRAPH"
    assert loud.with_options(times=2).shout == "RENAME_GRAPH{TIMES=2}"


def test_wrong_options_name_the_field_and_what_it_takes() -> None:
    with pytest.raises(OptionError, match="rename_graph: option 'times' takes an integer, not 'x'"):
        rename_graph.with_options(times="x")
    with pytest.raises(OptionError, match="has no option 'time'; did you mean 'times'"):
        rename_graph.with_options(time=2)


def test_the_info_says_what_was_declared() -> None:
    @tiered.module_pass(
        opt_level=3, required=["infer_shapes"], followed_by=["look"], numerics="reassociating"
    )
    def declared(model: Model, ctx: PassContext, *, size: int = 4) -> None:
        """Of no meaning."""

    info = declared.info
    assert (info.name, info.opt_level, info.kind) == ("declared", 3, "module")
    assert (info.required, info.followed_by) == (("infer_shapes",), ("look",))
    assert info.numerics is tiered.Numerics.REASSOCIATING
    assert info.doc == "Of no meaning."
    assert info.source.startswith(f"{__file__}:")
    assert [option.name for option in info.options] == ["size"]


def test_every_info_has_a_hash() -> None:
    group = Sequential([fuse_relu], name="group", checks=["final_check"])
    infos = [pass_.info for pass_ in (*tiered.get_registered_passes().values(), group)]
    assert len({*infos, *infos}) == len(infos)


def test_the_law_is_the_first_line_of_the_file_of_the_pass() -> None:
    assert tiered.get_pass("eliminate_identity").info.law == "Identity(x)  =>  x"
    assert look.info.law == ""


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"opt_level": "2"}, "opt_level takes an integer from 0, or None"),
        ({"opt_level": True}, "opt_level takes an integer from 0, or None"),
        ({"opt_level": -1}, "opt_level takes an integer from 0, or None"),
        ({"opt_level": 0, "required": "infer_shapes"}, "required takes a list of names"),
        ({"opt_level": 0, "numerics": "close"}, "numerics is one of exact, "),
        ({"opt_level": 4, "numerics": "lossy"}, "is lossy, so no level may imply it"),
        ({"opt_level": 4, "changes_interface": True}, "changes the interface, so no level"),
    ],
)
def test_a_declaration_that_does_not_fit_is_refused(declared: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        tiered.function_pass(**declared, name="named")(lambda graph, ctx: None)


def test_the_level_must_be_said() -> None:
    with pytest.raises(TypeError, match="opt_level"):
        tiered.function_pass()  # type: ignore[call-arg]  # the point


@pytest.mark.parametrize("thing", [lambda graph, ctx: None, 3, type("1", (), {})])
def test_a_pass_needs_a_name_that_text_can_hold(thing: Any) -> None:
    with pytest.raises(UsageError, match=r"a pass cannot be called|is made of a function"):
        tiered.function_pass(opt_level=0)(thing)


def test_a_pass_function_takes_a_context() -> None:
    with pytest.raises(UsageError, match="takes two arguments"):
        tiered.module_pass(opt_level=0, name="short")(lambda model: None)


# --- what a pass is called with -------------------------------------------------------------------


def test_a_proto_gives_a_new_proto_and_stays_as_it_was() -> None:
    given = proto()
    before = given.SerializeToString(deterministic=True)
    result = fuse_relu(given)
    assert isinstance(result, onnx.ModelProto)
    assert ops(result) == ["Relu", "Neg", "Abs"]
    assert given.SerializeToString(deterministic=True) == before


def test_a_model_is_edited_and_returned() -> None:
    given = model()
    assert fuse_relu(given) is given
    assert ops(given) == ["Relu", "Neg", "Abs"]


@pytest.mark.parametrize("path", ["model.onnx", Path("model.onnx")])
def test_a_path_is_refused_and_optimize_is_named(path: Any) -> None:
    with pytest.raises(UsageError, match=r"tiered\.optimize\('model\.onnx'\)"):
        fuse_relu(path)


@pytest.mark.parametrize("thing", [None, [], onnx.GraphProto()])
def test_anything_else_is_refused(thing: Any) -> None:
    with pytest.raises(UsageError, match=r"fuse_relu takes a tiered\.Model or an onnx\.ModelProto"):
        fuse_relu(thing)


def test_a_direct_call_honours_the_context_and_apply_goes_around_it() -> None:
    given = model()
    with PassContext(disabled=[fuse_relu]):
        assert ops(fuse_relu(given)) == ["Relu", "Relu", "Neg", "Abs"]
        assert ops(fuse_relu.apply(given)) == ["Relu", "Neg", "Abs"]
    assert ops(drop_neg.apply(given)) == ["Relu", "Abs"]


def test_a_direct_call_that_does_nothing_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tiered"):
        drop_neg(model())
        fuse_relu(model())
        Sequential([drop_neg])(model())
    assert [record.message for record in caplog.records] == [
        "drop_neg did not run: needs opt_level 3; it is 2, the default (`.apply` runs it anyway)"
    ]


def test_apply_can_be_given_the_context_that_the_pass_sees() -> None:
    ctx = PassContext(opt_level=4, config={"remarks.examples": 1})
    levels: list[int] = []

    @tiered.module_pass(opt_level=0)
    def see(model: Model, ctx: PassContext) -> None:
        levels.append(ctx.opt_level)

    see.apply(model(), ctx)
    with PassContext(opt_level=1):
        see.apply(model())
        see(model())
    assert levels == [4, 2, 1]
    assert [result.name for result in ctx.report.results] == ["see"]


# --- the kinds ------------------------------------------------------------------------------------


def test_a_function_pass_sees_every_graph() -> None:
    nested = """g (float[2] x, bool c) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] a) { a = Relu(x) },
                    else_branch = e () => (float[2] b) { b = Neg(x) }>
    }"""
    seen: list[str] = []

    @tiered.function_pass(opt_level=0)
    def name_graphs(graph: Graph, ctx: PassContext) -> None:
        seen.append(graph.name)

    name_graphs(model(nested))
    assert sorted(seen) == ["e", "g", "t"]


def test_a_graph_that_went_with_its_node_is_not_visited() -> None:
    nested = """g (float[2] x, bool c) => (float[2] y) {
        u = If (c) <then_branch = t () => (float[2] a) { a = Relu(x) },
                    else_branch = e () => (float[2] b) { b = Neg(x) }>
        y = Abs(x)
    }"""
    seen: list[str] = []

    @tiered.function_pass(opt_level=0)
    def drop_ifs(graph: Graph, ctx: PassContext) -> None:
        seen.append(graph.name)
        for node in graph.nodes_of("If"):
            graph.remove_node(node)

    drop_ifs(model(nested))
    assert seen == ["g"]


def test_a_class_is_made_anew_for_each_graph() -> None:
    @dataclass
    class CountGraphs:
        limit: int = 2
        seen: int = field(init=False, default=0)

        def transform_graph(self, graph: Graph, ctx: PassContext) -> None:
            self.seen += 1
            assert (self.seen, self.limit) == (1, 3)

    pass_ = tiered.function_pass(opt_level=0)(CountGraphs)
    assert str(pass_.with_options(limit=3)) == "count_graphs{limit=3}"
    pass_.with_options(limit=3)(model())


def test_a_class_without_the_method_is_refused() -> None:
    with pytest.raises(UsageError, match="has a method transform_module"):
        tiered.module_pass(opt_level=0)(type("Empty", (), {}))


@pytest.mark.parametrize("result", [1, proto()])
def test_what_a_pass_returns_is_not_lost_silently(result: Any) -> None:
    pass_ = tiered.module_pass(opt_level=0, name="returns")(lambda model, ctx: result)
    with pytest.raises(UsageError, match=r"returns returned a .*: a pass edits in place"):
        pass_(model())


def test_a_pass_may_return_its_model_or_a_skip() -> None:
    same = tiered.module_pass(opt_level=0, name="same")(lambda model, ctx: model)
    skip = tiered.module_pass(opt_level=0, name="skip")(lambda model, ctx: Skip("not {}", "now"))
    with PassContext() as ctx:
        skip(same(model()))
    assert [str(remark) for remark in ctx.remarks] == ["skip: left alone: not now"]


def test_an_analysis_must_not_edit() -> None:
    def edit(model: Model, ctx: PassContext) -> None:
        ctx.remark("nothing to see")
        model.main.rename_node(model.main.nodes[0], "edited")

    given = model()
    before = content(given)
    analysis = tiered.module_pass(opt_level=0, analysis=True, name="analysis")(edit)
    with pytest.raises(PassError, match="analysis is an analysis, but it edited the model"):
        analysis(given)
    assert content(given) == before


# --- transactions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError("boom"), AssertionError(), KeyboardInterrupt()])
@pytest.mark.parametrize("edits", range(4))
def test_a_pass_that_dies_leaves_the_model_exactly_as_it_was(
    error: BaseException, edits: int
) -> None:
    given = model()
    before, nodes = content(given), given.main.nodes
    expected = PassError if isinstance(error, Exception) else KeyboardInterrupt
    with pytest.raises(expected):
        failing(error, edits=edits)(given)
    assert content(given) == before
    assert given.main.nodes == nodes
    assert ops(fuse_relu(given)) == ["Relu", "Neg", "Abs"]


def test_the_error_names_the_pass_the_rewrite_and_what_ran_before() -> None:
    cause = ValueError("boom")
    given = model()
    with pytest.raises(PassError) as caught:
        Sequential([fuse_relu, look, failing(cause)])(given)
    assert caught.value.__cause__ is cause
    assert str(caught.value) == (
        "failing failed at rewrite #2 of the model: ValueError: boom\n"
        "  changed before it by fuse_relu"
    )


def test_errors_that_are_meant_keep_their_type_and_name_the_pass() -> None:
    with pytest.raises(ModelError, match="broken") as caught:
        failing(ModelError("broken"))(model())
    assert caught.value.__notes__ == ["in pass failing"]


def test_a_pipeline_that_dies_leaves_the_model_as_it_was_before_the_pipeline() -> None:
    given = model()
    before = content(given)
    with pytest.raises(PassError):
        Sequential([fuse_relu, Sequential([rename_graph, failing(ValueError())])])(given)
    assert content(given) == before


def test_a_failure_is_said_once_however_deep_it_is() -> None:
    with PassContext() as ctx, pytest.raises(PassError):
        Sequential([Sequential([failing(ValueError("boom"))], name="inner")])(model())
    assert [remark.pass_name for remark in ctx.remarks if remark.kind == "failed"] == ["failing"]
    assert [result.name for result in ctx.report.results] == ["failing", "inner", "sequential"]


def test_on_error_skip_undoes_the_one_pass_and_goes_on() -> None:
    given = model()
    with PassContext(on_error="skip") as ctx:
        Sequential([fuse_relu, failing(ValueError("boom")), rename_graph])(given)
    assert ops(given) == ["Relu", "Neg", "Abs"]
    assert given.main.nodes[-1].name.endswith("!")
    (failed,) = ctx.report.of("failing")
    assert failed.error is not None
    assert not failed.changed
    assert [remark.reason for remark in ctx.remarks if remark.kind == "failed"] == [failed.error]


def test_a_keyboard_interrupt_is_not_skipped() -> None:
    with PassContext(on_error="skip"), pytest.raises(KeyboardInterrupt):
        failing(KeyboardInterrupt())(model())


# --- dependencies and follow-ups ------------------------------------------------------------------


def tracked(name: str, log: list[str], edit: bool = False, **declared: Any) -> Pass:
    """Return a pass that notes that it runs, and edits if it is told to."""

    def run(model: Model, ctx: PassContext) -> None:
        log.append(name)
        if edit:
            node = model.main.nodes[0]
            model.main.rename_node(node, node.name + "'")

    return tiered.module_pass(opt_level=declared.pop("opt_level", 0), name=name, **declared)(run)


def test_dependencies_run_first_and_those_of_those_before() -> None:
    log: list[str] = []
    needs = tracked("needs", log, required=["middle"])
    middle, last = tracked("middle", log, required=["last"]), tracked("last", log)
    with registered(middle, last):
        needs(model())
    assert log == ["last", "middle", "needs"]


def test_a_dependency_runs_again_only_after_an_edit() -> None:
    log: list[str] = []
    given = model()
    needed, needs = tracked("needed", log), tracked("needs", log, required=["needed"])
    editor = tracked("editor", log, edit=True)
    with registered(needed):
        Sequential([needs, needs, editor, needs])(given)
        needs(given)
        needs(model())
    assert log == [
        "needed",
        "needs",
        "needs",
        "editor",
        "needed",
        "needs",
        "needs",
        "needed",
        "needs",
    ]


def test_a_dependency_is_stale_again_when_edits_were_undone() -> None:
    log: list[str] = []
    given = model()
    needed, needs = tracked("needed", log), tracked("needs", log, required=["needed"])
    with registered(needed):
        mark = given.mark()
        tracked("editor", log, edit=True)(given)
        needs(given)
        given.undo_to(mark)
        needs(given)
    assert log == ["editor", "needed", "needs", "needed", "needs"]


def test_a_disabled_dependency_disables_its_dependant_and_says_why() -> None:
    log: list[str] = []
    needed, needs = tracked("needed", log), tracked("needs", log, required=["needed"])
    with registered(needed), PassContext(disabled=["needed"]) as ctx:
        needs(model())
        assert ctx.decide(needs).reason.startswith("needs needed, which is disabled by 'needed'")
    assert log == []
    refused = pytest.raises(UsageError, match="needs needs needed, which is disabled")
    with registered(needed), PassContext(disabled=["needed"], strict=True), refused:
        needs(model())


def test_a_dependency_that_fails_or_is_vetoed_disables_its_dependant() -> None:
    class Veto:
        def should_run(self, model: Model, info: PassInfo) -> bool:
            return info.name != "look"

    log: list[str] = []
    needs = tracked("needs", log, required=["failing"])
    with registered(failing(ValueError())), PassContext(on_error="skip") as ctx:
        needs(model())
    assert ctx.report.results[-1].reason == "needs failing, which did not run to its end"
    with registered(look), PassContext(instruments=[Veto()]) as ctx:
        tracked("needs", log, required=["look"])(model())
    assert ctx.report.results[-1].reason == "needs look, which did not run to its end"
    assert log == []


def test_a_dependency_runs_whatever_its_level() -> None:
    log: list[str] = []
    needed = tracked("needed", log, opt_level=4)
    with registered(needed), PassContext(opt_level=0):
        tracked("needs", log, required=["needed"])(model())
    assert log == ["needed", "needs"]


def test_a_follow_up_runs_when_something_changed() -> None:
    log: list[str] = []
    after = tracked("after", log)
    with registered(after):
        tracked("idle", log, followed_by=["after"])(model())
        assert log == ["idle"]
        tracked("busy", log, edit=True, followed_by=["after"])(model())
    assert log == ["idle", "busy", "after"]


def test_follow_ups_that_follow_each_other_come_to_an_end() -> None:
    log: list[str] = []
    ping = tracked("ping", log, edit=True, followed_by=["pong"])
    pong = tracked("pong", log, edit=True, followed_by=["ping"])
    with registered(ping, pong):
        ping(model())
    assert log == ["ping", "pong"]


# --- rewrites are counted -------------------------------------------------------------------------

FOUR = "g (float[2] x) => (float[2] y) { a = Neg(x)  b = Neg(a)  c = Neg(b)  y = Neg(c) }"


@tiered.rewrite(op.Neg(var.x), opt_level=0)
def neg_to_abs(graph: Graph, x: Value) -> Value:
    """Of no meaning."""
    result: Value = graph.op.Abs(x)
    return result


@tiered.function_pass(opt_level=0)
def negs_to_relus(graph: Graph, ctx: PassContext) -> None:
    """Of no meaning: numbers each node as a rewrite of its own."""
    for node in graph.nodes_of("Neg"):
        with graph.rewrite("Neg => Relu", node):
            graph.replace(node, [graph.op.Relu(node.inputs[0])])


@tiered.function_pass(opt_level=0)
def all_negs_to_relus(graph: Graph, ctx: PassContext) -> None:
    """Of no meaning: the whole pass is one rewrite."""
    for node in graph.nodes_of("Neg"):
        graph.replace(node, [graph.op.Relu(node.inputs[0])])


@pytest.mark.parametrize("limit", range(6))
@pytest.mark.parametrize("pass_", [neg_to_abs, negs_to_relus])
def test_the_limit_lets_the_first_rewrites_through(pass_: Pass, limit: int) -> None:
    given = model(FOUR)
    with PassContext(rewrite_limit=limit) as ctx:
        pass_(given)
    assert ops(given).count("Neg") == max(4 - limit, 0)
    assert ctx.report.results[0].rewrites == min(limit, 4)
    pass_(given)
    assert "Neg" not in ops(given)


@pytest.mark.parametrize(("limit", "left"), [(0, 4), (1, 0), (2, 0)])
def test_a_pass_that_numbers_nothing_is_one_rewrite(limit: int, left: int) -> None:
    given = model(FOUR)
    with PassContext(rewrite_limit=limit):
        all_negs_to_relus(given)
    assert ops(given).count("Neg") == left


def test_results_count_rewrites_edits_and_time() -> None:
    with PassContext() as ctx:
        Sequential([fuse_relu, look])(model())
    fused, looked, whole = ctx.report.results
    assert (fused.name, fused.changed, fused.rewrites) == ("fuse_relu", True, 1)
    assert (looked.changed, looked.rewrites, looked.edits) == (False, 0, 0)
    assert (whole.info.kind, whole.rewrites, whole.edits) == ("pipeline", 1, fused.edits)
    assert whole.seconds >= fused.seconds + looked.seconds > 0
    assert [info.name for info in ctx.report.changing()] == ["fuse_relu"]


# --- looking twice --------------------------------------------------------------------------------


def counting(log: list[str]) -> Pass:
    def count(graph: Graph, ctx: PassContext) -> None:
        log.append(graph.name)

    return tiered.function_pass(opt_level=0, name="counting")(count)


def test_a_pass_does_not_look_again_at_a_model_that_did_not_move() -> None:
    log: list[str] = []
    given, pass_ = model(), counting(log)
    pass_(pass_(given))
    assert log == ["g"]
    fuse_relu(given)
    pass_(given)
    assert log == ["g", "g"]
    pass_(model())
    assert len(log) == 3


@pytest.mark.parametrize("settings", [{"opt_level": 4}, {"config": {"remarks.examples": 1}}])
def test_a_pass_looks_again_where_the_context_is_another(settings: Any) -> None:
    log: list[str] = []
    given, pass_ = model(), counting(log)
    pass_(given)
    with PassContext(**settings):
        pass_(given)
    assert log == ["g", "g"]


def test_a_rule_looks_only_at_what_moved() -> None:
    given, seen = model(FOUR), list[str]()

    @tiered.rewrite(op.Neg(var.x), opt_level=0)
    def see(graph: Graph, x: Value) -> Skip:
        seen.append(x.name)
        return Skip("only looking")

    see(given)
    assert seen == ["x", "a", "b", "c"]
    last = given.main.nodes[-1]
    given.main.set_input(last, 0, given.main.nodes[1].outputs[0])
    see(given)
    assert "x" not in seen[4:]


def test_a_limit_that_held_rewrites_back_is_not_the_end() -> None:
    given = model(FOUR)
    with PassContext(rewrite_limit=0):
        neg_to_abs(given)
    assert ops(neg_to_abs(given)).count("Abs") == 4


# --- remarks --------------------------------------------------------------------------------------


def test_like_remarks_are_counted_together_with_examples() -> None:
    three = "g (float[2] x) => (float[2] y) { a = Abs(x)  b = Abs(a)  y = Abs(b) }"
    with PassContext(config={"remarks.examples": 2}) as ctx:
        keep_abs(model(three))
    (remark,) = ctx.remarks
    assert (remark.kind, remark.count, remark.op_type) == ("missed", 3, "Abs")
    assert str(remark) == "keep_abs: 3 Abs left alone: it is Abs after all (node_a, node_b, ...)"


def test_a_node_that_was_rewritten_after_all_was_not_missed() -> None:
    def fuse_unless(graph: Graph, x: Value) -> Value | Skip:
        if graph.name == "later":
            return Skip("not yet")
        return x

    pass_ = tiered.rewrite(op.Neg(var.x), opt_level=0, name="fuse_unless")(fuse_unless)
    given = model()
    with PassContext() as ctx:
        given.main.skeleton.name = "later"
        pass_(given)
        assert [remark.kind for remark in ctx.remarks] == ["missed"]
        given.main.skeleton.name = "now"
        given.main.set_attribute(given.main.nodes_of("Neg")[0], "axis", 1)
        given.main.set_attribute(given.main.nodes_of("Neg")[0], "axis", None)
        pass_(given)
    assert [remark.kind for remark in ctx.remarks] == ["applied"]


def test_a_function_pass_says_what_it_leaves_and_what_it_finds() -> None:
    @tiered.function_pass(opt_level=0)
    def talk(graph: Graph, ctx: PassContext) -> None:
        for node in graph.nodes_of("Relu"):
            ctx.skip(node, Skip("it is a {}", "Relu"))
        ctx.remark("seen it all")

    with PassContext() as ctx:
        talk(model())
    assert [str(remark) for remark in ctx.remarks] == [
        "talk: 2 Relu left alone: it is a Relu (node_a, node_b)",
        "talk: seen it all",
    ]


def test_nobody_needs_to_listen_to_a_pass_that_talks() -> None:
    PassContext().skip(None, Skip("outside"))
    PassContext().remark("outside")


# --- scopes ---------------------------------------------------------------------------------------


def with_paths() -> onnx.ModelProto:
    """Return four Negs in a row that are named as exporters do."""
    made = proto(FOUR)
    for node, path in zip(
        made.graph.node, ["/encoder/0/Neg", "/encoder/1/Neg", "/decoder/Neg", "/head"], strict=True
    ):
        node.name = path
    return made


def renamed(given: Model) -> list[str]:
    """Return the names of the nodes that are still Neg."""
    return [node.name for node in given.main.nodes_of("Neg")]


@pytest.mark.parametrize("pass_", [neg_to_abs])
@pytest.mark.parametrize(
    ("scope", "left"),
    [
        ("/encoder/**", ["/decoder/Neg", "/head"]),
        ("/encoder/*", ["/encoder/0/Neg", "/encoder/1/Neg", "/decoder/Neg", "/head"]),
        ("/encoder/0/*", ["/encoder/1/Neg", "/decoder/Neg", "/head"]),
        ("/encoder/[!0]/Neg|/head", ["/encoder/0/Neg", "/decoder/Neg"]),
        ("/encoder/[0^]/Neg", ["/encoder/1/Neg", "/decoder/Neg", "/head"]),
        ("[^]encoder/0/Neg", ["/encoder/0/Neg", "/encoder/1/Neg", "/decoder/Neg", "/head"]),
        ("**", []),
    ],
)
def test_a_pass_bound_to_names_rewrites_nothing_else(
    pass_: Pass, scope: str, left: list[str]
) -> None:
    given = Model.from_proto(with_paths())
    with PassContext() as ctx:
        pass_.on(scope)(given)
    assert renamed(given) == left
    missed = [remark for remark in ctx.remarks if remark.kind == "missed"]
    assert [remark.count for remark in missed] == ([len(left)] if left else [])
    assert all(remark.reason == "not wholly inside the scope" for remark in missed)


def test_a_scope_is_part_of_the_text_and_two_are_both_meant() -> None:
    bound = neg_to_abs.on("/encoder/**").on("**/0/*")
    assert str(bound) == "neg_to_abs@'/encoder/**'@'**/0/*'"
    given = Model.from_proto(with_paths())
    bound(given)
    assert renamed(given) == ["/encoder/1/Neg", "/decoder/Neg", "/head"]


def test_nodes_a_graph_and_a_networkx_view_are_scopes() -> None:
    given = Model.from_proto(with_paths())
    first, second, third, last = given.main.nodes
    neg_to_abs.on([first])(given)
    assert renamed(given) == [second.name, third.name, last.name]
    neg_to_abs.on(given.main.dag.subgraph([second, third]))(given)
    assert renamed(given) == ["/head"]
    neg_to_abs.on(given.main)(given)
    assert renamed(given) == []


def test_a_body_and_a_function_are_scopes() -> None:
    nested = """g (float[2] x, bool c) => (float[2] y) {
        z = Neg(x)
        [If_1] y = If (c) <then_branch = t () => (float[2] a) { a = Neg(z) },
                           else_branch = e () => (float[2] b) { b = Neg(z) }>
    }"""
    given = model(nested)
    neg_to_abs.on("body:If_1")(given)
    assert [len(graph.nodes_of("Neg")) for graph in given.graphs()] == [1, 0, 0]


def test_a_module_of_the_exporter_is_a_scope() -> None:
    made = with_paths()
    for node in made.graph.node:
        scopes = str(["", "m", f"m.{node.name.split('/')[1]}"])
        node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=scopes)
    given = Model.from_proto(made)
    neg_to_abs.on("module:m.encoder")(given)
    assert renamed(given) == ["/decoder/Neg", "/head"]


def test_a_function_pass_that_reaches_out_of_its_scope_is_undone() -> None:
    given = Model.from_proto(with_paths())
    with PassContext() as ctx:
        all_negs_to_relus.on("/encoder/**")(given)
        assert len(renamed(given)) == 4
        all_negs_to_relus.on("**")(given)
        assert renamed(given) == []
    assert any("not wholly inside the scope" in str(remark) for remark in ctx.remarks)


def test_rewrites_that_reach_out_are_undone_one_by_one() -> None:
    given = Model.from_proto(with_paths())
    with PassContext() as ctx:
        negs_to_relus.on("/encoder/**")(given)
    assert renamed(given) == ["/decoder/Neg", "/head"]
    (missed,) = [remark for remark in ctx.remarks if remark.kind == "missed"]
    assert (missed.count, missed.reason) == (2, "not wholly inside the scope")
    assert missed.nodes == ("/decoder/Neg", "/head")
    assert ctx.report.results[0].rewrites == 2
    given.check_view()


def test_a_rewrite_outside_a_scope_gets_no_number() -> None:
    given = Model.from_proto(with_paths())
    with PassContext(rewrite_limit=1) as ctx:
        negs_to_relus.on("/encoder/1/*|/head")(given)
    assert renamed(given) == ["/encoder/0/Neg", "/decoder/Neg", "/head"]
    assert ctx.report.results[0].rewrites == 1
    negs_to_relus(given)
    assert renamed(given) == []


def test_a_body_is_a_scope_for_a_function_pass_that_removes_nodes() -> None:
    nested = """g (float[2] x, bool c) => (float[2] y) {
        z = Neg(x)
        [If_1] y = If (c) <then_branch = t () => (float[2] a) { a = Neg(z) },
                           else_branch = e () => (float[2] b) { b = Neg(z) }>
    }"""
    for pass_ in (negs_to_relus, all_negs_to_relus):
        given = model(nested)
        pass_.on("body:If_1")(given)
        assert [len(graph.nodes_of("Neg")) for graph in given.graphs()] == [1, 0, 0]


def test_what_is_inside_is_decided_before_the_pass_renames_it() -> None:
    @tiered.function_pass(opt_level=0)
    def rename_negs(graph: Graph, ctx: PassContext) -> None:
        for node in graph.nodes_of("Neg"):
            with graph.rewrite("a name => another", node):
                graph.rename_node(node, f"/encoder{node.name}")

    given = Model.from_proto(with_paths())
    rename_negs.on("/encoder/**")(given)
    assert renamed(given) == [
        "/encoder/encoder/0/Neg",
        "/encoder/encoder/1/Neg",
        "/decoder/Neg",
        "/head",
    ]


def test_a_shared_weight_is_changed_only_if_all_its_users_are_inside() -> None:
    shared = """g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
        a = Add(x, w)  y = Mul(a, w)
    }"""

    @tiered.function_pass(opt_level=0)
    def zero(graph: Graph, ctx: PassContext) -> None:
        weight = graph.initializers[0]
        with graph.rewrite("a weight => 0", weight):
            graph.set_constant(weight, Tensor.of(np.zeros(2, np.float32)))

    given = model(shared)
    before = content(given)
    zero.on("node_a")(given)
    assert content(given) == before
    zero.on("node_a|node_y")(given)
    assert content(given) != before


@pytest.mark.parametrize("scope", ["", [], 3, [1, 2]])
def test_what_is_no_scope_is_refused(scope: Any) -> None:
    with pytest.raises(UsageError, match="scope"):
        neg_to_abs.on(scope)


def test_a_module_pass_has_no_scope() -> None:
    with pytest.raises(UsageError, match="rename_graph is a module pass: only rewrite"):
        rename_graph.on("/encoder/**")


# --- sharing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [lambda p: p(model()), lambda p: p.apply(model())])
def test_a_pass_may_call_another(call: Callable[[Pass], Any]) -> None:
    @tiered.module_pass(opt_level=0)
    def outer(model: Model, ctx: PassContext) -> None:
        fuse_relu(model)

    assert ops(call(outer)) == ["Relu", "Neg", "Abs"]
