"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.extensions.partition.contraction",
        "tiered.extensions.partition.device_marks",
        "tiered.extensions.partition.partition_charts",
        "tiered.extensions.partition.partition_plan",
    )
