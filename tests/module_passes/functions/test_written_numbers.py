"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.module_passes.functions.eta_expand",
        "tiered.module_passes.functions.fuse_ops",
        "tiered.module_passes.functions.inline",
        "tiered.module_passes.functions.lambda_lift",
        "tiered.module_passes.functions.remove_unused_functions",
        "tiered.module_passes.functions.specialize_functions",
    )
