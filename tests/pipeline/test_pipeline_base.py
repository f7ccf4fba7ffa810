"""What Sequential and Fixpoint share: places, plans, edits, and what they promise together."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.small import (
    drop_neg,
    fuse_relu,
    keep_abs,
    look,
    registered,
    rename_graph,
)
from tiered import Fixpoint, PassContext, Sequential, default_pipeline
from tiered.passes.interface.pass_info import Place
from tiered.pipeline.pipeline_base import Pipeline, names_in
from tiered.runtime import Numerics
from tiered.support.errors import OptionError, PassNotFoundError, UsageError


@pytest.fixture(autouse=True)
def _named() -> Iterator[None]:
    with registered(fuse_relu, drop_neg, keep_abs, look, rename_graph):
        yield


TEXT = "look,cleanup(look,fuse_relu),fix(look)"
BEFORE, AFTER = "insert_before", "insert_after"


def test_a_pipeline_promises_what_its_passes_promise_together() -> None:
    pipeline = Sequential(["fold_constant", "fuse_bn_into_conv", "remove_initializer_from_input"])
    assert pipeline.info.numerics is Numerics.REASSOCIATING
    assert pipeline.info.changes_interface
    assert Sequential([]).info.numerics is Numerics.EXACT


@pytest.mark.parametrize("name", ["fix", "sequential", "a b", "1", "a(b"])
def test_a_name_that_text_cannot_hold_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="a group cannot be called"):
        Sequential([], name=name)


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


def places(
    pipeline: Pipeline, place: Place | None = None
) -> list[tuple[str, int, tuple[str, ...]]]:
    """Return the name, the occurrence and the groups of each pass, groups before their passes."""
    found = []
    for pass_, where in pipeline.places(place or Place()):
        found.append((pass_.name, where.occurrence, where.groups))
        if isinstance(pass_, Pipeline):
            found += places(pass_, where)
    return found


def test_occurrences_are_counted_through_groups() -> None:
    assert places(Sequential(TEXT, name="all")) == [
        ("look", 1, ("all",)),
        ("cleanup", 1, ("all",)),
        ("look", 2, ("all", "cleanup")),
        ("fuse_relu", 1, ("all", "cleanup")),
        ("fix", 1, ("all",)),
        ("look", 3, ("all",)),
    ]


def test_what_is_needed_by_a_pass_has_no_occurrence() -> None:
    found = places(Sequential("look,look"), Place(needed_by="x"))
    assert found == [("look", 0, ()), ("look", 0, ())]


@pytest.mark.parametrize(
    ("opt_ins", "around", "parks", "asked"),
    [
        ("run", Place(), False, False),
        ("run", Place(asked=True), False, True),
        ("run", Place(parks=True, asked=True), True, True),
        ("parked", Place(asked=True), True, False),
        ("parked", Place(), True, False),
        (None, Place(parks=True, asked=True), True, True),
        (None, Place(), False, False),
    ],
)
def test_whether_opt_ins_wait_is_that_of_the_pipeline_or_of_the_one_around(
    opt_ins: Any, around: Place, parks: bool, asked: bool
) -> None:
    pipeline = Fixpoint("look") if opt_ins is None else Sequential("look", opt_ins=opt_ins)
    ((_, where),) = pipeline.places(around)
    assert (where.parks, where.asked) == (parks, asked)
    assert where.forced is around.forced
    assert [each.forced for _, each in pipeline.places(Place(forced=True))] == [True]


def test_the_names_in_a_pipeline_are_those_inside_too() -> None:
    pipeline = Sequential(TEXT)
    assert names_in(look) == ["look"]
    assert names_in(pipeline) == [
        "sequential", "look", "cleanup", "look", "fuse_relu", "fix", "look"
    ]  # fmt: skip


def test_a_pipeline_is_bound_pass_by_pass() -> None:
    bound = Sequential("look,fix(fuse_relu)").on("a*")
    assert str(bound) == "look@'a*',fix(fuse_relu@'a*')"
    with pytest.raises(UsageError, match="rename_graph is a module pass"):
        Sequential([rename_graph]).on("a*")


def test_other_options_keep_passes_and_name() -> None:
    pipeline = Sequential("look", name="g", opt_level=2)
    other = pipeline.with_options(opt_level=3)
    assert (other.group, other.info.opt_level, len(other)) == ("g", 3, 1)
    assert pipeline.info.opt_level == 2
    with pytest.raises(OptionError):
        pipeline.with_options(odd=1)


def test_a_target_gets_other_options() -> None:
    pipeline = Sequential("look,rename_graph,cleanup(rename_graph)")
    one = pipeline.configure("rename_graph:2", times=2)
    assert str(one) == "look,rename_graph,cleanup(rename_graph{times=2})"
    both = pipeline.configure("rename_graph", suffix="?")
    assert str(both) == "look,rename_graph{suffix=?},cleanup(rename_graph{suffix=?})"


def test_an_inner_pipeline_is_an_element_of_the_text() -> None:
    assert Sequential(TEXT).inner == TEXT
    assert str(Sequential([Sequential("look"), fuse_relu])) == "(look),fuse_relu"


def test_a_place_that_is_no_number_meets_nothing() -> None:
    for target in ("look:x", "look:0", "look:"):
        if target == "look:":
            assert str(Sequential("look,fuse_relu").drop(target)) == "fuse_relu"
        else:
            with pytest.raises(PassNotFoundError, match="the pipeline has no"):
                Sequential("look,fuse_relu").drop(target)
