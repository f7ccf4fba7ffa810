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
from tiered import PassContext, Sequential
from tiered.support.errors import OptionError, UsageError


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
    asked: list[list[Any]] = [[ops], [ops], ["final_check"], []]
    checked = [Sequential([look], checks=each) for each in asked]
    assert [checked[0] == other for other in checked] == [True, True, False, False]


@pytest.mark.parametrize("passes", [[3], 3, None, look, [None]])
def test_what_is_no_pass_is_refused(passes: Any) -> None:
    with pytest.raises(UsageError, match="a pipeline takes"):
        Sequential(passes)


def test_wrong_options_of_a_pipeline_are_refused() -> None:
    with pytest.raises(OptionError, match="'opt_level' takes an integer"):
        Sequential([], opt_level="3")  # type: ignore[arg-type]  # the point
    with pytest.raises(OptionError, match="takes one of run, parked"):
        Sequential([], opt_ins="wait")  # type: ignore[arg-type]  # the point
