"""What a person asked for and did not get is said, with the reason."""

from types import SimpleNamespace
from typing import Any

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
    module_pass,
    op,
    optimize_model,
    rewrite,
    var,
)
from tiered.pipeline.idle import _too_early, check_met, note_idle
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


@function_pass(opt_level=0)
def say_more(graph: Graph, ctx: PassContext) -> None:
    """Decline the model, and each node."""
    ctx.skip(None, Skip("the model is old"))
    for node in graph.nodes_of("Abs"):
        ctx.skip(node, Skip("it is positive"))


@module_pass(opt_level=None, analysis=True)
def only_look(model: Model, ctx: PassContext) -> None:
    """Look at the model."""


def unmet(nodes: str, *required: str) -> list[str]:
    """Return what is said of required passes that changed nothing."""
    model = Model.from_proto(parse(f"(float[2] x) => (float[2] y) {{ {nodes} }}"))
    passes = [keep_neg, say_why, of_a_level, say_more, only_look]
    with registered(*passes):
        with PassContext.isolated(required=required, opt_level=0) as ctx:
            Sequential(passes)(model)
        note_idle(ctx, (), required)
    return [remark.reason for remark in ctx.report.remarks(1) if remark.kind == "unmet"]


@pytest.mark.parametrize(
    ("nodes", "reasons"),
    [
        ("y = Abs(x)", "the model has nothing that it rewrites"),
        ("y = Neg(x)", "y: it is a minus"),
        ("a = Neg(x)  y = Neg(a)", "a: it is a minus, and 1 more node stays as it is"),
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


def test_a_required_pass_that_did_not_run_says_nothing() -> None:
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Neg(x) }"))
    with registered(keep_neg):
        with PassContext.isolated(disabled=["keep_neg"]) as ctx:
            Sequential([keep_neg])(model)
        note_idle(ctx, (), ["keep_neg"])
    assert [each.kind for each in ctx.report.remarks(1)] == ["skipped"]


def test_a_pass_with_a_level_is_required_to_run_only() -> None:
    assert unmet("y = Neg(x)", "of_a_level", "only_look") == []
    assert unmet("y = Neg(x)", "say_more") == ["required say_more did nothing: the model is old"]
    assert unmet("y = Abs(x)", "say_more") == []


def test_options_of_a_pass_that_did_not_run_have_no_effect() -> None:
    def noted(edit: str, *disabled: str, opt_level: int = 2) -> list[str]:
        model = Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Neg(x) }"))
        with registered(keep_neg, of_a_level):
            with PassContext.isolated(opt_level=opt_level, disabled=disabled) as ctx:
                Sequential(["eliminate_identity", keep_neg, of_a_level])(model)
            note_idle(ctx, [edit], ())
        return [each.reason for each in ctx.report.remarks(1) if each.kind == "unmet"]

    (said,) = noted("set of_a_level{a=1}", opt_level=0)
    assert said.startswith(
        "the edit 'set of_a_level{a=1}' has no effect, as of_a_level did not run:"
    )
    assert "require" not in said
    (said,) = noted("set keep_neg{a=1}", "keep_neg")
    assert "has no effect, as keep_neg did not run: disabled by 'keep_neg'" in said
    assert said.endswith("; require keep_neg")
    assert noted("set of_a_level{a=1}") == []
    assert noted("set fold_constant{max_growth=1}") == [], "it is no pass of this run"
    assert noted("drop of_a_level", opt_level=0) == []


@pytest.mark.parametrize("entry", ["keep_*", "keep_neg@'y'", "group/keep_neg", "keep_negg"])
def test_only_a_pass_that_is_required_by_name_says_so(entry: str) -> None:
    with registered(keep_neg):
        ctx = PassContext.isolated()
        note_idle(ctx, (), [entry])
    assert ctx.report.remarks(1) == []


def test_what_no_pass_of_the_run_is_cannot_be_required() -> None:
    with registered(keep_neg):
        ctx = PassContext.isolated(required=["keep_neg"])
        with pytest.raises(UsageError, match="keep_neg is required, but it is no pass of this"):
            check_met(ctx)


