"""Passes: values that are called with models, and the kinds of them."""

import logging
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import onnx
import pytest

import tiered
from tests.small import (
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
from tiered.support.errors import OptionError, UsageError
from tiered.support.numerics import Numerics, Promise

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


# --- running --------------------------------------------------------------------------------------


def test_a_pass_over_nodes_may_be_bound_to_a_part() -> None:
    bound = fuse_relu.on("a*")
    assert str(bound) == "fuse_relu@'a*'"
    assert bound != fuse_relu
    assert bound.on("*b") != bound
    assert str(bound.scope) == "@'a*'"
    with pytest.raises(UsageError, match="rename_graph is a module pass: only"):
        rename_graph.on("a*")


def test_a_pass_may_promise_something_else() -> None:
    promise = Promise(Numerics.REASSOCIATING, rtol=1e-3)
    made = fuse_relu.promising(promise)
    assert (made.info.numerics, made.info.promise) == (Numerics.REASSOCIATING, promise)
    assert fuse_relu.info.promise == Promise(Numerics.EXACT)
    with pytest.raises(UsageError, match="fuse_relu is lossy, so no level may imply it"):
        fuse_relu.promising(Promise(Numerics.LOSSY))
    assert rename_graph.promising(Promise(Numerics.LOSSY)).info.numerics is Numerics.LOSSY


def test_passes_are_equal_by_their_text_and_to_nothing_else() -> None:
    assert fuse_relu == fuse_relu.with_options()
    assert hash(fuse_relu) == hash("fuse_relu")
    assert fuse_relu != "fuse_relu"
    one, two = (fuse_relu.on(lambda node, at=at: bool(at)) for at in (0, 1))
    assert one.text == two.text
    assert one != two
    assert fuse_relu.on("a") == fuse_relu.on("a") != drop_neg.on("a")
    assert repr(rename_graph.with_options(times=2)) == "<ModulePass rename_graph{times=2}>"


def test_notes_of_a_model_that_the_caller_does_not_see_are_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @tiered.module_pass(opt_level=0)
    def noting(model: Model, ctx: PassContext) -> None:
        model.note("look at this")

    with caplog.at_level(logging.WARNING, "tiered"):
        noting(proto())
        noting(model())
    assert [record.message for record in caplog.records] == ["look at this"]


# --- sharing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [lambda p: p(model()), lambda p: p.apply(model())])
def test_a_pass_may_call_another(call: Callable[[Pass], Any]) -> None:
    @tiered.module_pass(opt_level=0)
    def outer(model: Model, ctx: PassContext) -> None:
        fuse_relu(model)

    assert ops(call(outer)) == ["Relu", "Neg", "Abs"]


@pytest.mark.parametrize("result", [1, proto()])
def test_what_a_pass_returns_is_not_lost_silently(result: Any) -> None:
    pass_ = tiered.module_pass(opt_level=0, name="returns")(lambda model, ctx: result)
    with pytest.raises(
        UsageError, match=r"returns returned an object of type .*: a pass edits in place"
    ):
        pass_(model())


def test_a_pass_may_return_its_model_or_a_skip() -> None:
    same = tiered.module_pass(opt_level=0, name="same")(lambda model, ctx: model)
    skip = tiered.module_pass(opt_level=0, name="skip")(lambda model, ctx: Skip("not {}", "now"))
    with PassContext() as ctx:
        skip(same(model()))
    assert [str(remark) for remark in ctx.remarks] == ["skip: unchanged: not now"]
