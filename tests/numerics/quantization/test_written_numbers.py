"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.numerics.quantization.dynamic",
        "tiered.numerics.quantization.plan_ranges",
        "tiered.numerics.quantization.quantization_report",
        "tiered.numerics.quantization.rounding",
        "tiered.numerics.quantization.scales",
        "tiered.numerics.quantization.scheme",
        "tiered.numerics.quantization.settings",
        "tiered.numerics.quantization.slots",
        "tiered.numerics.quantization.static_quantization",
        "tiered.numerics.quantization.weight_pairs",
    )
