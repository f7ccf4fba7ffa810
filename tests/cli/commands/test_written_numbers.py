"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.cli.commands.bench",
        "tiered.cli.commands.check",
        "tiered.cli.commands.diff",
        "tiered.cli.commands.discover",
        "tiered.cli.commands.doctor",
        "tiered.cli.commands.explain",
        "tiered.cli.commands.inspect",
        "tiered.cli.commands.layout",
        "tiered.cli.commands.memory",
        "tiered.cli.commands.partition",
        "tiered.cli.commands.prepare",
        "tiered.cli.commands.profile",
        "tiered.cli.commands.quantize",
        "tiered.cli.commands.sensitivity",
    )