TOO_OLD: dict[str, dict[str, Any]] = {
    "required": {"required": ["fuse_gelu"]},
    "listed": {"passes": ["infer_shapes", "fuse_gelu"]},
    "inserted": {"edits": ["after fold_constant: infer_shapes, fuse_gelu"]},
    "in the place of another": {"edits": ["replace fuse_gelu: fix(fuse_gelu)"]},
}
"""How a rule is asked for by its name."""


@pytest.mark.parametrize("how", TOO_OLD)
def test_a_rule_whose_operator_is_newer_than_the_model_is_an_error(how: str) -> None:
    old = parse("(float[2] x) => (float[2] y) { y = Relu(x) }", opset=13)
    with pytest.raises(TargetError, match=r"fuse_gelu.* is asked for: ONNX has Gelu from opset 20"):
        optimize_model(old, opt_level=3, **TOO_OLD[how])


def test_a_printed_pipeline_has_rules_for_other_models_too() -> None:
    old = parse("(float[2] x) => (float[2] y) { y = Relu(x) }", opset=13)
    optimize_model(old, opt_level=3, passes="infer_shapes, fuse_gelu, final_check")
    with pytest.raises(TargetError, match="fuse_gelu cannot do what it is asked for"):
        optimize_model(old, opt_level=3, passes="infer_shapes, fuse_gelu")


def test_a_rule_that_did_not_run_is_not_too_old() -> None:
    old = parse("(float[2] x) => (float[2] y) { y = Relu(x) }", opset=13)
    optimize_model(old, opt_level=3, passes="infer_shapes, fuse_gelu", disabled=["fuse_gelu"])


NEWER = (
    "ONNX has Gelu from opset 20 on; the model's opset is 13; `tiered convert --opset` raises it"
)
OWN = ("vendor::Gelu",)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, NEWER),
        ({"opset": 20}, ""),
        ({"kind": "function"}, ""),
        ({"makes": ("Gelu",)}, ""),
        ({"law": "Erf(x) => Gelu(x), Neg(x) => x"}, ""),
        ({"law": "Erf(x) => Gelu(x), Neg(x) => Abs(x)"}, ""),
        ({"law": "Erf(x) => Gelu(x), Neg(x) => Mish(x)"}, NEWER),
        ({"law": "Erf(x) does nothing"}, ""),
        ({"may_make": OWN}, NEWER),
        ({"may_make": OWN, "takes": ()}, NEWER),
        ({"may_make": OWN, "takes": OWN}, ""),
        ({"may_make": OWN, "takes": OWN, "names_backend": False}, NEWER),
        ({"may_make": ("Mish", "vendor::Gelu"), "takes": OWN}, ""),
    ],
)
def test_a_rule_is_too_early_if_all_that_it_makes_is_newer(
    given: dict[str, Any], expected: str
) -> None:
    info = {"kind": "rewrite", "makes": (), "law": "Erf(x) => Gelu(x)", "may_make": ()}
    info |= {name: value for name, value in given.items() if name in info}
    takes = given.get("takes")
    supports = None if takes is None else lambda name, domain: f"{domain}::{name}" in takes
    context = SimpleNamespace(
        names_backend=given.get("names_backend", True), target=SimpleNamespace(supports=supports)
    )
    proto = parse("(float[2] x) => (float[2] y) { y = Relu(x) }", opset=given.get("opset", 13))
    asked: Any = SimpleNamespace(**info), context, Model.from_proto(proto)
    assert _too_early(*asked) == expected


def test_what_a_glob_of_an_edit_stands_for_is_not_asked_for_by_name() -> None:
    old = parse("(float[2] x) => (float[2] y) { y = Relu(x) }", opset=13)
    for edit in (
        "after fold_constant: fuse_gel*",
        "drop fuse_gelu",
        "set fold_constant{max_growth=1%}",
    ):
        optimize_model(old, opt_level=3, edits=[edit])


def test_a_pass_of_an_edit_that_cannot_do_what_it_is_asked_for_is_an_error() -> None:
    model = parse("(float[2] x) => (float[2] y) { y = Relu(x) }")
    with pytest.raises(TargetError, match="add_checkpoints cannot do what it is asked for"):
        optimize_model(model, edits=["after fold_constant: add_checkpoints"], required=["add_ch*"])
