"""The numbers that the modules of this folder write down."""

from tests.written_numbers import assert_numbers


def test_limits_tables_and_defaults_are_those_that_are_recorded() -> None:
    assert_numbers(
        __file__,
        "tiered.function_passes.quantization.convert_qdq_to_qonnx",
        "tiered.function_passes.quantization.convert_qonnx_to_qdq",
        "tiered.function_passes.quantization.eliminate_q_dq_pair",
        "tiered.function_passes.quantization.fold_quantize",
        "tiered.function_passes.quantization.fuse_blocks_into_matmul",
        "tiered.function_passes.quantization.fuse_clip_into_quantize",
        "tiered.function_passes.quantization.fuse_dequantize_into_matmul",
        "tiered.function_passes.quantization.fuse_dynamic_quantize_matmul",
        "tiered.function_passes.quantization.fuse_qdq_into_binary",
        "tiered.function_passes.quantization.fuse_qdq_into_concat",
        "tiered.function_passes.quantization.fuse_qdq_into_conv",
        "tiered.function_passes.quantization.fuse_qdq_into_gemm",
        "tiered.function_passes.quantization.fuse_qdq_into_matmul",
        "tiered.function_passes.quantization.fuse_qdq_into_move",
        "tiered.function_passes.quantization.fuse_qdq_into_pool",
        "tiered.function_passes.quantization.fuse_qdq_into_softmax",
        "tiered.function_passes.quantization.fuse_qdq_into_unary",
        "tiered.function_passes.quantization.fuse_qdq_into_where",
        "tiered.function_passes.quantization.fuse_scale_into_matmul_integer",
        "tiered.function_passes.quantization.fuse_unsqueeze_into_dequantize",
        "tiered.function_passes.quantization.hoist_quantize",
        "tiered.function_passes.quantization.hoist_quantize_past_split",
        "tiered.function_passes.quantization.replace_contrib_quantize",
        "tiered.function_passes.quantization.replace_int8_with_uint8",
        "tiered.function_passes.quantization.replace_uint8_with_int8",
        "tiered.function_passes.quantization.sink_dequantize",
        "tiered.function_passes.quantization.sink_dequantize_past_concat",
        "tiered.function_passes.quantization.sink_dequantize_past_maximum",
        "tiered.function_passes.quantization.sink_dequantize_past_split",
    )
