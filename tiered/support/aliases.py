"""Other systems' names for our passes, and their passes that ONNX cannot have: two tables.

CamelCase and kebab-case of a canonical name need no entry: `FuseBnIntoConv` and `fuse-bn-into-conv`
are `fuse_bn_into_conv`. An alias may have two passes. All of them exist: an alias is added with its
pass.
"""

from __future__ import annotations

from typing import Final

ALIASES: dict[str, tuple[str, ...]] = {
    # TVM Relay and Relax
    "BatchingOps": (
        "combine_parallel_conv2d",
        "combine_parallel_dense",
        "combine_parallel_batch_matmul",
    ),
    "DeadCodeElimination": ("eliminate_deadend",),
    "DivToMul": ("replace_div_with_mul",),
    "DynamicToStatic": ("trace_folding",),
    "EliminateCommonSubexpression": ("eliminate_common_subexpr",),
    "FoldExplicitPadding": ("fuse_pad_into_conv", "fuse_pad_into_pool"),
    "FastMath": (
        "replace_gelu_with_tanh",
        "replace_erf_with_erfv2",
        "replace_pow_with_roots",
        "replace_div_with_reciprocal",
        "fast_softmax",
        "fast_exp",
        "fast_tanh",
    ),
    "FoldScaleAxis": ("backward_fold_scale_axis", "forward_fold_scale_axis"),
    "InferType": ("infer_shapes",),
    "manual_sharding": ("rewrite_annotated_ops",),
    "InlineGlobals": ("inline",),
    "OpAlteration": ("alter_op_layout",),
    "OpFusion": ("fuse_ops",),
    "PartialEval": ("partial_evaluate", "eliminate_nop_if"),
    "PeepholeOptimizer": ("convert_layout",),
    "SimplifyExpr": (
        "eliminate_nop_arithmetic",
        "eliminate_nop_cast",
        "fuse_consecutive_reshape",
        "fuse_consecutive_transpose",
    ),
    "SimplifyExprPostAlterOp": ("fuse_consecutive_reshape", "fuse_consecutive_transpose"),
    "SimplifyFCTranspose": ("fold_constant",),
    "TransposePeephole": ("convert_layout",),
    "PrintIR": ("model_overview",),
    "ToANormalForm": ("topological_sort",),
    "ToANormalFormExpr": ("topological_sort",),
    "ToGraphNormalForm": ("topological_sort", "eliminate_identity"),
    # PopRT
    "constant_folding": ("fold_constant",),
    "erf_gelu_pattern": ("fuse_gelu",),
    "fused_attention": ("fuse_qkv",),
    "gelu_pattern": ("fuse_gelu",),
    "layer_norm_pattern": ("fuse_layernorm", "fuse_affine_into_layernorm"),
    "remove_duplicated_initializer": ("eliminate_duplicate_initializer",),
    "shape_inference": ("infer_shapes",),
    "legalize_topk_axis": ("normalize_axes",),
    "topk_workaround": ("normalize_axes",),
    "sort_graph": ("topological_sort",),
    "cumsum_workaround": ("legalize_cumsum",),
    "indices_workaround": ("legalize_indices",),
    "float_ops_workaround": ("legalize_float_ops",),
    "replace_einsum": ("replace_einsum_with_matmul",),
    "merge_matmul": ("combine_parallel_dense",),
    "merge_matmul_add": ("combine_parallel_dense",),
    "remove_empty_concat_inputs": ("eliminate_nop_concat",),
    "normalize_batch_norm": ("batchnorm_workaround",),
    "Float2FP8": ("float_to_fp8",),
    "fuse_mul_into_matmul": ("backward_fold_scale_axis", "forward_fold_scale_axis"),
    "replace_castlike": ("replace_castlike_with_cast",),
    "ReplaceClipInputs": ("replace_clip_empty_inputs",),
    "replace_gemm_with_matmul": ("decompose_gemm",),
    "Float2Half": ("float_to_half",),
    "Float2Mixed": ("float_to_mixed",),
    "ReplaceConsecuiveCastWithNotZero": ("replace_consecutive_cast_with_notzero",),  # misspelled
    "SerializeMatMul": ("serialize_matmul",),
    "SerializeMatMulAdd": ("serialize_matmul_add",),
    "rewrite_input_dtype": ("eight_bits_io",),
    # PPQ
    "format_int64_constant": ("int64_to_int32",),
    "convert_to_tensor": ("attribute_to_input",),
    "format_pad": ("attribute_to_input",),
    "format_slice": ("attribute_to_input",),
    "delete_isolated": ("eliminate_deadend", "eliminate_unused_initializer"),
    "format_clip": ("replace_clip_empty_inputs",),
    "format_constant_input": ("extract_constant_to_initializer",),
    "fuse_bn": ("fuse_bn_into_conv", "fuse_bn_into_gemm"),
    "remove_constant_input": ("extract_constant_to_initializer",),
    "remove_identity": ("eliminate_identity",),
    "fuse_matmul_add": ("fuse_gemm",),
    "fuse_selfattention": ("fuse_attention",),
    "replace_batchnorm_to_conv": ("replace_bn_with_conv",),
    "replace_batchnorm_to_scale": ("replace_bn_with_mul_add",),
    "tracing_operation_mata": ("infer_shapes",),
    "tracing_operation_meta": ("infer_shapes",),
    # ExecuTorch
    "RemoveDetachPass": ("eliminate_identity",),
    "ScalarToTensorPass": ("attribute_to_input",),
    # onnx-passes and the passes of onnx-ir
    "convert_attributes_to_inputs": ("attribute_to_input",),
    "AbsorbLayouts": ("convert_layout",),
    "ConvertVersion": ("convert_opset",),
    "InjectOps": ("import_qonnx",),
    "checker": ("final_check",),
    "ImportQONNX": ("import_qonnx",),
    "inline_batchnorm": ("replace_bn_with_mul_add",),
    "model_checker": ("final_check",),
    "convert_layouts": ("convert_layout",),
    "verifier": ("final_check",),
    "ConvertDivToMul": ("replace_div_with_mul",),
    "DeduplicateInitializers": ("eliminate_duplicate_initializer",),
    "EliminateIdentityAdd": ("eliminate_nop_arithmetic",),
    "EliminateIdentityCast": ("eliminate_nop_cast",),
    "EliminateIdentityCastLike": ("eliminate_nop_cast",),
    "EliminateIdentityDiv": ("eliminate_nop_arithmetic",),
    "EliminateIdentityMul": ("eliminate_nop_arithmetic",),
    "EliminateIdentitySub": ("eliminate_nop_arithmetic",),
    "FoldConstantShape": ("trace_folding",),
    "FoldConstantSize": ("trace_folding",),
    "FoldConstants": ("fold_constant",),
    "FuseReshape": ("fuse_consecutive_reshape",),
    "FuseTranspose": ("fuse_consecutive_transpose",),
    "GiveUniqueNames": ("unique_name_for_nodes",),
    "InlineBatchNormalization": ("replace_bn_with_mul_add",),
    "InlineFunctions": ("inline",),
    "InlineGemm": ("decompose_gemm",),
    "LiftConstants": ("extract_constant_to_initializer",),
    "LiftConstantsToInitializers": ("extract_constant_to_initializer",),
    "LiftSubgraphInitializersToMainGraph": ("move_subgraph_initializer",),
    "RemoveInitializersFromInputs": ("remove_initializer_from_input",),
    "RemoveUnusedNodes": ("eliminate_deadend",),
    "InlineBipolarQuant": ("import_qonnx", "inline"),
    "InlineMultiThreshold": ("import_qonnx", "inline"),
    "InlineQuant": ("import_qonnx", "inline"),
    "InlineTrunc": ("import_qonnx", "inline"),
    # QONNX and FINN
    "AbsorbAddIntoMultiThreshold": ("fuse_affine_into_threshold",),
    "AbsorbMulIntoMultiThreshold": ("fuse_affine_into_threshold",),
    "BatchNormToAffine": ("replace_bn_with_mul_add",),
    "CollapseRepeatedAdd": ("group_constants",),
    "CollapseRepeatedMul": ("group_constants",),
    "GemmToMatMul": ("decompose_gemm",),
    "InferDataTypes": ("range_annotation",),
    "MoveAddPastConv": ("sink_offset_past_product",),
    "MoveMulPastDWConv": ("sink_scale_past_product",),
    "MoveMulPastMaxPool": ("sink_scale_past_maximum",),
    "MoveScalarAddPastMatMul": ("sink_offset_past_product",),
    "MoveScalarLinearPastInvariants": ("sink_affine_past_move",),
    "MoveScalarMulPastConv": ("sink_scale_past_product",),
    "MoveScalarMulPastMatMul": ("sink_scale_past_product",),
    "QCDQToQuant": ("convert_qdq_to_qonnx",),
    "QuantToQCDQ": ("convert_qonnx_to_qdq",),
    "RoundAndClipThresholds": ("round_thresholds",),
    # onnxoptimizer, onnxsim, onnxslim
    "eliminate_consecutive_idempotent_ops": ("eliminate_idempotent",),
    "eliminate_duplicate_initializers": ("eliminate_duplicate_initializer",),
    "eliminate_if_with_const_cond": ("eliminate_nop_if",),
    "eliminate_nop_dropout": ("simplify_inference",),
    "eliminate_nop_with_unit": ("eliminate_nop_arithmetic",),
    "eliminate_shape_gather": ("trace_folding",),
    "eliminate_shape_op": ("trace_folding",),
    "fuse_add_bias_into_conv": ("fuse_bias_add",),
    "fuse_consecutive_concats": ("fuse_consecutive_concat",),
    "fuse_consecutive_reduce_unsqueeze": ("fuse_unsqueeze_into_reduce",),
    "fuse_consecutive_slices": ("fuse_consecutive_slice",),
    "fuse_consecutive_squeezes": ("fuse_consecutive_squeeze",),
    "fuse_consecutive_transposes": ("fuse_consecutive_transpose",),
    "fuse_consecutive_unsqueezes": ("fuse_consecutive_unsqueeze",),
    "fuse_matmul_add_bias_into_gemm": ("fuse_gemm",),
    "extract_constant": ("extract_constant_to_initializer",),
    "set_unique_name_for_nodes": ("unique_name_for_nodes",),
    # Names for the same thing elsewhere
    "inline_once": ("inline",),
    "verify_tolerance": ("check_with_fake_data",),
}

