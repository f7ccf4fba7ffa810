"""Edits of a pipeline: by a backend, by the user, one upon the other."""

import pytest

from tiered import (
    Fixpoint,
    PassContext,
    PipelineEdit,
    Sequential,
    default_pipeline,
    optimize_model,
    parse_pipeline,
    pipeline_for,
)
from tiered.pipeline import edited, pipeline_diff
from tiered.support.errors import OptionError, PassNotFoundError, PipelineSyntaxError
from tiered.targets import Backend
from tiered.testing import parse

BASE = Sequential(["eliminate_identity", "fold_constant", "fix(eliminate_nop_cast,fold_constant)"])


def npu(*edits: str) -> Backend:
    return Backend(name="npu", edits=tuple(PipelineEdit.parse(text, by="npu") for text in edits))


@pytest.mark.parametrize(
    ("edit", "result"),
    [
        (
            "before fold_constant:1: infer_shapes",
            "eliminate_identity,user{opt_ins=wanted}(infer_shapes),fold_constant,"
            "fix(eliminate_nop_cast,fold_constant)",
        ),
        (
            "after FoldConstant:2: infer_shapes,eliminate_deadend",
            "eliminate_identity,fold_constant,fix(eliminate_nop_cast,fold_constant,"
            "user{opt_ins=wanted}(infer_shapes,eliminate_deadend))",
        ),
        (
            "replace fix: infer_shapes",
            "eliminate_identity,fold_constant,user{opt_ins=wanted}(infer_shapes)",
        ),
        ("drop fold_constant", "eliminate_identity,fix(eliminate_nop_cast)"),
        (
            "set fold_constant:1{max_growth=2%}",
            "eliminate_identity,fold_constant{max_growth=2%},fix(eliminate_nop_cast,fold_constant)",
        ),
    ],
)
def test_an_edit_is_text(edit: str, result: str) -> None:
    made = edited(BASE, [edit])
    assert str(made) == result
    assert str(parse_pipeline(result)) == result
    assert parse_pipeline(result).digest == made.digest
    assert str(PipelineEdit.parse(edit)) == edit


def test_a_user_edits_what_a_backend_makes_of_the_default_one() -> None:
    backend = npu("drop eliminate_zero_bias", "after infer_shapes:1: fold_constant{max_growth=2%}")
    pipeline = pipeline_for(backend, ["before npu: eliminate_deadend", "drop fuse_bn_into_conv"])
    assert str(parse_pipeline(str(pipeline))) == str(pipeline)
    lines = [
        " ".join(line.split()) if line.startswith("-") else line
        for line in pipeline_diff(default_pipeline(), pipeline)
    ]
    # What is dropped is dropped wherever it stands.
    assert list(dict.fromkeys(lines)) == [
        "+ user{opt_ins=wanted}(",
        "+   eliminate_deadend",
        "+ )",
        "+ npu{opt_ins=wanted}(",
        "+   fold_constant{max_growth=2%}",
        "- eliminate_zero_bias",
        "- fuse_bn_into_conv",
    ]


def test_what_a_backend_inserts_is_gated_by_level_but_opt_ins_run() -> None:
    backend = npu("before topological_sort: fuse_bn_into_conv,remove_initializer_from_input")
    with PassContext(opt_level=0) as ctx:
        steps = {str(step.pass_): step for step in pipeline_for(backend).plan(ctx)[:8]}
        inserted = [step for step in pipeline_for(backend).plan(ctx) if "npu" in step.place.groups]
    assert [bool(step.decision) for step in inserted] == [False, True]
    assert inserted[1].decision.reason == "asked for by name"
    assert not steps["const_batch_size"].decision


def test_a_group_of_a_backend_can_be_disabled() -> None:
    with PassContext(disabled=["npu/*"]) as ctx:
        plan = pipeline_for(npu("before topological_sort: fold_constant")).plan(ctx)
    (step,) = [step for step in plan if "npu" in step.place.groups]
    assert step.decision.reason.startswith("disabled by 'npu/*'")


def test_optimize_runs_the_pipeline_of_the_backend_and_of_the_user() -> None:
    model = parse("(float[2] x) => (float[2] y) { a = Identity(x) y = Identity(a) }")
    result = optimize_model(
        model, backend=npu("drop eliminate_identity"), edits=["drop eliminate_nop_cast"]
    )
    names = {leaf.name for leaf in result.pipeline.leaves()}
    assert names.isdisjoint({"eliminate_identity", "eliminate_nop_cast"})
    assert len(result.model.main.nodes) == 2
    listed = optimize_model(
        model, passes="fold_constant,eliminate_identity", edits=["drop fold_constant"]
    )
    assert str(listed.pipeline) == "eliminate_identity"


def test_a_fixed_point_stays_one() -> None:
    made = edited(Fixpoint("eliminate_nop_cast,fold_constant"), ["drop fold_constant"])
    assert isinstance(made, Fixpoint)


@pytest.mark.parametrize(
    ("edit", "error", "message"),
    [
        ("insert x", PipelineSyntaxError, "'insert x' is no edit"),
        ("afterr x: y", PipelineSyntaxError, "did you mean 'after'"),
        ("drop", PipelineSyntaxError, "is no edit"),
        ("drop x: y", PipelineSyntaxError, "expected nothing after 'x'"),
        ("after x", PipelineSyntaxError, "expected ': passes' after 'x'"),
        ("set x", PipelineSyntaxError, "expected options in braces after 'x'"),
        ("drop fold_constnt", PassNotFoundError, "did you mean 'fold_constant'"),
        ("drop fold_constant:3", PassNotFoundError, "the pipeline has no 'fold_constant:3'"),
        ("after fold_constant: nothing", PassNotFoundError, "no pass named 'nothing'"),
        ("set fold_constant{growth=1}", OptionError, "did you mean 'max_growth'"),
    ],
)
def test_an_edit_that_cannot_be_made_says_why(
    edit: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        edited(BASE, [edit])


def test_the_error_of_an_edit_names_the_edit_and_who_wants_it() -> None:
    with pytest.raises(PassNotFoundError) as caught:
        pipeline_for(npu("drop nothing_like_it"))
    assert caught.value.__notes__ == ["in the edit 'drop nothing_like_it' of npu"]
