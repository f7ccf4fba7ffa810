"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.extensions.debug.all_values",
        "tiered.extensions.debug.as_loaded",
        "tiered.extensions.debug.blame",
        "tiered.extensions.debug.bundle",
        "tiered.extensions.debug.comparison_page",
        "tiered.extensions.debug.layer_differences",
        "tiered.extensions.debug.model_reduction",
        "tiered.extensions.debug.models",
        "tiered.extensions.debug.oracles",
        "tiered.extensions.debug.pipeline_runs",
        "tiered.extensions.debug.reproducers",
        "tiered.extensions.debug.resume_file",
        "tiered.extensions.debug.weight_effects",
    )
