"""What `make prove` found of each rule; `--write` writes this table."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple


class Proved(NamedTuple):
    """How a rule is covered.

    Attributes:
        proved: how many of its instances are proved.
        instances: how many it rewrites.
        domain: the weakest domain that was needed.
        reason: why others are not proved; "" if all are.
    """

    proved: int
    instances: int
    domain: Literal["bits", "reals"]
    reason: str = ""

    def __str__(self) -> str:
        how = "bit for bit" if self.domain == "bits" else "bit for bit or over the reals"
        if not self.instances:
            return "no instance is generated"
        if not self.reason:
            return f"each of {self.instances} generated instances is proved {how}"
        if not self.proved:
            return f"none of {self.instances} generated instances is proved: {self.reason}"
        return f"{self.proved} of {self.instances} generated instances are proved: {self.reason}"


PROOFS: Final[dict[str, Proved]] = {
    "alter_op_layout": Proved(5, 5, "bits"),
    "backward_fold_scale_axis": Proved(127, 127, "reals"),
    "batchnorm_workaround": Proved(15, 15, "bits"),
    "canonicalize_ops": Proved(38, 38, "reals"),
    "convert_layout": Proved(74, 74, "reals"),
    "drop_false_declarations": Proved(1, 1, "bits"),
    "eliminate_cast_before_shape": Proved(21, 21, "bits"),
    "eliminate_common_subexpr": Proved(16, 16, "bits"),
    "eliminate_deadend": Proved(41, 41, "bits"),
    "eliminate_duplicate_initializer": Proved(11, 11, "bits"),
    "eliminate_idempotent": Proved(25, 25, "bits"),
    "eliminate_identity": Proved(44, 44, "bits"),
    "eliminate_key_bias": Proved(25, 25, "reals"),
    "eliminate_nop_arithmetic": Proved(32, 32, "bits"),
    "eliminate_nop_cast": Proved(22, 22, "bits"),
    "eliminate_nop_concat": Proved(25, 25, "bits"),
    "eliminate_nop_expand": Proved(18, 18, "bits"),
    "eliminate_nop_flatten": Proved(33, 33, "bits"),
    "eliminate_nop_gather": Proved(13, 13, "bits"),
    "eliminate_nop_if": Proved(39, 39, "bits"),
    "eliminate_nop_pad": Proved(13, 13, "bits"),
    "eliminate_nop_reduce": Proved(33, 33, "bits"),
    "eliminate_nop_reshape": Proved(29, 29, "bits"),
    "eliminate_nop_scatter": Proved(14, 14, "bits"),
    "eliminate_nop_slice": Proved(16, 16, "bits"),
    "eliminate_nop_split": Proved(21, 21, "bits"),
    "eliminate_nop_squeeze": Proved(10, 10, "bits"),
    "eliminate_nop_tile": Proved(10, 10, "bits"),
    "eliminate_nop_transpose": Proved(18, 18, "bits"),
    "eliminate_nop_trilu": Proved(14, 14, "bits"),
    "eliminate_nop_variadic": Proved(40, 40, "bits"),
    "eliminate_q_dq_pair": Proved(19, 19, "bits"),
    "eliminate_reshape_around_elementwise": Proved(20, 20, "bits"),
    "eliminate_reshape_around_matmul": Proved(23, 23, "bits"),
    "eliminate_reshape_around_rows": Proved(16, 16, "bits"),
    "eliminate_same_operands": Proved(20, 20, "bits"),
    "eliminate_sequence": Proved(
        68, 69, "bits",
        "1 of 69 instances: branches of an If that have different shapes",
    ),
    "eliminate_split_concat": Proved(12, 12, "bits"),
    "eliminate_squeeze_unsqueeze": Proved(39, 39, "bits"),
    "eliminate_transpose_around_elementwise": Proved(37, 37, "bits"),
    "eliminate_unused_initializer": Proved(9, 9, "bits"),
    "eliminate_where": Proved(35, 35, "bits"),
    "eliminate_zero_addend": Proved(14, 14, "reals"),
    "eliminate_zero_bias": Proved(10, 10, "bits"),
    "eliminate_zero_state": Proved(22, 22, "bits"),
    "extract_constant_to_initializer": Proved(33, 33, "bits"),
    "fold_constant": Proved(151, 151, "bits"),
    "forward_fold_scale_axis": Proved(39, 39, "reals"),
    "fuse_affine_into_layernorm": Proved(35, 35, "reals"),
    "fuse_attention": Proved(
        26, 49, "reals",
        "masks that are not constant have no definition, as kernels differ where a row is hidden",
    ),
    "fuse_bias_add": Proved(44, 44, "reals"),
    "fuse_bias_gelu": Proved(12, 12, "reals"),
    "fuse_bn_into_conv": Proved(79, 79, "reals"),
    "fuse_bn_into_gemm": Proved(23, 23, "reals"),
    "fuse_cast_into_constantofshape": Proved(15, 15, "bits"),
    "fuse_cast_into_onehot": Proved(14, 14, "bits"),
    "fuse_clip_into_quantize": Proved(21, 21, "bits"),
    "fuse_concat_into_slice": Proved(18, 18, "bits"),
    "fuse_consecutive_cast": Proved(10, 10, "bits"),
    "fuse_consecutive_clip": Proved(51, 51, "bits"),
    "fuse_consecutive_concat": Proved(23, 23, "bits"),
    "fuse_consecutive_flatten": Proved(14, 14, "bits"),
    "fuse_consecutive_gather": Proved(25, 25, "bits"),
    "fuse_consecutive_mask": Proved(19, 19, "reals"),
    "fuse_consecutive_minmax": Proved(78, 78, "bits"),
    "fuse_consecutive_reshape": Proved(26, 26, "bits"),
    "fuse_consecutive_slice": Proved(38, 38, "bits"),
    "fuse_consecutive_squeeze": Proved(18, 18, "bits"),
    "fuse_consecutive_transpose": Proved(35, 35, "bits"),
    "fuse_consecutive_unsqueeze": Proved(33, 33, "bits"),
    "fuse_conv_activation": Proved(21, 21, "reals"),
    "fuse_dequantize_into_matmul": Proved(5, 5, "reals"),
    "fuse_dynamic_quantize_matmul": Proved(11, 11, "reals"),
    "fuse_expand_into_binary": Proved(35, 35, "bits"),
    "fuse_gather_into_shape": Proved(46, 46, "bits"),
    "fuse_gelu": Proved(33, 33, "reals"),
    "fuse_gemm": Proved(19, 19, "reals"),
    "fuse_gemm_activation": Proved(9, 9, "reals"),
    "fuse_group_query_attention": Proved(
        0, 18, "bits",
        "GroupQueryAttention has no definition: a query that sees nothing differs",
    ),
    "fuse_hardsigmoid": Proved(14, 14, "reals"),
    "fuse_hardswish": Proved(10, 10, "reals"),
    "fuse_instancenorm": Proved(16, 16, "reals"),
    "fuse_layernorm": Proved(24, 24, "reals"),
    "fuse_log_softmax": Proved(20, 20, "reals"),
    "fuse_matmul_scale": Proved(54, 54, "reals"),
    "fuse_minmax_into_clip": Proved(56, 56, "reals"),
    "fuse_mish": Proved(6, 6, "reals"),
    "fuse_multi_head_attention": Proved(14, 14, "reals"),
    "fuse_narrow_gemm": Proved(7, 7, "reals"),
    "fuse_neg": Proved(42, 42, "bits"),
    "fuse_not_into_where": Proved(10, 10, "bits"),
    "fuse_pad_into_conv": Proved(43, 43, "reals"),
    "fuse_pad_into_pool": Proved(13, 13, "reals"),
    "fuse_past_into_attention": Proved(
        0, 8, "bits",
        "Attention with a past has no definition",
    ),
    "fuse_qdq_into_binary": Proved(12, 12, "reals"),
    "fuse_qdq_into_concat": Proved(11, 11, "reals"),
    "fuse_qdq_into_conv": Proved(27, 27, "reals"),
    "fuse_qdq_into_gemm": Proved(10, 10, "reals"),
    "fuse_qdq_into_matmul": Proved(19, 19, "reals"),
    "fuse_qdq_into_move": Proved(13, 13, "bits"),
    "fuse_qdq_into_pool": Proved(20, 20, "reals"),
    "fuse_qdq_into_unary": Proved(6, 6, "reals"),
    "fuse_qkv_into_attention": Proved(33, 33, "reals"),
    "fuse_quick_gelu": Proved(14, 14, "reals"),
    "fuse_reciprocal_into_div": Proved(33, 33, "reals"),
    "fuse_reshape_into_reduce": Proved(31, 31, "bits"),
    "fuse_rmsnorm": Proved(10, 10, "reals"),
    "fuse_rotary_embedding": Proved(11, 11, "reals"),
    "fuse_scale_into_matmul_integer": Proved(22, 22, "reals"),
    "fuse_skip_rmsnorm": Proved(15, 15, "reals"),
    "fuse_slice_into_expand": Proved(12, 12, "bits"),
    "fuse_slice_into_gather": Proved(8, 8, "bits"),
    "fuse_slices_into_split": Proved(26, 26, "bits"),
    "fuse_softmax": Proved(13, 13, "reals"),
    "fuse_space_to_depth": Proved(4, 4, "bits"),
    "fuse_squeeze_into_reduce": Proved(10, 10, "bits"),
    "fuse_squeeze_into_reshape": Proved(26, 26, "bits"),
    "fuse_tile_into_gather": Proved(9, 9, "bits"),
    "fuse_transpose_into_gather": Proved(5, 5, "bits"),
    "fuse_transpose_into_matmul": Proved(17, 17, "bits"),
    "fuse_unsqueeze_into_dequantize": Proved(54, 54, "bits"),
    "fuse_unsqueeze_into_reduce": Proved(24, 24, "bits"),
    "fuse_value_bias": Proved(15, 15, "reals"),
    "hoist_slice": Proved(29, 29, "bits"),
    "infer_shapes": Proved(0, 0, "bits"),
    "inline": Proved(66, 66, "bits"),
    "legalize": Proved(20, 20, "reals"),
    "legalize_rank": Proved(15, 15, "bits"),
    "move_subgraph_initializer": Proved(4, 4, "bits"),
    "normalize_axes": Proved(36, 36, "bits"),
    "partial_evaluate": Proved(14, 14, "bits"),
    "post_expand": Proved(8, 8, "bits"),
    "pre_scale": Proved(17, 17, "reals"),
    "remove_unused_functions": Proved(7, 7, "bits"),
    "remove_unused_opsets": Proved(0, 0, "bits"),
    "replace_castlike_with_cast": Proved(21, 21, "bits"),
    "replace_clip_empty_inputs": Proved(32, 32, "bits"),
    "replace_contrib_quantize": Proved(3, 3, "bits"),
    "replace_div_with_mul": Proved(26, 26, "bits"),
    "replace_einsum_with_matmul": Proved(13, 13, "reals"),
    "replace_int8_with_uint8": Proved(34, 34, "bits"),
    "replace_lone_split_with_slice": Proved(3, 3, "bits"),
    "replace_pow": Proved(51, 51, "bits"),
    "replace_slice_with_gather": Proved(30, 30, "bits"),
    "replace_transpose_with_reshape": Proved(8, 8, "bits"),
    "replace_uint8_with_int8": Proved(19, 19, "bits"),
    "simplify_inference": Proved(34, 34, "bits"),
    "sink_expand": Proved(8, 8, "bits"),
    "trace_folding": Proved(66, 66, "bits"),
    "unique_name_for_nodes": Proved(7, 7, "bits"),
}
