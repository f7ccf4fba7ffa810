"""Sequential: gating, listing, editing."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.small import (
    drop_neg,
    fuse_relu,
    keep_abs,
    look,
    model,
    ops,
    proto,
    registered,
    rename_graph,
)
from tiered import Fixpoint, PassContext, Sequential, default_pipeline
from tiered.runtime import Numerics
from tiered.support.errors import OptionError, PassNotFoundError, UsageError


@pytest.fixture(autouse=True)
def _named() -> Iterator[None]:
    with registered(fuse_relu, drop_neg, keep_abs, look, rename_graph):
        yield


def test_passes_run_in_order_and_are_gated_by_level() -> None:
    with PassContext(1) as ctx:
        assert ops(Sequential([fuse_relu, "drop_neg"])(proto())) == ["Relu", "Neg", "Abs"]
    assert [(result.name, result.ran) for result in ctx.report.results] == [
        ("fuse_relu", True),
        ("drop_neg", False),
        ("sequential", True),
    ]


def test_opt_ins_run_in_an_explicit_pipeline_and_wait_in_a_parked_one() -> None:
    explicit = Sequential([rename_graph])
    parked = explicit.with_options(opt_ins="parked")
    assert explicit(model()).main.nodes[-1].name == "node_y!"
    assert parked(model()).main.nodes[-1].name == "node_y"
    assert Sequential([parked])(model()).main.nodes[-1].name == "node_y"
    with PassContext(required=["rename_graph"]):
        assert parked(model()).main.nodes[-1].name == "node_y!"


def test_a_group_below_its_level_does_not_run_at_all() -> None:
    group = Sequential([look], name="late", opt_level=3)
    with PassContext() as ctx:
        Sequential([group])(model())
    assert [(result.name, result.ran) for result in ctx.report.results] == [
        ("late", False),
        ("sequential", True),
    ]


def test_apply_runs_everything_whatever_its_level() -> None:
    given = model()
    with PassContext(0, disabled=["drop_neg"]):
        Sequential([fuse_relu, Sequential([drop_neg], opt_level=4)]).apply(given)
    assert ops(given) == ["Relu", "Abs"]


def test_text_and_passes_mix_and_text_may_stand_for_several() -> None:
    pipeline = Sequential(["look,fuse_relu", drop_neg, "fix(look)"])
    assert [str(pass_) for pass_ in pipeline] == ["look", "fuse_relu", "drop_neg", "fix(look)"]
    assert [leaf.name for leaf in pipeline.leaves()] == ["look", "fuse_relu", "drop_neg", "look"]
    assert len(pipeline) == 4
    assert Sequential("look,fuse_relu") == Sequential([look, fuse_relu])


def test_a_pipeline_promises_what_its_passes_promise_together() -> None:
    pipeline = Sequential(["fold_constant", "fuse_bn_into_conv", "remove_initializer_from_input"])
    assert pipeline.info.numerics is Numerics.REASSOCIATING
    assert pipeline.info.changes_interface
    assert Sequential([]).info.numerics is Numerics.EXACT


@pytest.mark.parametrize("passes", [[3], 3, None, look, [None]])
def test_what_is_no_pass_is_refused(passes: Any) -> None:
    with pytest.raises(UsageError, match="a pipeline takes"):
        Sequential(passes)


@pytest.mark.parametrize("name", ["fix", "sequential", "a b", "1", "a(b"])
def test_a_name_that_text_cannot_hold_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="a group cannot be called"):
        Sequential([], name=name)


def test_wrong_options_of_a_pipeline_are_refused() -> None:
    with pytest.raises(OptionError, match="'opt_level' takes an integer"):
        Sequential([], opt_level="3")  # type: ignore[arg-type]  # the point
    with pytest.raises(OptionError, match="takes one of run, parked"):
        Sequential([], opt_ins="wait")  # type: ignore[arg-type]  # the point


# --- edits ----------------------------------------------------------------------------------------

TEXT = "look,cleanup(look,fuse_relu),fix(look)"
BEFORE, AFTER = "insert_before", "insert_after"


@pytest.mark.parametrize(
    ("edit", "arguments", "expected"),
    [
        (BEFORE, ("fuse_relu", keep_abs), "look,cleanup(look,keep_abs,fuse_relu),fix(look)"),
        (AFTER, ("look:1", keep_abs), "look,keep_abs,cleanup(look,fuse_relu),fix(look)"),
        (AFTER, ("FuseRelu", "fix(look)"), "look,cleanup(look,fuse_relu,fix(look)),fix(look)"),
        ("replace", ("look", drop_neg), "drop_neg,cleanup(drop_neg,fuse_relu),fix(drop_neg)"),
        ("replace", ("look:3", drop_neg), "look,cleanup(look,fuse_relu),fix(drop_neg)"),
        ("drop", ("look:2",), "look,cleanup(fuse_relu),fix(look)"),
        ("drop", ("look",), "cleanup(fuse_relu),fix()"),
        ("drop", ("cleanup",), "look,fix(look)"),
        (BEFORE, ("fix", drop_neg), "look,cleanup(look,fuse_relu),drop_neg,fix(look)"),
    ],
)  # fmt: skip
def test_edits_make_a_new_pipeline(edit: str, arguments: Any, expected: str) -> None:
    pipeline = Sequential(TEXT)
    assert str(getattr(pipeline, edit)(*arguments)) == expected
    assert str(pipeline) == TEXT


@pytest.mark.parametrize("target", ["drop_neg", "look:4", "lok"])
def test_an_edit_of_what_is_not_there_is_an_error(target: str) -> None:
    with pytest.raises(PassNotFoundError, match=f"the pipeline has no '{target}'"):
        Sequential(TEXT).drop(target)


def test_edits_keep_name_and_options() -> None:
    edited = default_pipeline().drop("final_check").insert_after("infer_shapes", look)
    assert edited.group == "default"
    assert edited.parks
    assert "final_check" not in str(edited)
    assert "infer_shapes,look," in str(edited)


def test_equal_pipelines_have_equal_digests() -> None:
    assert Sequential(TEXT) == Sequential(list(Sequential(TEXT)))
    assert Sequential(TEXT).digest == Sequential(TEXT).digest
    assert Sequential(TEXT).digest != Sequential("look").digest
    assert len({Sequential(TEXT), Sequential(TEXT), Fixpoint("look")}) == 2


def test_the_plan_says_what_will_run_and_why_not_the_rest() -> None:
    steps = default_pipeline().plan(PassContext(1, disabled=["cleanup/*", "eliminate_deadend"]))
    reasons = {step.pass_.name: step.decision.reason for step in steps if not step.decision}
    assert reasons["remove_initializer_from_input"] == "opt-in: runs only when required"
    assert reasons["fold_constant"].startswith("needs opt_level 2; it is 1, set at ")
    assert reasons["eliminate_deadend"].startswith("disabled by 'eliminate_deadend', set at ")
    assert "eliminate_identity" not in reasons


def test_a_group_that_does_not_run_takes_its_passes_with_it() -> None:
    group = Sequential([look, fuse_relu], name="late", opt_level=3)
    steps = Sequential([group, look]).plan(PassContext(2))
    assert [bool(step.decision) for step in steps] == [False, False, True]
    assert steps[0].decision.reason == steps[1].decision.reason
