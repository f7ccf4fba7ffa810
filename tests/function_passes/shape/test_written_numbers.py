"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.function_passes.shape.eliminate_allowzero",
        "tiered.function_passes.shape.eliminate_cast_before_shape",
        "tiered.function_passes.shape.eliminate_nop_expand",
        "tiered.function_passes.shape.eliminate_nop_flatten",
        "tiered.function_passes.shape.eliminate_nop_pad",
        "tiered.function_passes.shape.eliminate_nop_reshape",
        "tiered.function_passes.shape.eliminate_nop_squeeze",
        "tiered.function_passes.shape.eliminate_nop_tile",
        "tiered.function_passes.shape.eliminate_nop_trilu",
        "tiered.function_passes.shape.eliminate_reshape_around_elementwise",
        "tiered.function_passes.shape.eliminate_reshape_around_matmul",
        "tiered.function_passes.shape.eliminate_reshape_around_rows",
        "tiered.function_passes.shape.eliminate_squeeze_unsqueeze",
        "tiered.function_passes.shape.fill_squeeze_axes",
        "tiered.function_passes.shape.fuse_cast_into_constantofshape",
        "tiered.function_passes.shape.fuse_consecutive_flatten",
        "tiered.function_passes.shape.fuse_consecutive_reshape",
        "tiered.function_passes.shape.fuse_consecutive_squeeze",
        "tiered.function_passes.shape.fuse_consecutive_unsqueeze",
        "tiered.function_passes.shape.fuse_expand_into_binary",
        "tiered.function_passes.shape.fuse_gather_into_shape",
        "tiered.function_passes.shape.fuse_slice_into_expand",
        "tiered.function_passes.shape.fuse_squeeze_into_reshape",
        "tiered.function_passes.shape.fuse_view_into_binary",
        "tiered.function_passes.shape.post_expand",
        "tiered.function_passes.shape.replace_tile_with_expand",
        "tiered.function_passes.shape.sink_expand",
        "tiered.function_passes.shape.trace_folding",
    )
