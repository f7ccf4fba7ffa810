"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.extensions.memory.chart",
        "tiered.extensions.memory.checkpoints",
        "tiered.extensions.memory.liveness",
        "tiered.extensions.memory.node_orders",
        "tiered.extensions.memory.order_problem",
        "tiered.extensions.memory.recomputation",
    )
