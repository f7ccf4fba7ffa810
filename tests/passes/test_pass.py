"""Passes: values that are called with models, and the kinds of them."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import onnx
import pytest

import tiered
from tests.small import (
    content,
    drop_neg,
    fuse_relu,
    look,
    model,
    ops,
    proto,
    rename_graph,
)
from tiered import (
    Graph,
    Model,
    Pass,
    PassContext,
    Sequential,
    Skip,
)
from tiered.passes import ModulePass
from tiered.support.errors import OptionError, PassError, UsageError

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
    with pytest.raises(UsageError, match=r"is no name of a pass|is made of a function"):
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
    assert [str(remark) for remark in ctx.remarks] == ["skip: unchanged: not now"]


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


# --- sharing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [lambda p: p(model()), lambda p: p.apply(model())])
def test_a_pass_may_call_another(call: Callable[[Pass], Any]) -> None:
    @tiered.module_pass(opt_level=0)
    def outer(model: Model, ctx: PassContext) -> None:
        fuse_relu(model)

    assert ops(call(outer)) == ["Relu", "Neg", "Abs"]
