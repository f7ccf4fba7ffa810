"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.function_passes.reduction.eliminate_nop_reduce",
        "tiered.function_passes.reduction.eliminate_reshape_before_reduce",
        "tiered.function_passes.reduction.fuse_reshape_into_reduce",
        "tiered.function_passes.reduction.fuse_squeeze_into_reduce",
        "tiered.function_passes.reduction.fuse_unsqueeze_into_reduce",
        "tiered.function_passes.reduction.replace_half_reducemean",
    )
