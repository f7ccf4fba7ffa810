"""Fixpoint: until nothing changes, within a bound."""

import numpy as np
import pytest

import tiered
from tests.small import drop_neg, fuse_relu, look, model, ops
from tiered import Fixpoint, Graph, Model, Pass, PassContext, Sequential, Value, op, var
from tiered.passes.interface.pass_info import Decision, Place
from tiered.pipeline.fixpoint import _remark_on
from tiered.support.errors import UsageError

MANY = """g (float[2] x) => (float[2] y) {
    a = Relu(x)  b = Neg(a)  c = Relu(b)  d = Neg(c)  y = Relu(d)
}"""


def test_passes_run_until_none_of_them_changes_anything() -> None:
    given = model(MANY)
    with PassContext(3) as ctx:
        Fixpoint([fuse_relu, drop_neg])(given)
    assert ops(given) == ["Relu"]
    assert [result.changed for result in ctx.report.of("fuse_relu")] == [False, True, False]
    assert [remark for remark in ctx.remarks if remark.kind == "analysis"] == []


def test_a_fixed_point_of_nothing_ends_after_one_round() -> None:
    with PassContext() as ctx:
        Fixpoint([look])(model())
    assert len(ctx.report.of("look")) == 1


def test_a_fixed_point_is_there_when_each_has_run_since_the_last_change() -> None:
    with PassContext() as ctx:
        Fixpoint([fuse_relu, look, drop_neg])(
            model("g (float[2] x) => (float[2] y) { a = Relu(x)  y = Relu(a) }")
        )
    ran = [result.info.name for result in ctx.report.results if result.info.kind != "pipeline"]
    assert ran == ["fuse_relu", "look", "drop_neg", "fuse_relu"]


def test_a_fixed_point_inside_another_is_left_alone_while_nothing_moves() -> None:
    text = "g (float[2] x) => (float[2] y) { a = Relu(x)  y = Relu(a) }"
    with PassContext() as ctx:
        Fixpoint([Fixpoint([fuse_relu, look]), drop_neg])(model(text))
    ran = [result.info.name for result in ctx.report.results if result.info.kind != "pipeline"]
    assert ran == ["fuse_relu", "look", "fuse_relu", "drop_neg"]


def test_a_fixed_point_inside_another_runs_again_after_a_change() -> None:
    with PassContext(3) as ctx:
        Fixpoint([Fixpoint([fuse_relu]), drop_neg])(model(MANY))
    assert [result.changed for result in ctx.report.of("fuse_relu")] == [False, True, False]


def test_a_fixed_point_of_no_passes_is_one() -> None:
    with PassContext() as ctx:
        Fixpoint([])(model())
    assert ctx.remarks == []


@pytest.mark.parametrize("check_after_each", [False, True])
def test_what_stands_at_a_place_is_decided_once_for_all_rounds(
    check_after_each: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, decide = list[str](), PassContext.decide

    def note(self: PassContext, pass_: Pass, place: Place) -> Decision:
        asked.append(pass_.name)
        return decide(self, pass_, place)

    monkeypatch.setattr(PassContext, "decide", note)
    group = Sequential(
        [fuse_relu, drop_neg], name="group", checks=[repr], check_after_each=check_after_each
    )
    with PassContext(3) as ctx:
        Fixpoint([group])(model(MANY))
    assert len(ctx.report.of("fuse_relu")) == 3
    assert asked == ["fix", "group", "fuse_relu", "drop_neg"]


@tiered.rewrite(op.Neg(var.x), opt_level=0)
def neg_to_abs(graph: Graph, x: Value) -> Value:
    """Of no meaning."""
    result: Value = graph.op.Abs(x)
    return result


@tiered.rewrite(op.Abs(var.x), opt_level=0)
def abs_to_neg(graph: Graph, x: Value) -> Value:
    """Of no meaning: what the other one undoes."""
    result: Value = graph.op.Neg(x)
    return result


def test_passes_that_never_end_are_stopped_and_named() -> None:
    with PassContext() as ctx:
        Sequential([Fixpoint([neg_to_abs, look, abs_to_neg], max_rounds=3)])(model())
    assert len(ctx.report.of("look")) == 3
    assert [str(remark) for remark in ctx.remarks if remark.kind == "analysis"] == [
        "fix: no fixed point after 3 rounds: neg_to_abs, abs_to_neg still change the model"
    ]


def test_the_bound_is_a_config_option_where_the_text_does_not_say() -> None:
    with PassContext(config={"fixpoint.max_rounds": 2}) as ctx:
        Fixpoint([neg_to_abs, abs_to_neg])(model())
        Fixpoint([neg_to_abs, abs_to_neg], max_rounds=1)(model())
    assert len(ctx.report.of("neg_to_abs")) == 3


def test_a_limit_on_rewrites_ends_it_too() -> None:
    with PassContext(rewrite_limit=5) as ctx:
        Fixpoint([neg_to_abs, abs_to_neg])(model())
    assert sum(result.rewrites for result in ctx.report.ran()) == 5
    assert [remark for remark in ctx.remarks if remark.kind == "analysis"] == []


def test_passes_that_conflict_are_never_in_one_fixed_point() -> None:
    @tiered.module_pass(opt_level=0, conflicts=["look"])
    def enemy(model: Model, ctx: PassContext) -> None:
        """Of no meaning."""

    Sequential([enemy, look])
    with pytest.raises(UsageError, match="enemy and look undo each other"):
        Fixpoint([look, Sequential([enemy])])


@pytest.mark.parametrize("rounds", [0, -1])
def test_a_bound_below_one_is_refused(rounds: int) -> None:
    with pytest.raises(UsageError, match="max_rounds takes an integer from 1"):
        Fixpoint([look], max_rounds=rounds)


@tiered.function_pass(opt_level=0)
def undo_one_neg(graph: Graph, ctx: PassContext) -> None:
    """Remove one pair of Negs, and read its factor from a constant of its own."""
    for node in graph.nodes_of("Neg"):
        producer = node.inputs[0].producer if node.inputs[0] is not None else None
        if producer is not None and producer.is_op("Neg"):
            with graph.rewrite("Neg(Neg(x)) => x * 1", node):
                one = graph.constant(np.array([1, 2], np.float32))
                graph.replace(node, [graph.op.Mul(producer.inputs[0], one)])
            return


def test_issue_40_a_merge_of_equal_constants_is_no_cycle() -> None:
    negs = " ".join(f"n{at} = Neg(n{at - 1})" for at in range(1, 12))
    given = model(f"g (float[2] x) => (float[2] y) {{ n0 = Abs(x) {negs} y = Neg(n11) }}")
    with PassContext(3) as ctx:
        Fixpoint([undo_one_neg, "eliminate_duplicate_initializer"])(given)
    assert "Neg" not in ops(given)
    assert len(given.main.initializers) == 1
    assert [remark for remark in ctx.remarks if remark.kind == "analysis"] == []


@pytest.mark.parametrize(
    ("cycle", "said"),
    [
        ("a", "a undoes its own changes"),
        ("ab", "a and b undo each other"),
        ("abc", "a, b and c form a cycle"),
        ("abcd", "a, b, c and d form a cycle"),
    ],
)
def test_a_cycle_has_the_names_of_its_passes(cycle: str, said: str) -> None:
    assert _remark_on(list(cycle)) == f"no fixed point: {said}"
