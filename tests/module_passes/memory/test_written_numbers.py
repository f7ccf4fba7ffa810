"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.module_passes.memory._product_parts",
        "tiered.module_passes.memory.recompute",
        "tiered.module_passes.memory.schedule",
        "tiered.module_passes.memory.serialize_matmul",
        "tiered.module_passes.memory.serialize_matmul_add",
        "tiered.module_passes.memory.split_by_budget",
    )
