"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.compat.ppq.base_graph",
        "tiered.compat.ppq.formatting",
        "tiered.compat.ppq.operands",
        "tiered.compat.ppq.opsets",
        "tiered.compat.ppq.quantizing",
        "tiered.compat.ppq.searching",
    )
