"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.extensions.tuning.cache",
        "tiered.extensions.tuning.choices",
        "tiered.extensions.tuning.decision_text",
        "tiered.extensions.tuning.judges",
        "tiered.extensions.tuning.log",
        "tiered.extensions.tuning.maker",
        "tiered.extensions.tuning.model_forms",
        "tiered.extensions.tuning.race",
        "tiered.extensions.tuning.search",
        "tiered.extensions.tuning.search_chart",
        "tiered.extensions.tuning.tuning",
    )