_NO_CONTINUATIONS: Final = (
    "functions take and return tensors, not functions, so none can get a continuation as an "
    "argument. The nearest pass is sink_into_if, which moves what follows an If into both branches"
)
_NO_CONTINUATIONS_TO_REMOVE: Final = (
    "functions take no continuations, so there are none to remove. The nearest pass is "
    "hoist_from_if, which moves what both branches of an If compute out of it"
)
NO_EQUIVALENT: Final[dict[str, str]] = {
    "ToCPS": _NO_CONTINUATIONS,
    "UnCPS": _NO_CONTINUATIONS_TO_REMOVE,
    "to_cps": _NO_CONTINUATIONS,
    "un_cps": _NO_CONTINUATIONS_TO_REMOVE,
    "ToBasicBlockNormalForm": (
        "a graph has no let expressions. The nearest pass is topological_sort"
    ),
    **dict.fromkeys(
        ("AnnotateSpans", "CapturePostDfsIndexInSpans"),
        "nodes have names and metadata, and no spans. The nearest pass is unique_name_for_nodes",
    ),
    "FlattenNestedTuples": "nodes have several outputs, and no tuples. The nearest pass is inline",
    "FlattenAtrousConv": (
        "a convolution has dilations, so exporters write no SpaceToBatch around it. The nearest "
        "pass is fuse_pad_into_conv"
    ),
    "ManifestLifetimes": (
        "tensors have no lifetimes in a graph. The nearest is tiered.extensions.memory, and the "
        "pass schedule orders nodes for the lowest peak"
    ),
    "Defunctionalization": "graphs pass no functions as values. The nearest pass is inline",
    "InferCorrectLayout": (
        "it is no pass but a property of an operator. The nearest is tiered.layout_rule, which "
        "registers one; convert_layout uses it"
    ),
}
"""Why another system has a pass that ONNX cannot have, and the nearest pass."""


def no_equivalent(name: str) -> str:
    """Return the message for a name of `NO_EQUIVALENT`."""
    return f"{name} has no equivalent in ONNX: {NO_EQUIVALENT[name]}"
