"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.analysis.batching.another_size",
        "tiered.analysis.batching.batch_edits",
        "tiered.analysis.batching.following",
        "tiered.analysis.batching.sample_facts",
        "tiered.analysis.batching.uniform_values",
    )
