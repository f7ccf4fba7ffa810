"""The default pipeline: which passes, in which order, and why there.

The order is a decision, so it is written down: one tuple, one why per line. A line is pipeline text
without globs. Each pass runs from its own level on; opt-in passes are parked where they would run,
until a context requires them.
"""

from __future__ import annotations

import functools

from tiered.pipeline.base import NAMED
from tiered.pipeline.sequential import Sequential

DEFAULT: tuple[str, ...] = (
    # Parked: what changes the interface, before anything relies on it.
    "remove_initializer_from_input",
    "const_input_shape",
    "const_batch_size",
    "truncate_on_var",
    # Order and names that every runtime takes: sorted, and no name twice.
    "topological_sort",
    "unique_name_for_nodes{unnamed=false}",
    # What nothing calls need not be looked at.
    "remove_unused_functions",
    # Everything after it sees one flat graph; what it leaves uncalled goes with it.
    "inline",
    # Nearly every guard asks for dtypes and shapes.
    "infer_shapes",
    # What only training needs goes first: a Dropout hides what stands on both sides of it.
    "batchnorm_workaround",
    "simplify_inference",
    "eliminate_identity",
    # Nothing later need look at what is dead already.
    "eliminate_deadend",
    # One form of constant, as far out as it can stand, and each of them once.
    "extract_constant_to_initializer",
    "move_subgraph_initializer",
    "eliminate_duplicate_initializer",
    # Parked: the inverse of the pass above, for those who change weights one by one.
    "format_parameter",
    # One way to write an operand, so that the patterns below need one form.
    "normalize_axes",
    "replace_clip_empty_inputs",
    "replace_castlike_with_cast",
    # What is merged, fused or lowered late may make new work for all before it: a second run of the
    # pipeline finds nothing, whatever the level and the target.
    "fix("
    # Layouts look at what fusions have left, and may make new work for all before them.
    "fix("
    # Fusions look at what exact algebra has left nothing to do for, and may make new work for it.
    "fix("
    # Each makes work for the others, so they run until nothing changes.
    "fix("
    # Casts, before the shapes and values behind them are asked for.
    "eliminate_nop_cast,fuse_consecutive_cast,eliminate_cast_before_shape,"
    # Shapes: what changes none goes, what changes one twice changes it once.
    "eliminate_nop_reshape,eliminate_nop_flatten,eliminate_nop_expand,eliminate_nop_tile,"
    "eliminate_nop_squeeze,eliminate_squeeze_unsqueeze,"
    "fuse_consecutive_reshape,fuse_consecutive_squeeze,fuse_consecutive_unsqueeze,"
    "eliminate_reshape_around_elementwise,eliminate_reshape_around_matmul,"
    "eliminate_nop_pad,eliminate_nop_transpose,fuse_consecutive_transpose,"
    "eliminate_transpose_around_elementwise,"
    # Parts and wholes.
    "eliminate_nop_slice,fuse_consecutive_slice,eliminate_nop_gather,eliminate_nop_scatter,"
    "eliminate_nop_split,"
    "eliminate_nop_concat,fuse_consecutive_concat,eliminate_split_concat,eliminate_sequence,"
    # Operators of any number of operands, and reductions with the squeezes around them.
    "eliminate_nop_variadic,fuse_consecutive_minmax,"
    "fuse_unsqueeze_into_reduce,fuse_squeeze_into_reduce,eliminate_nop_reduce,"
    # Values: what shapes or constants determine.
    "trace_folding,fuse_cast_into_constantofshape,fold_constant,"
    # Control flow whose condition is constant by now; it opens bodies to all of the above.
    "eliminate_nop_if,partial_evaluate,eliminate_where,fuse_not_into_where,"
    # Exact algebra, when its constants are known.
    "eliminate_nop_arithmetic,eliminate_idempotent,replace_pow{cubes=false},replace_div_with_mul,"
    "fuse_consecutive_clip,fuse_expand_into_binary,fuse_cast_into_onehot,"
    "eliminate_zero_bias,eliminate_zero_state,eliminate_q_dq_pair,fuse_clip_into_quantize,"
    # After folding, when equal operands are one value; before fusion, which it makes match more.
    "extract_constant_to_initializer,move_subgraph_initializer,eliminate_duplicate_initializer,"
    "eliminate_common_subexpr,"
    # What became an alias, types that are known better now, and with them axes, for the next round.
    "eliminate_identity,infer_shapes,normalize_axes),"
    # One way to write an operator, so that each fusion needs few patterns.
    "canonicalize_ops,replace_einsum_with_matmul,"
    # What exporters spell out, into the operator of that name, before anything moves its scales.
    # Pictures first: of their two last dims a layer norm could be too.
    "fuse_instancenorm,fuse_groupnorm,fuse_layernorm,fuse_rmsnorm,fuse_softmax,fuse_log_softmax,"
    "fuse_consecutive_mask,fuse_attention,fuse_rotary_embedding,"
    # Norms are known by their reciprocal roots; what is left of these divides.
    "fuse_reciprocal_into_div,"
    # Activations, and what runtimes fuse with the operator before it. A swish is opt-in: it is
    # slower than its parts.
    "fuse_gelu,fuse_silu,fuse_hardswish,fuse_mish,fuse_minmax_into_clip,fuse_hardsigmoid,"
    # A bias has its place in the operator; so what scales and shifts it finds one to change.
    "fuse_bias_add,fuse_gemm,"
    "fuse_bn_into_conv,fuse_bn_into_gemm,fuse_pad_into_conv,fuse_pad_into_pool,"
    # Parked: two operators for one, for those who move scales on; a convolution, for those who have
    # little else.
    "replace_bn_with_mul_add,replace_bn_with_conv,"
    # What is repeated is computed before.
    "post_expand"
    "),"
    # After fusion, which leaves fewer operators to pass; what it permutes is constant by now. A
    # Transpose that stays, as others read it too, is bypassed by products that runtimes get wrong.
    "convert_layout,fuse_transpose_into_matmul"
    "),"
    # Scales go into weights once the fusions have had their patterns, those of scores by way of the
    # queries; backward first, as what it leaves may still go forward.
    "pre_scale,"
    "backward_fold_scale_axis,"
    "forward_fold_scale_axis,"
    # What stood behind a Transpose or a scale stands behind the operator now.
    "fix(fuse_bias_add,fuse_bn_into_conv,fuse_pad_into_conv,fuse_pad_into_pool,"
    "fuse_minmax_into_clip,fuse_rotary_embedding,eliminate_squeeze_unsqueeze),"
    # Heads of targets that have an operator for them: with what is past, with what projects them,
    # or else with what splits them; before their projections become one.
    "fuse_group_query_attention,"
    "fuse_past_into_attention,"
    "fuse_qkv_into_attention,"
    "fuse_multi_head_attention,"
    # Branches that do the same side by side, when scales, biases and norms are in their weights;
    # heads before what leaves them apart.
    "fuse_qkv,"
    "combine_parallel_conv2d,"
    "combine_parallel_dense,"
    "combine_parallel_batch_matmul,"
    # Last of all that changes results: what is close enough, but not the same.
    "replace_gelu_with_tanh,"
    "replace_pow_with_roots,"
    "replace_div_with_reciprocal,"
    # Integers without a sign, for targets that multiply those faster, before operators of them.
    "replace_int8_with_uint8,"
    # Operators of integers for targets that want them: what moves integers first, so that others
    # stand next to what they read; of a product whose result is not quantised last.
    "fuse_qdq_into_move,"
    "fuse_qdq_into_conv,"
    "fuse_qdq_into_matmul,"
    "fuse_qdq_into_gemm,"
    "fuse_qdq_into_binary,"
    "fuse_qdq_into_unary,"
    "fuse_qdq_into_pool,"
    "fuse_qdq_into_concat,"
    # Parked: their kernels for integers take longer than those for floats.
    "fuse_qdq_into_softmax,"
    "fuse_qdq_into_where,"
    "fuse_dequantize_into_matmul,"
    # Parked: onnxruntime's own optimiser does it faster, where 8 bits of x are enough.
    "fuse_blocks_into_matmul,"
    "fuse_dynamic_quantize_matmul,"
    # What reads integers that others read too, or that come from outside.
    "fuse_scale_into_matmul_integer,"
    # What only some targets have, when nothing is left that looks for the parts: residual and norm,
    # bias and activation, operator and activation, and what is left of transpose and scale and
    # product. Opt-in are a norm with its sum or with what it looks up, and a convolution with its
    # sum: they are slower than their parts.
    "fuse_embed_layernorm,"
    "fuse_skip_layernorm,"
    "fuse_skip_rmsnorm,"
    "fuse_bias_gelu,"
    "fuse_quick_gelu,"
    "fuse_residual_into_conv,"
    "fuse_conv_activation,"
    "fuse_gemm_activation,"
    "fuse_matmul_scale,"
    # What looks for a product and its bias has found them.
    "fuse_narrow_gemm,"
    # Fusions and layouts know Slices; nothing is left that looks for them.
    "fuse_slices_into_split,"
    # Parked: for targets that have no convolution, no Sigmoid, no pool of whole pictures; and sums
    # of constants, which lose what is small beside them.
    "conv_to_matmul,"
    "lower_sigmoid,"
    "explicit_global_pool,"
    "group_constants,"
    # Parked: they pay only on targets that have no Erf, or that fuse attention with an added mask.
    "replace_erf_with_erfv2,"
    "replace_where_mask,"
    # What a backend wants in another layout is a function from here on, which no other pass knows.
    "alter_op_layout"
    ")",
    # Parked: for targets that have no Gemm, which the fixed point would make again.
    "decompose_gemm",
    # What the weights and parts that they made have in common, in bodies too.
    "fold_constant",
    "eliminate_nop_arithmetic",
    "move_subgraph_initializer",
    "eliminate_duplicate_initializer",
    "eliminate_common_subexpr",
    # Parked: its inverse for casts, for targets that compile regions.
    "canonicalize_cast",
    # Ends that nothing reads any more, and what only they needed.
    "eliminate_deadend",
    "eliminate_unused_initializer",
    "remove_unused_functions",
    "remove_unused_opsets",
    # Parked: sizes of outputs that follow from those of the inputs, once all types are known.
    "const_output_shape",
    # Last: what leaves this pipeline is valid, or the error says which promise was broken.
    "final_check",
)


@functools.cache
def default_pipeline() -> Sequential:
    """Return the default pipeline, opt-ins parked; edits make new ones.

    Raises:
        PassNotFoundError: a line names a pass that does not exist.
    """
    return Sequential(DEFAULT, name="default", opt_ins="parked")


NAMED["default"] = default_pipeline
