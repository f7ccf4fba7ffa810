"""Preconditions and postconditions, checked around each run of a pass."""

import functools
from collections.abc import Callable
from typing import Any

import pytest

import tiered
from tests.small import content, fuse_relu, look, model, ops, registered
from tiered import Graph, Model, Pass, PassContext, Sequential, Skip, Value, op, rewrite, var
from tiered.passes.conditions import label_of
from tiered.support.errors import PassError, PostconditionError, PreconditionError, UsageError

NESTED = """g (float[2] x, bool c) => (float[2] y) {
    z = Neg(x)
    y = If (c) <then_branch = t () => (float[2] a) { a = Neg(z) },
                else_branch = e () => (float[2] b) { b = Abs(z) }>
}"""


def rename_first(graph: Graph, ctx: PassContext) -> None:
    graph.rename_node(graph.nodes[0], "renamed")


def renames(**declared: Any) -> Pass:
    return tiered.function_pass(opt_level=0, name="renames", **declared)(rename_first)


def refuse(graph: Graph, ctx: PassContext) -> None:
    """Say no, with the reason."""
    raise ValueError("no Neg wanted")


def says(verdict: object) -> Callable[[Graph, PassContext], object]:
    def condition(graph: Graph, ctx: PassContext) -> object:
        return verdict

    return condition


# --- before ---------------------------------------------------------------------------------------


def test_what_is_required_is_asked_before_the_pass_and_named() -> None:
    given = model()
    before = content(given)
    with pytest.raises(PreconditionError) as caught:
        renames(precondition=refuse)(given)
    assert (
        str(caught.value) == "renames: precondition refuse of graph 'g': ValueError: no Neg wanted"
    )
    assert isinstance(caught.value.__cause__, ValueError)
    assert caught.value.__notes__ == ["in pass renames"]
    assert content(given) == before


@pytest.mark.parametrize("verdict", [False, 0, []])
def test_a_condition_may_return_false(verdict: object) -> None:
    with pytest.raises(
        PreconditionError, match="renames: precondition condition of graph 'g', which returned"
    ):
        renames(precondition=says(verdict))(model())
    with pytest.raises(
        PostconditionError, match="renames: postcondition condition of graph 'g', which returned"
    ):
        renames(postcondition=says(verdict))(model())


@pytest.mark.parametrize("verdict", [None, True, 1])
def test_anything_else_is_fine(verdict: object) -> None:
    given = renames(precondition=says(verdict), postcondition=says(verdict))(model())
    assert given.main.nodes[0].name == "renamed"


def test_a_skip_means_that_there_is_nothing_to_do() -> None:
    given = model()
    with PassContext() as ctx:
        renames(precondition=lambda graph: Skip("no {} here", "Conv"))(given)
    assert given.main.nodes[0].name == "node_a"
    assert [str(remark) for remark in ctx.remarks] == ["renames: unchanged: no Conv here"]


def test_each_graph_is_asked_for_itself() -> None:
    def has_abs(graph: Graph) -> Skip | None:
        return None if graph.nodes_of("Abs") else Skip("no Abs")

    given = model(NESTED)
    renames(precondition=has_abs)(given)
    assert [graph.nodes[0].name == "renamed" for graph in given.graphs()] == [False, False, True]


# --- after ----------------------------------------------------------------------------------------


def test_what_is_ensured_is_asked_after_it_and_undoes_it() -> None:
    given = model()
    before = content(given)
    with pytest.raises(PostconditionError, match="renames: postcondition refuse") as caught:
        renames(postcondition=refuse)(given)
    assert isinstance(caught.value, PassError)
    assert content(given) == before
    with PassContext(on_error="skip") as ctx:
        Sequential([fuse_relu, renames(postcondition=refuse)])(given)
    assert ops(given) == ["Relu", "Neg", "Abs"]
    assert [result.name for result in ctx.report.failed()] == ["renames"]


