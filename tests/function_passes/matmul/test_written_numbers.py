"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.function_passes.matmul.combine_parallel_batch_matmul",
        "tiered.function_passes.matmul.combine_parallel_dense",
        "tiered.function_passes.matmul.decompose_gemm",
        "tiered.function_passes.matmul.fuse_bn_into_gemm",
        "tiered.function_passes.matmul.fuse_gemm",
        "tiered.function_passes.matmul.fuse_gemm_activation",
        "tiered.function_passes.matmul.fuse_matmul_scale",
        "tiered.function_passes.matmul.fuse_narrow_gemm",
        "tiered.function_passes.matmul.fuse_qkv",
        "tiered.function_passes.matmul.fuse_transpose_into_matmul",
        "tiered.function_passes.matmul.replace_einsum_with_matmul",
    )
