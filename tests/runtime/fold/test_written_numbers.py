"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.runtime.fold.compute_cost",
        "tiered.runtime.fold.fold_constants",
        "tiered.runtime.fold.foldable_nodes",
        "tiered.runtime.fold.node_evaluation",
        "tiered.runtime.fold.numpy_moves",
        "tiered.runtime.fold.session_batches",
        "tiered.runtime.fold.trip_count",
    )
