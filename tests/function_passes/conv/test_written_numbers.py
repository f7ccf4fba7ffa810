"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.function_passes.conv.combine_parallel_conv2d",
        "tiered.function_passes.conv.conv_to_matmul",
        "tiered.function_passes.conv.eliminate_zero_bias",
        "tiered.function_passes.conv.fuse_bias_add",
        "tiered.function_passes.conv.fuse_bn_into_conv",
        "tiered.function_passes.conv.fuse_conv_activation",
        "tiered.function_passes.conv.fuse_pad_into_conv",
        "tiered.function_passes.conv.fuse_residual_into_conv",
    )
