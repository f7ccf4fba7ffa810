"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.graph.opset.adapter",
        "tiered.graph.opset.adapters",
        "tiered.graph.opset.earliest",
        "tiered.graph.opset.meanings",
        "tiered.graph.opset.newest_form",
        "tiered.graph.opset.same_meaning",
    )
