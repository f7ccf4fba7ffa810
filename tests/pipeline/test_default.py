"""The default pipeline: what it asks, and the places that other passes rely on."""

import pytest

from tiered import PassContext, Sequential, default_pipeline
from tiered.passes.interface.registry import registry
from tiered.support.numerics import Numerics

LEAVES = [pass_.name for pass_ in default_pipeline().leaves()]


def first(name: str) -> int:
    return LEAVES.index(name)


def last(name: str) -> int:
    return len(LEAVES) - 1 - LEAVES[::-1].index(name)


def test_it_is_one_value_and_its_text_makes_the_same_again() -> None:
    pipeline = default_pipeline()
    assert pipeline is default_pipeline()
    assert (pipeline.group, pipeline.parks) == ("default", True)
    again = Sequential(pipeline.inner, opt_ins="parked", name="default")
    assert again == pipeline
    assert [str(each) for each in Sequential("default").leaves()] == [
        str(each) for each in pipeline.leaves()
    ]


def test_opt_in_passes_wait_and_all_others_run_at_some_level() -> None:
    steps = default_pipeline().plan(PassContext(4))
    for step in steps:
        is_opt_in = step.pass_.info.opt_level is None
        waits = not step.decision and step.decision.reason.startswith("opt-in")
        assert waits is is_opt_in or step.pass_.info.life != "stable", step.pass_.name


def test_no_level_changes_the_interface_or_is_lossy() -> None:
    for pass_ in default_pipeline().leaves():
        info = pass_.info
        if info.opt_level is not None:
            assert not info.changes_interface, info.name
            assert info.numerics is not Numerics.LOSSY, info.name


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # The interface before any other pass relies on it.
        ("const_input_shape", "infer_shapes"),
        ("extract", "gradient"),
        ("drop_unused_inputs", "infer_shapes"),
        # One flat graph, and types, for all passes below.
        ("remove_unused_functions", "inline"),
        ("inline", "infer_shapes"),
        ("infer_shapes", "convert_opset"),
        ("convert_opset", "eliminate_identity"),
        ("infer_shapes", "fold_constant"),
        # Types become narrow, and weights small, once no pass computes in them any more.
        ("float_to_half", "weights_to_int8"),
        ("quantize", "weights_to_int8"),
        ("weights_to_int8", "measure_error"),
        ("annotate_target", "merge_compiler_regions"),
        ("merge_compiler_regions", "partition_graph"),
        ("split_by_budget", "schedule"),
        ("schedule", "recompute"),
        ("dense_to_sparse", "bake_parameters"),
        ("strip", "drop_false_declarations"),
    ],
)
def test_a_pass_is_before_all_that_rely_on_it(before: str, after: str) -> None:
    assert first(before) < first(after)


def test_the_end_cleans_up_and_checks() -> None:
    assert LEAVES[-2:] == ["drop_false_declarations", "final_check"]
    assert LEAVES.count("final_check") == 1
    end = last("eliminate_deadend")
    assert LEAVES[end : end + 4] == [
        "eliminate_deadend", "eliminate_unused_initializer", "remove_unused_functions",
        "remove_unused_opsets",
    ]  # fmt: skip
    levelled = [
        each for each in LEAVES[end + 4 :] if registry.named(each).info.opt_level is not None
    ]
    assert levelled == ["drop_false_declarations", "final_check"]


def test_what_a_pass_requires_or_is_followed_by_exists() -> None:
    for pass_ in default_pipeline().leaves():
        for name in (*pass_.info.required, *pass_.info.followed_by):
            assert registry.named(name).name == name
