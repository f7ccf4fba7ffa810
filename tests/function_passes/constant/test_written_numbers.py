"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.function_passes.constant.eliminate_common_subexpr",
        "tiered.function_passes.constant.eliminate_duplicate_initializer",
        "tiered.function_passes.constant.eliminate_unused_initializer",
        "tiered.function_passes.constant.extract_constant_to_initializer",
        "tiered.function_passes.constant.fold_constant",
        "tiered.function_passes.constant.format_parameter",
    )
