"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.function_passes.normalization.batchnorm_workaround",
        "tiered.function_passes.normalization.fuse_affine_into_layernorm",
        "tiered.function_passes.normalization.fuse_embed_layernorm",
        "tiered.function_passes.normalization.fuse_groupnorm",
        "tiered.function_passes.normalization.fuse_instancenorm",
        "tiered.function_passes.normalization.fuse_layernorm",
        "tiered.function_passes.normalization.fuse_rmsnorm",
        "tiered.function_passes.normalization.fuse_skip_layernorm",
        "tiered.function_passes.normalization.fuse_skip_rmsnorm",
        "tiered.function_passes.normalization.replace_bn_with_conv",
        "tiered.function_passes.normalization.replace_bn_with_mul_add",
    )
