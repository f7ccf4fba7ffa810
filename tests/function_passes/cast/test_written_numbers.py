"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.function_passes.cast.canonicalize_cast",
        "tiered.function_passes.cast.eliminate_nop_cast",
        "tiered.function_passes.cast.fuse_consecutive_cast",
        "tiered.function_passes.cast.replace_castlike_with_cast",
    )
