"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.function_passes.gather_slice.eliminate_nop_concat",
        "tiered.function_passes.gather_slice.eliminate_nop_gather",
        "tiered.function_passes.gather_slice.eliminate_nop_scatter",
        "tiered.function_passes.gather_slice.eliminate_nop_slice",
        "tiered.function_passes.gather_slice.eliminate_nop_split",
        "tiered.function_passes.gather_slice.eliminate_sequence",
        "tiered.function_passes.gather_slice.eliminate_split_concat",
        "tiered.function_passes.gather_slice.fuse_cast_into_onehot",
        "tiered.function_passes.gather_slice.fuse_concat_into_slice",
        "tiered.function_passes.gather_slice.fuse_consecutive_concat",
        "tiered.function_passes.gather_slice.fuse_consecutive_gather",
        "tiered.function_passes.gather_slice.fuse_consecutive_slice",
        "tiered.function_passes.gather_slice.fuse_slice_into_gather",
        "tiered.function_passes.gather_slice.fuse_slices_into_split",
        "tiered.function_passes.gather_slice.fuse_tile_into_gather",
        "tiered.function_passes.gather_slice.fuse_transpose_into_gather",
        "tiered.function_passes.gather_slice.hoist_slice",
        "tiered.function_passes.gather_slice.normalize_axes",
        "tiered.function_passes.gather_slice.replace_lone_split_with_slice",
        "tiered.function_passes.gather_slice.replace_slice_with_gather",
    )
