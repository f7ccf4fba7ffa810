"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.function_passes.layout.eliminate_nop_transpose",
        "tiered.function_passes.layout.eliminate_transpose_around_elementwise",
        "tiered.function_passes.layout.fuse_consecutive_transpose",
        "tiered.function_passes.layout.fuse_space_to_depth",
        "tiered.function_passes.layout.replace_transpose_with_reshape",
    )