def test_a_skip_does_not_say_what_holds() -> None:
    with pytest.raises(
        PostconditionError, match=r"renames: postcondition condition of .*: not now"
    ):
        renames(postcondition=says(Skip("not now")))(model())


def test_a_condition_cannot_edit_the_model() -> None:
    given = model()
    before = content(given)
    with pytest.raises(PreconditionError, match="may not be edited now: rename_first is checking"):
        renames(precondition=rename_first)(given)
    assert content(given) == before
    fuse_relu(given)


def test_an_interrupt_in_a_condition_goes_on() -> None:
    def interrupt(graph: Graph) -> None:
        raise KeyboardInterrupt

    given = model()
    before = content(given)
    with pytest.raises(KeyboardInterrupt):
        renames(postcondition=interrupt)(given)
    assert content(given) == before


# --- the kinds of passes --------------------------------------------------------------------------


def test_a_module_pass_is_asked_about_the_model() -> None:
    asked: list[Model] = []
    pass_ = tiered.module_pass(
        opt_level=0,
        name="module",
        precondition=asked.append,
        postcondition=lambda model, ctx: False,
    )
    given = model()
    with pytest.raises(
        PostconditionError, match=r"module: postcondition <lambda> of the model, which"
    ):
        pass_(lambda model, ctx: None)(given)
    assert asked == [given]


def test_a_rewrite_is_asked_about_each_graph() -> None:
    def has_abs(graph: Graph) -> Skip | None:
        return None if graph.nodes_of("Abs") else Skip("no Abs")

    @rewrite(
        op.Abs(var.x),
        opt_level=0,
        precondition=has_abs,
        postcondition=lambda g: not g.nodes_of("Abs"),
    )
    def drop_abs(graph: Graph, x: Value) -> Value:
        """Of no meaning."""
        return graph.op.Relu(x)

    given = model(NESTED)
    with PassContext() as ctx:
        drop_abs(given)
    assert [len(graph.nodes_of("Relu")) for graph in given.graphs()] == [0, 0, 1]
    assert [remark.kind for remark in ctx.remarks] == ["applied", "missed"]


def test_a_rewrite_looks_again_at_a_graph_that_was_not_ready() -> None:
    ready: list[bool] = [False]

    @rewrite(
        op.Neg(var.x), opt_level=0, precondition=lambda g: None if ready[0] else Skip("not yet")
    )
    def negs(graph: Graph, x: Value) -> Value:
        """Of no meaning."""
        return graph.op.Abs(x)

    given = model()
    negs(given)
    ready[0] = True
    given.main.rename_node(given.main.nodes[0], "moved")
    negs(given)
    assert "Neg" not in ops(given)


