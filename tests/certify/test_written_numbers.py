"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.certify.all_sizes",
        "tiered.certify.certificate",
        "tiered.certify.certify_instrument",
        "tiered.certify.checker",
        "tiered.certify.problem",
        "tiered.certify.trial_sizes",
    )
