"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.cli.output.failures",
        "tiered.cli.output.fleet",
        "tiered.cli.output.preparation",
        "tiered.cli.output.report_page",
        "tiered.cli.output.summary",
        "tiered.cli.output.terminal",
    )
