"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.numerics.precision.cast_plan",
        "tiered.numerics.precision.float_search",
        "tiered.numerics.precision.lower",
        "tiered.numerics.precision.measured_ranges",
        "tiered.numerics.precision.measurement",
        "tiered.numerics.precision.mixed",
        "tiered.numerics.precision.narrow_integers",
        "tiered.numerics.precision.narrowed_runs",
        "tiered.numerics.precision.narrowing",
        "tiered.numerics.precision.node_effects",
        "tiered.numerics.precision.nothing",
        "tiered.numerics.precision.return_groups",
        "tiered.numerics.precision.variables",
    )
