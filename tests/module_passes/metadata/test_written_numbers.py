"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.module_passes.metadata.drop_false_declarations",
        "tiered.module_passes.metadata.infer_shapes",
        "tiered.module_passes.metadata.range_annotation",
        "tiered.module_passes.metadata.strip",
        "tiered.module_passes.metadata.unique_name_for_nodes",
    )
