"""The default pipeline: which passes, in which order, and why there.

The order is a decision, so each place has its reason. Each pass runs from its own level on. Opt-in
passes are parked: they run at their place, but only if a context requires them. A comment is about
the lines below it, up to the next comment or blank line.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from tiered.pipeline.fixpoint import Fixpoint
from tiered.pipeline.pipeline_base import NAMED
from tiered.pipeline.sequential import Sequential

if TYPE_CHECKING:
    from tiered.passes import PassLike


def _sequence(*passes: PassLike) -> Sequential:
    return Sequential(passes, name="default", opt_ins="parked")


def _fix(*passes: PassLike) -> Fixpoint:
    return Fixpoint(passes)


@functools.cache
def default_pipeline() -> Sequential:
    """Return the default pipeline, opt-ins parked; edits make new ones.

    Raises:
        PassNotFoundError: a line names a pass that does not exist.
    """
    return _sequence(
        # Parked. They change the interface, before any other pass relies on it.
        "remove_initializer_from_input",
        "const_input_shape",
        "const_batch_size",
        "change_batch",
        "truncate_on_var",
        # Parked. A part of the model, and tensors to look at: by the names that the file has.
        "extract",
        "merge_models",
        "add_checkpoints",
        # Parked: more outputs, computed backwards; then the zeros and ones that they start from.
        "gradient",
        "lazy_gradient_init",
        # Parked: rows of several sequences, before attentions are fused.
        "packed_transformer",
        # Parked. What callers feed and get: dtypes, layouts, names, order. Unused inputs go last.
        "remove_input_cast",
        "eight_bits_io",
        "io_layout",
        "rename",
        "reorder",
        "drop_unused_inputs",

        # An order and names that every runtime accepts: sorted, and each name once.
        "topological_sort",
        "unique_name_for_nodes{unnamed=false}",

        # The passes below need not look at functions without a call.
        "remove_unused_functions",
        # Parked: constants go into functions, for users who keep these.
        "specialize_functions",
        # All passes below see one flat graph; it also removes the functions that it inlined.
        "inline",
        # Nearly every guard asks for dtypes and shapes.
        "infer_shapes",
        # Parked. They change the opset, for all passes below; calls are inlined and types known.
        "eliminate_allowzero",
        "convert_opset",
        "attribute_to_input",

        # Operators for training go first: a Dropout separates operators that could be fused.
        "batchnorm_workaround",
        "simplify_inference",
        "eliminate_identity",
        # No pass below need look at dead nodes.
        "eliminate_deadend",

        # One form of constant, in the outermost graph that can hold it, and each value once.
        "extract_constant_to_initializer",
        "move_subgraph_initializer",
        "eliminate_duplicate_initializer",
        # Parked: the inverse of the pass above, for users who change weights one by one.
        "format_parameter",

        # One form of operand, so that the patterns below need only that form.
        "normalize_axes",
        "replace_clip_empty_inputs",
        "replace_castlike_with_cast",

        # Parked: what follows an If goes into its branches, where it may become simpler, or back.
        "sink_into_if",
        "hoist_from_if",

        # Merging, fusing and lowering below may enable any pass above them: with this fixed point,
        # a second run of the pipeline changes nothing, at every level and for every target.
        _fix(
            # Layouts follow fusions, and may enable all passes before them.
            _fix(
                # Fusions follow exact algebra, and may enable it.
                _fix(
                    # Exact algebra: each pass may enable the others.
                    _fix(
                        # Casts first: the passes below ask for the shapes and values behind them.
                        "eliminate_nop_cast",
                        "fuse_consecutive_cast",
                        "eliminate_cast_before_shape",

                        # Operators that keep the shape go; two that change it become one.
                        "eliminate_nop_reshape",
                        "eliminate_nop_flatten",
                        "eliminate_nop_expand",
                        "eliminate_nop_tile",
                        "eliminate_nop_squeeze",
                        "eliminate_squeeze_unsqueeze",
                        "fuse_consecutive_reshape",
                        "fuse_squeeze_into_reshape",
                        "fuse_consecutive_squeeze",
                        "fuse_consecutive_unsqueeze",
                        "fuse_consecutive_flatten",
                        "eliminate_reshape_around_elementwise",
                        "eliminate_reshape_around_matmul",
                        "eliminate_nop_pad",
                        "eliminate_nop_trilu",
                        "eliminate_nop_transpose",
                        "fuse_consecutive_transpose",
                        "eliminate_transpose_around_elementwise",

                        # Slices, gathers, splits and concatenations.
                        "eliminate_nop_slice",
                        "fuse_consecutive_slice",
                        "replace_slice_with_gather",
                        "eliminate_nop_gather",
                        "fuse_consecutive_gather",
                        "fuse_slice_into_gather",
                        "fuse_transpose_into_gather",
                        "fuse_concat_into_slice",
                        "fuse_tile_into_gather",
                        "eliminate_nop_scatter",
                        "eliminate_nop_split",
                        "replace_lone_split_with_slice",
                        "eliminate_nop_concat",
                        "fuse_consecutive_concat",
                        "eliminate_split_concat",
                        "eliminate_sequence",

                        # Variadic operators, and reductions with the squeezes around them.
                        "eliminate_nop_variadic",
                        "fuse_consecutive_minmax",
                        "fuse_unsqueeze_into_reduce",
                        "fuse_squeeze_into_reduce",
                        "fuse_reshape_into_reduce",
                        "eliminate_nop_reduce",

                        # Values that follow from shapes or constants.
                        "trace_folding",
                        "fuse_cast_into_constantofshape",
                        "fold_constant",

                        # Conditions are constant by now; bodies become open to the passes above.
                        "eliminate_nop_if",
                        "partial_evaluate",
                        "eliminate_where",
                        "fuse_not_into_where",

                        # Algebra with the constants that are known by now.
                        "eliminate_nop_arithmetic",
                        "eliminate_idempotent",
                        "eliminate_same_operands",
                        "replace_pow{cubes=false}",
                        "replace_div_with_mul",
                        "fuse_consecutive_clip",
                        "replace_tile_with_expand",
                        "fuse_expand_into_binary",
                        "fuse_cast_into_onehot",
                        "eliminate_zero_bias",
                        "eliminate_zero_state",
                        # Before all passes that know the standard operators only.
                        "replace_contrib_quantize",
                        "eliminate_q_dq_pair",
                        "fuse_unsqueeze_into_dequantize",
                        "fuse_clip_into_quantize",

                        # After folding, when equal operands are one value; before fusions, as
                        # shared values let more of them match.
                        "extract_constant_to_initializer",
                        "move_subgraph_initializer",
                        "eliminate_duplicate_initializer",
                        "eliminate_common_subexpr",
                        # When equal dims are one value, of which each has its consumers.
                        "fuse_gather_into_shape",

                        # For the next round: no aliases, better types, and axes that need them.
                        "eliminate_identity",
                        "infer_shapes",
                        "normalize_axes",
                    ),

                    # One form of each operator, so that fusions need few patterns.
                    "canonicalize_ops",
                    "replace_einsum_with_matmul",
                    # Before layouts, which would take the Transpose apart from its Reshapes.
                    "fuse_space_to_depth",

                    # Operators that exporters decompose, before any pass moves their scales.
                    # Images first: their two last dims would match a layer norm too.
                    "fuse_instancenorm",
                    "fuse_groupnorm",
                    "fuse_layernorm",
                    "fuse_affine_into_layernorm",
                    "fuse_rmsnorm",
                    # After norms, whose epsilon may be 0.
                    "eliminate_zero_addend",
                    "fuse_softmax",
                    "fuse_log_softmax",
                    "eliminate_addend_before_softmax",
                    "fuse_consecutive_mask",
                    "fuse_attention",
                    "fuse_rotary_embedding",
                    # After norms, whose patterns contain reciprocal roots.
                    "fuse_reciprocal_into_div",

                    # Activations, which runtimes fuse with their producer. A swish is opt-in: it
                    # is slower than its parts.
                    "fuse_gelu",
                    "fuse_silu",
                    "fuse_hardswish",
                    "fuse_mish",
                    "fuse_minmax_into_clip",
                    "fuse_hardsigmoid",

                    # A bias goes into its operator, where the passes for scales below find it.
                    "fuse_bias_add",
                    "fuse_gemm",
                    "fuse_bn_into_conv",
                    "fuse_bn_into_gemm",
                    "fuse_pad_into_conv",
                    "fuse_pad_into_pool",

                    # After fusions, whose patterns have no minus, and several sums and products.
                    "fuse_neg",
                    "fuse_neg_into_sub",
                    "fuse_consecutive_add",
                    "fuse_consecutive_scale",
                    # After norms and pools, which look for the dims that are reduced.
                    "eliminate_reshape_before_reduce",

                    # Parked: two operators instead of one, for passes that move scales; and a
                    # convolution, for targets with few operators.
                    "replace_bn_with_mul_add",
                    "replace_bn_with_conv",

                    # Repeats are computed ahead of time.
                    "post_expand",
                ),

                # After fusions, which leave fewer operators to pass; permutations are constant by
                # now. Products that runtimes get wrong bypass a Transpose with other consumers.
                "convert_layout",
                "fuse_transpose_into_matmul",
                "eliminate_reshape_around_rows",
            ),

            # Scales go into weights after the fusions that match them, those of scores by way of
            # the queries; backward first, as the scales that it leaves may still go forward.
            "pre_scale",
            "backward_fold_scale_axis",
            "forward_fold_scale_axis",
            # The consumers of a removed Transpose or scale follow the operator directly now.
            _fix(
                "fuse_bias_add",
                "fuse_bn_into_conv",
                "fuse_pad_into_conv",
                "fuse_pad_into_pool",
                "fuse_minmax_into_clip",
                "fuse_rotary_embedding",
                "eliminate_squeeze_unsqueeze",
            ),

            # Attention operators of targets that have them: with the past, with the projections,
            # else with the split into heads; before their projections become one.
            "fuse_group_query_attention",
            "fuse_past_into_attention",
            "fuse_qkv_into_attention",
            "fuse_multi_head_attention",

            # Parallel branches, when scales, biases and norms are in their weights; heads first,
            # as the passes for products would leave them apart.
            "fuse_qkv",
            "combine_parallel_conv2d",
            "combine_parallel_dense",
            "combine_parallel_batch_matmul",
            # After what fuses projections with their biases.
            "eliminate_key_bias",
            "fuse_value_bias",

            # Approximations, after all passes that keep the results within rounding.
            "replace_gelu_with_tanh",
            "replace_pow_with_roots",
            "replace_div_with_reciprocal",

            # Unsigned integers, for targets that multiply them faster; before integer operators.
            "replace_int8_with_uint8",

            # Integer operators, for targets that want them. Data movement first, so that the other
            # operators are next to their producers; products with a float result last.
            "fuse_qdq_into_move",
            "fuse_qdq_into_conv",
            "fuse_qdq_into_matmul",
            "fuse_qdq_into_gemm",
            "fuse_qdq_into_binary",
            "fuse_qdq_into_unary",
            "fuse_qdq_into_pool",
            "fuse_qdq_into_concat",
            # Parked: their integer kernels are slower than the float ones.
            "fuse_qdq_into_softmax",
            "fuse_qdq_into_where",
            "fuse_dequantize_into_matmul",
            # Parked: onnxruntime's optimiser does this faster if 8 bits of x are enough.
            "fuse_blocks_into_matmul",
            "fuse_dynamic_quantize_matmul",
            # Products of integers with other consumers, or from outside.
            "fuse_scale_into_matmul_integer",

            # Operators of some targets only, when no pass below looks for their parts: residual
            # and norm, bias and activation, operator and activation, transpose and scale and
            # product. A norm with its sum or its embedding, and a convolution with its sum, are
            # opt-in: they are slower than their parts.
            "fuse_embed_layernorm",
            "fuse_skip_layernorm",
            "fuse_skip_rmsnorm",
            "fuse_bias_gelu",
            "fuse_quick_gelu",
            "fuse_residual_into_conv",
            "fuse_conv_activation",
            "fuse_gemm_activation",
            "fuse_matmul_scale",
            # After all fusions of a product with its bias.
            "fuse_narrow_gemm",
            # After fusions and layouts, which match Slices, Expands and Transposes.
            "fuse_slices_into_split",
            "hoist_slice",
            "fuse_slice_into_expand",
            "sink_expand",
            "fuse_view_into_binary",
            "replace_transpose_with_reshape",

            # Parked: for targets without convolution, Sigmoid or global pool; and sums of
            # constants, in which small ones may vanish beside large ones.
            "conv_to_matmul",
            "lower_sigmoid",
            "explicit_global_pool",
            "group_constants",
            # Parked: they pay only on targets without Erf, without exponentials, or with attention
            # with an added mask.
            "replace_erf_with_erfv2",
            "replace_sigmoid_with_hardsigmoid",
            "replace_where_mask",
            # Parked: polynomials, many times slower than the kernels of onnxruntime.
            "fast_softmax",
            "fast_exp",
            "fast_tanh",
            # Operators in the layout of the backend become functions, unknown to other passes.
            "alter_op_layout",
        ),

        # What a named target refuses, when no pass is left that fuses it again; ranks first, as
        # they may leave an operator of a rank that it takes. And integers without a sign.
        "replace_uint8_with_int8",
        "legalize_rank",
        "legalize{numerics=reassociating}",
        "legalize",
        "legalize{numerics=approximate}",
        # Bodies of operators have constants on the left.
        "canonicalize_ops",

        # Parked: for targets that do not look for the axes themselves.
        "fill_squeeze_axes",

        # Parked: the rules that `legalize` applies to single nodes, for all of their nodes.
        "insert_attention_mask",
        "matmul_rotary_embedding",
        "replace_celu",
        "replace_hardswish",
        "replace_greater_or_equal",
        "replace_less_or_equal",
        "replace_trilu",
        "replace_matmul_with_gemm",
        "replace_flatten_with_reshape",
        "replace_isnan",
        "replace_neg_with_mul",
        "replace_sum_with_add",
        "replace_mean_with_add",
        "replace_sub_with_add",
        "replace_split_with_slice",
        "replace_strided_slice",
        "replace_interleaved_rotary",
        "replace_reciprocal_with_div",
        "replace_div_by_sqrt_with_pow",
        "replace_expand_with_tile",
        "replace_gather_with_slice",
        "replace_gather_with_gathernd",
        "replace_if_with_where",
        "replace_where_with_mul_add",
        "replace_where_with_gather",
        "replace_consecutive_cast_with_notzero",
        "replace_nonzero",
        "legalize_cumsum",
        "replace_cumsum_with_matmul",
        "legalize_indices",
        "legalize_index_dtype",
        "legalize_float_ops",
        "legalize_half_scatter",
        "lower_conv",
        "lower_pooling",
        "lower_global_pool",
        "lower_layernorm",
        "lower_rmsnorm",
        "lower_groupnorm",
        "lower_instancenorm",
        "lower_lpnormalization",
        "lower_mean_variance",
        "lower_softplus",
        "lower_logsumexp",
        "lower_quantize",
        "lower_qdq_pair",
        "lower_quantized_constant",
        "lower_dequantize",
        # Parked: custom operators, as calls of functions that hold the standard ones.
        "replace_where_with_wherev2",
        "replace_isinf",
        "replace_round",
        "replace_softmax",
        "replace_groupnorm_with_fast_norm",

        # Parked: for targets without Gemm; the fixed point would fuse it again.
        "decompose_gemm",

        # Weights and parts that the passes above made may be foldable or equal, in bodies too; and
        # legalization may have made a Div.
        "fold_constant",
        "replace_div_with_reciprocal",
        "eliminate_nop_arithmetic",
        "move_subgraph_initializer",
        "eliminate_duplicate_initializer",
        "eliminate_common_subexpr",
        # Parked: the inverse of the pass above for casts, for targets that compile regions.
        "canonicalize_cast",
        # Parked: regions as local functions, for the same targets; bodies, single nodes, kernels.
        "lambda_lift",
        "eta_expand",
        "fuse_ops",

        # Nodes without consumers, and their initializers, functions and opsets.
        "eliminate_deadend",
        "eliminate_unused_initializer",
        "remove_unused_functions",
        "remove_unused_opsets",

        # Parked: dims of outputs that follow from those of the inputs, once all types are known.
        "const_output_shape",

        # Parked: what the user asks to see or to compare, of the whole result.
        "model_overview",
        "layer_precision_compare",
        "check_with_fake_data",
        "verify_equality",
        "verify_metric",

        # Parked: a narrower type than float, when no pass is left that computes in it.
        "float_to_half",
        "double_to_float",
        "float_to_bfloat16",
        "float_to_mixed",
        # Parked: what overflows in the type of the passes above.
        "replace_half_reducemean",
        # Parked: some runtimes look for Q and DQ around each operator, and at weights of floats.
        "fold_quantize",
        "sink_dequantize",
        "sink_dequantize_past_concat",
        "sink_dequantize_past_split",
        "sink_dequantize_past_maximum",
        "hoist_quantize",
        "hoist_quantize_past_split",
        # Parked: scales and offsets move towards thresholds, which absorb them; the pipeline
        # `streamline` repeats these passes with the algebra that they need.
        "unbroadcast",
        "factorize",
        "sink_affine_past_move",
        "sink_affine_past_split",
        "sink_affine_past_concat",
        "sink_scale_past_maximum",
        "sink_scale_past_product",
        "sink_offset_past_product",
        "fuse_affine_into_threshold",
        "fuse_affine_into_comparison",
        "round_thresholds",
        "round_thresholds",
        # Parked: types of integers as metadata, by the operators that tell them best.
        "range_annotation",
        # Parked: between the operators of QONNX and of ONNX, before definitions of what is left.
        "convert_qonnx_to_qdq",
        "convert_qdq_to_qonnx",
        # Parked: definitions of operators for runtimes that lack them, of nodes that stay.
        "import_qonnx",
        # Parked: integers of 8 bits, when no pass is left that fuses what is multiplied.
        "quantize",
        "quantize_dynamic",
        # Parked: for targets without int64; it needs all shapes that are known.
        "int64_to_int32",
        # Parked: weights in few bits, when no pass is left that folds or fuses them.
        "weights_to_int8",
        "weights_to_int4",
        "fp8_weight",
        "float_to_fp8",
        # Parked: how far all of that moved the outputs.
        "measure_error",

        # Parked: what a target takes becomes its functions, which no other pass edits.
        "merge_composite",
        "annotate_target",
        "merge_compiler_regions",
        "partition_graph",
        "rewrite_annotated_ops",
        # Parked: hints for the compiler of a chip, on the nodes that remain.
        "auto_insert_remap",
        "overlap_io",

        # Parked: products in parts, when no pass is left that combines them.
        "serialize_matmul_add",
        "serialize_matmul",
        # Parked: what is at the peak in parts, while its nodes have the order of the file.
        "split_by_budget",
        # Parked: the order of the nodes, when no pass is left that makes new ones.
        "schedule",
        # Parked: copies of nodes, for the peak that is left in that order.
        "recompute",
        # Parked: weights that no pass can fold any more.
        "dense_to_sparse",
        # Parked: which file has a weight, when no pass is left that makes new ones.
        "bake_parameters",
        "unbake",

        # Parked: texts that no runtime reads, when no pass is left that makes names.
        "strip",

        # What the file says of values that the passes above made known, where it is false.
        "drop_false_declarations",
        # Last: the result is valid, or the error names the broken promise.
        "final_check",
    )  # fmt: skip


NAMED["default"] = default_pipeline
