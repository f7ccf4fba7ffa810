"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.module_passes.check.check_with_fake_data",
        "tiered.module_passes.check.final_check",
        "tiered.module_passes.check.layer_precision_compare",
        "tiered.module_passes.check.measure_error",
        "tiered.module_passes.check.model_overview",
        "tiered.module_passes.check.topological_sort",
        "tiered.module_passes.check.verify_equality",
        "tiered.module_passes.check.verify_metric",
    )
