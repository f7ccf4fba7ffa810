"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.function_passes.scale_axis._scale_backward",
        "tiered.function_passes.scale_axis.backward_fold_scale_axis",
        "tiered.function_passes.scale_axis.forward_fold_scale_axis",
    )
