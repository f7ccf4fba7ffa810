"""What a person asked for and did not get is said, with the reason."""

import pytest

from tests.small import registered
from tiered import (
    Graph,
    Model,
    PassContext,
    Sequential,
    Skip,
    Value,
    function_pass,
    op,
    optimize_model,
    rewrite,
    var,
)
from tiered.pipeline.idle import check_met, note_idle
from tiered.support.errors import TargetError, UsageError
from tiered.testing import parse


@rewrite(op.Neg(var.x), opt_level=None)
def keep_neg(graph: Graph, x: Value) -> Skip:
    """Decline always."""
    return Skip("it is {}", "a minus")


@function_pass(opt_level=None)
def say_why(graph: Graph, ctx: PassContext) -> None:
    """Decline the model."""
    ctx.skip(None, Skip("the model is small"))


@function_pass(opt_level=1)
def of_a_level(graph: Graph, ctx: PassContext) -> None:
    """Change nothing, which is as well."""


def unmet(nodes: str, *required: str) -> list[str]:
    """Return what is said of required passes that changed nothing."""
    model = Model.from_proto(parse(f"(float[2] x) => (float[2] y) {{ {nodes} }}"))
    with registered(keep_neg, say_why, of_a_level):
        with PassContext.isolated(required=required, opt_level=0) as ctx:
            Sequential([keep_neg, say_why, of_a_level])(model)
        note_idle(ctx, (), required)
    return [remark.reason for remark in ctx.report.remarks(1) if remark.kind == "unmet"]


@pytest.mark.parametrize(
    ("nodes", "reasons"),
    [
        ("y = Abs(x)", "the model has nothing that it rewrites"),
        ("y = Neg(x)", "y: it is a minus"),
        ("a = Neg(x)  y = Neg(a)", "a: it is a minus, and 1 more nodes stay as they are"),
        (
            "a = Neg(x)  b = Neg(a)  y = Neg(b)",
            "a: it is a minus, and 2 more nodes stay as they are",
        ),
    ],
)
def test_a_required_pass_says_why_it_changed_nothing(nodes: str, reasons: str) -> None:
    assert unmet(nodes, "keep_neg") == [f"required keep_neg did nothing: {reasons}"]


def test_what_concerns_the_model_comes_before_nodes() -> None:
    assert unmet("y = Neg(x)", "say_why") == ["required say_why did nothing: the model is small"]


def test_a_pass_with_a_level_is_required_to_run_only() -> None:
    assert unmet("y = Neg(x)", "of_a_level") == []


def test_what_no_pass_of_the_run_is_cannot_be_required() -> None:
    with registered(keep_neg):
        ctx = PassContext.isolated(required=["keep_neg"])
        with pytest.raises(UsageError, match="keep_neg is required, but it is no pass of this"):
            check_met(ctx)


def test_a_rule_whose_operator_is_newer_than_the_model_is_an_error() -> None:
    old = parse("(float[2] x) => (float[2] y) { y = Relu(x) }", opset=13)
    with pytest.raises(TargetError, match=r"fuse_gelu.* is asked for: ONNX has Gelu from opset 20"):
        optimize_model(old, required=["fuse_gelu"])
