"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.module_passes.partition.annotate_target",
        "tiered.module_passes.partition.auto_insert_remap",
        "tiered.module_passes.partition.merge_compiler_regions",
        "tiered.module_passes.partition.merge_composite",
        "tiered.module_passes.partition.overlap_io",
        "tiered.module_passes.partition.partition_graph",
        "tiered.module_passes.partition.rewrite_annotated_ops",
    )
