"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.runtime.inputs.bound_model",
        "tiered.runtime.inputs.constraints",
        "tiered.runtime.inputs.dim_expression",
        "tiered.runtime.inputs.dims",
        "tiered.runtime.inputs.draw",
        "tiered.runtime.inputs.graph_facts",
        "tiered.runtime.inputs.make",
        "tiered.runtime.inputs.refused",
        "tiered.runtime.inputs.samples",
        "tiered.runtime.inputs.varied",
    )
