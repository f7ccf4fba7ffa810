"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.graph.core.dtypes",
        "tiered.graph.core.edit",
        "tiered.graph.core.interface_map",
        "tiered.graph.core.lazy_bytes",
        "tiered.graph.core.marks",
        "tiered.graph.core.operator_calls",
        "tiered.graph.core.provenance",
        "tiered.graph.core.schema",
        "tiered.graph.core.tensor",
        "tiered.graph.core.value",
    )