def test_a_class_has_them_as_methods() -> None:
    class Renames:
        def __init__(self, allow: bool = False) -> None:
            self.allow = allow
            self.done = False

        def precondition(self, graph: Graph, ctx: PassContext) -> bool:
            return self.allow

        def transform_graph(self, graph: Graph, ctx: PassContext) -> None:
            self.done = True

        def postcondition(self, graph: Graph) -> bool:
            return self.done

    pass_ = tiered.function_pass(opt_level=0)(Renames)
    with pytest.raises(PreconditionError, match=r"renames\.precondition of"):
        pass_(model())
    pass_.with_options(allow=True)(model())


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (
            {"precondition": ["infer_shapes"]},
            "precondition takes a function .*; required= takes names",
        ),
        ({"postcondition": 3}, "postcondition takes a function"),
        ({"postcondition": lambda a, b, c: None}, "postcondition takes a function"),
        ({"precondition": lambda: None}, "precondition takes a function"),
    ],
)
def test_what_is_no_condition_is_refused(declared: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        renames(**declared)


# --- checks of a pipeline -------------------------------------------------------------------------


def few_nodes(model: Model) -> None:
    if len(model.main) > 4:
        raise ValueError("too many nodes")


@tiered.function_pass(opt_level=0)
def grow(graph: Graph, ctx: PassContext) -> None:
    """Add a node."""
    last = graph.nodes[-1]
    graph.replace(last, [graph.op.Abs(graph.op.Abs(last.inputs[0]))])


def test_checks_are_asked_before_the_first_pass_and_after_the_last() -> None:
    asked: list[int] = []
    pipeline = Sequential([fuse_relu, grow, look], checks=[lambda m: asked.append(len(m.main))])
    pipeline(model())
    assert asked == [4, 4]
    with pytest.raises(PreconditionError, match=r"check few_nodes failed before sequential of the"):
        Sequential([look], checks=[few_nodes])(grow(model()))


def test_a_check_that_fails_at_the_end_undoes_the_pipeline() -> None:
    given = model()
    before = content(given)
    with pytest.raises(PostconditionError) as caught:
        Sequential([grow, grow, look], checks=[few_nodes], name="all")(given)
    assert str(caught.value) == (
        "check few_nodes failed after all of the model: ValueError: too many nodes"
    )
    assert "changed before it by grow" in caught.value.__notes__
    assert content(given) == before


def test_a_check_after_each_names_the_pass_and_undoes_it_alone() -> None:
    given = model()
    pipeline = Sequential([fuse_relu, grow, grow, look], checks=[few_nodes], check_after_each=True)
    with pytest.raises(PostconditionError, match="check few_nodes failed after grow"):
        pipeline(given)
    with PassContext(on_error="skip") as ctx:
        pipeline(given)
    assert len(given.main) == 4
    assert [(result.name, result.error is None) for result in ctx.report.ran()] == [
        ("fuse_relu", True),
        ("grow", True),
        ("grow", False),
        ("look", True),
    ]


def test_checks_after_each_hold_inside_groups_and_for_dependencies() -> None:
    needs = tiered.function_pass(opt_level=0, name="needs", required=["grow"])(lambda g, c: None)
    for inner in (Sequential([grow], name="inner"), needs):
        with registered(grow), pytest.raises(PostconditionError, match="after grow"):
            Sequential([inner], checks=[few_nodes], check_after_each=True)(model())


def test_a_suppressed_failure_is_said_and_nothing_is_undone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = model()
    with PassContext() as ctx:
        Sequential([grow, look], checks=[few_nodes], suppress_check_failures=True)(given)
    assert len(given.main) == 5
    said = "check few_nodes failed after sequential of the model: ValueError: too many nodes"
    assert [str(r) for r in ctx.remarks if r.kind == "check"] == [f"{said} (suppressed)"]
    assert [record.message for record in caplog.records] == [f"{said} (suppressed)"]


def test_checks_that_are_passes_are_part_of_the_text() -> None:
    pipeline = Sequential([look], checks=["final_check"], check_after_each=True)
    assert str(pipeline) == "sequential{checks=[final_check],check_after_each=true}(look)"
    with registered(look):
        assert tiered.parse_pipeline(str(pipeline)) == pipeline
    assert pipeline.drop("look").checks == pipeline.checks


def test_checks_that_are_functions_make_pipelines_differ_though_no_text_holds_them() -> None:
    one, other = (Sequential([look], checks=[lambda model: None]) for _ in range(2))
    assert str(one) == str(other)
    assert one != other
    assert one == one.with_options(opt_level=0)
    with registered(look), pytest.raises(UsageError, match="give it in Python"):
        tiered.parse_pipeline(str(one))


@pytest.mark.parametrize(
    ("checks", "message"),
    [
        ([3], "checks takes functions of the model"),
        (few_nodes, "checks takes a list"),
        ("final_check", "checks takes a list"),
        ([lambda: None], "takes one argument, the model"),
        ([lambda a, b: None], "takes one argument, the model"),
        (["infer_shapes"], "infer_shapes is no analysis"),
        (["fuse_nothing"], "no pass named 'fuse_nothing'"),
    ],
)
def test_what_is_no_check_is_refused(checks: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Sequential([look], checks=checks)


def test_a_condition_without_a_name_is_named_by_its_class() -> None:
    assert label_of(functools.partial(ops)) == "partial"
    assert label_of(ops) == "ops"
