"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.verify.baseline",
        "tiered.verify.changed_region",
        "tiered.verify.last_bits",
        "tiered.verify.methods",
        "tiered.verify.model_check",
        "tiered.verify.model_pair",
        "tiered.verify.random_values",
        "tiered.verify.reference_check",
        "tiered.verify.region_check",
        "tiered.verify.sliced_session",
        "tiered.verify.verify_instrument",
    )
