"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.extensions.differences.constant_pairing",
        "tiered.extensions.differences.difference_page",
        "tiered.extensions.differences.node_matching",
        "tiered.extensions.differences.places",
    )
