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
    "alter_op_layout": Proved(11, 11, "bits"),
    "backward_fold_scale_axis": Proved(239, 239, "reals"),
    "batchnorm_workaround": Proved(26, 26, "bits"),
    "canonicalize_ops": Proved(67, 67, "reals"),
    "convert_layout": Proved(138, 138, "reals"),
    "drop_false_declarations": Proved(1, 1, "bits"),
    "eliminate_addend_before_softmax": Proved(
        13, 21, "reals",
        "a Softmax of one element is not known to be 1, nor one over several axes shifted",
    ),
    "eliminate_cast_before_shape": Proved(28, 28, "bits"),
    "eliminate_common_subexpr": Proved(16, 16, "bits"),
    "eliminate_deadend": Proved(55, 55, "bits"),
    "eliminate_duplicate_initializer": Proved(15, 15, "bits"),
    "eliminate_idempotent": Proved(25, 25, "bits"),
    "eliminate_identity": Proved(58, 58, "bits"),
    "eliminate_key_bias": Proved(44, 44, "reals"),
    "eliminate_nop_arithmetic": Proved(55, 55, "bits"),
    "eliminate_nop_cast": Proved(30, 30, "bits"),
    "eliminate_nop_concat": Proved(40, 40, "bits"),
    "eliminate_nop_expand": Proved(27, 27, "bits"),
    "eliminate_nop_flatten": Proved(45, 45, "bits"),
    "eliminate_nop_gather": Proved(24, 24, "bits"),
    "eliminate_nop_if": Proved(69, 69, "bits"),
    "eliminate_nop_pad": Proved(22, 22, "bits"),
    "eliminate_nop_reduce": Proved(48, 48, "bits"),
    "eliminate_nop_reshape": Proved(45, 45, "bits"),
    "eliminate_nop_scatter": Proved(28, 28, "bits"),
    "eliminate_nop_slice": Proved(27, 27, "bits"),
    "eliminate_nop_split": Proved(34, 34, "bits"),
    "eliminate_nop_squeeze": Proved(16, 16, "bits"),
    "eliminate_nop_tile": Proved(18, 18, "bits"),
    "eliminate_nop_transpose": Proved(27, 27, "bits"),
    "eliminate_nop_trilu": Proved(23, 23, "bits"),
    "eliminate_nop_variadic": Proved(40, 40, "bits"),
    "eliminate_q_dq_pair": Proved(29, 29, "bits"),
    "eliminate_reshape_around_elementwise": Proved(71, 71, "bits"),
    "eliminate_reshape_around_matmul": Proved(39, 39, "bits"),
    "eliminate_reshape_around_rows": Proved(50, 50, "bits"),
    "eliminate_reshape_before_reduce": Proved(59, 59, "reals"),
    "eliminate_same_operands": Proved(51, 51, "bits"),
    "eliminate_sequence": Proved(
        118, 122, "bits",
        "1 of 69 instances: branches of an If that have different shapes",
    ),
    "eliminate_split_concat": Proved(12, 12, "bits"),
    "eliminate_squeeze_unsqueeze": Proved(62, 62, "bits"),
    "eliminate_transpose_around_elementwise": Proved(65, 65, "bits"),
    "eliminate_unused_initializer": Proved(15, 15, "bits"),
    "eliminate_where": Proved(54, 54, "bits"),
    "eliminate_zero_addend": Proved(39, 39, "reals"),
    "eliminate_zero_bias": Proved(21, 21, "bits"),
    "eliminate_zero_state": Proved(45, 45, "bits"),
    "extract_constant_to_initializer": Proved(49, 49, "bits"),
    "fold_constant": Proved(264, 264, "bits"),
    "forward_fold_scale_axis": Proved(74, 74, "reals"),
    "fuse_affine_into_layernorm": Proved(62, 62, "reals"),
    "fuse_attention": Proved(
        49, 89, "reals",
        "masks that are not constant have no definition, as kernels differ where a row is hidden",
    ),
    "fuse_bias_add": Proved(77, 77, "reals"),
    "fuse_bias_gelu": Proved(19, 19, "reals"),
    "fuse_bn_into_conv": Proved(141, 141, "reals"),
    "fuse_bn_into_gemm": Proved(46, 46, "reals"),
    "fuse_cast_into_constantofshape": Proved(23, 23, "bits"),
    "fuse_cast_into_onehot": Proved(28, 28, "bits"),
    "fuse_clip_into_quantize": Proved(35, 35, "bits"),
    "fuse_concat_into_slice": Proved(29, 29, "bits"),
    "fuse_consecutive_add": Proved(
        25, 48, "reals",
        "integer constants whose sum wraps, and differences of integers",
    ),
    "fuse_consecutive_cast": Proved(16, 16, "bits"),
    "fuse_consecutive_clip": Proved(116, 116, "bits"),
    "fuse_consecutive_concat": Proved(43, 43, "bits"),
    "fuse_consecutive_flatten": Proved(28, 28, "bits"),
    "fuse_consecutive_gather": Proved(48, 48, "bits"),
    "fuse_consecutive_mask": Proved(32, 32, "reals"),
    "fuse_consecutive_minmax": Proved(
        134, 135, "bits",
        "1 of 135 instances: constants of doubles that are compared in another order",
    ),
    "fuse_consecutive_reshape": Proved(50, 50, "bits"),
    "fuse_consecutive_scale": Proved(42, 42, "reals"),
    "fuse_consecutive_slice": Proved(69, 69, "bits"),
    "fuse_consecutive_squeeze": Proved(34, 34, "bits"),
    "fuse_consecutive_transpose": Proved(63, 63, "bits"),
    "fuse_consecutive_unsqueeze": Proved(53, 53, "bits"),
    "fuse_conv_activation": Proved(39, 39, "reals"),
    "fuse_dequantize_into_matmul": Proved(10, 10, "reals"),
    "fuse_dynamic_quantize_matmul": Proved(20, 20, "reals"),
    "fuse_expand_into_binary": Proved(60, 60, "bits"),
    "fuse_gather_into_shape": Proved(76, 76, "bits"),
    "fuse_gelu": Proved(62, 62, "reals"),
    "fuse_gemm": Proved(34, 34, "reals"),
    "fuse_gemm_activation": Proved(19, 19, "reals"),
    "fuse_group_query_attention": Proved(
        0, 27, "bits",
        "GroupQueryAttention has no definition: a query that sees nothing differs",
    ),
    "fuse_hardsigmoid": Proved(25, 25, "reals"),
    "fuse_hardswish": Proved(18, 18, "reals"),
    "fuse_instancenorm": Proved(29, 29, "reals"),
    "fuse_layernorm": Proved(50, 50, "reals"),
    "fuse_log_softmax": Proved(36, 36, "reals"),
    "fuse_matmul_scale": Proved(
        93, 94, "reals",
        "1 of 94 instances: a division by the constant 0",
    ),
    "fuse_minmax_into_clip": Proved(104, 104, "reals"),
    "fuse_mish": Proved(8, 8, "reals"),
    "fuse_multi_head_attention": Proved(20, 20, "reals"),
    "fuse_narrow_gemm": Proved(15, 15, "reals"),
    "fuse_neg": Proved(83, 83, "bits"),
    "fuse_neg_into_sub": Proved(15, 15, "reals"),
    "fuse_not_into_where": Proved(10, 10, "bits"),
    "fuse_pad_into_conv": Proved(
        83, 85, "reals",
        "2 of 85 instances: images without an element",
    ),
    "fuse_pad_into_pool": Proved(24, 24, "reals"),
    "fuse_past_into_attention": Proved(
        0, 11, "bits",
        "Attention with a past has no definition",
    ),
    "fuse_qdq_into_binary": Proved(24, 24, "reals"),
    "fuse_qdq_into_concat": Proved(18, 18, "reals"),
    "fuse_qdq_into_conv": Proved(51, 51, "reals"),
    "fuse_qdq_into_gemm": Proved(21, 21, "reals"),
    "fuse_qdq_into_matmul": Proved(33, 33, "reals"),
    "fuse_qdq_into_move": Proved(24, 24, "bits"),
    "fuse_qdq_into_pool": Proved(34, 34, "reals"),
    "fuse_qdq_into_unary": Proved(11, 11, "reals"),
    "fuse_qkv_into_attention": Proved(
        58, 62, "reals",
        "4 of 62 instances: of 7 tests, with sizes that the model refuses",
    ),
    "fuse_quick_gelu": Proved(22, 22, "reals"),
    "fuse_reciprocal_into_div": Proved(51, 51, "reals"),
    "fuse_reshape_into_reduce": Proved(60, 60, "bits"),
    "fuse_rmsnorm": Proved(19, 19, "reals"),
    "fuse_rotary_embedding": Proved(22, 22, "reals"),
    "fuse_scale_into_matmul_integer": Proved(40, 40, "reals"),
    "fuse_skip_rmsnorm": Proved(28, 28, "reals"),
    "fuse_slice_into_expand": Proved(25, 25, "bits"),
    "fuse_slice_into_gather": Proved(14, 14, "bits"),
    "fuse_slices_into_split": Proved(44, 44, "bits"),
    "fuse_softmax": Proved(25, 25, "reals"),
    "fuse_space_to_depth": Proved(4, 4, "bits"),
    "fuse_squeeze_into_reduce": Proved(18, 18, "bits"),
    "fuse_squeeze_into_reshape": Proved(44, 44, "bits"),
    "fuse_tile_into_gather": Proved(15, 15, "bits"),
    "fuse_transpose_into_gather": Proved(9, 9, "bits"),
    "fuse_transpose_into_matmul": Proved(29, 29, "bits"),
    "fuse_unsqueeze_into_dequantize": Proved(98, 98, "bits"),
    "fuse_unsqueeze_into_reduce": Proved(45, 45, "bits"),
    "fuse_value_bias": Proved(26, 26, "reals"),
    "fuse_view_into_binary": Proved(64, 64, "bits"),
    "hoist_slice": Proved(52, 52, "bits"),
    "infer_shapes": Proved(0, 0, "bits"),
    "inline": Proved(82, 82, "bits"),
    "legalize": Proved(23, 23, "reals"),
    "legalize_rank": Proved(31, 31, "bits"),
    "move_subgraph_initializer": Proved(4, 4, "bits"),
    "normalize_axes": Proved(60, 60, "bits"),
    "partial_evaluate": Proved(17, 17, "bits"),
    "post_expand": Proved(16, 16, "bits"),
    "pre_scale": Proved(29, 29, "reals"),
    "remove_unused_functions": Proved(8, 8, "bits"),
    "remove_unused_opsets": Proved(0, 0, "bits"),
    "replace_castlike_with_cast": Proved(26, 26, "bits"),
    "replace_clip_empty_inputs": Proved(36, 36, "bits"),
    "replace_contrib_quantize": Proved(3, 3, "bits"),
    "replace_div_with_mul": Proved(42, 42, "bits"),
    "replace_einsum_with_matmul": Proved(24, 24, "reals"),
    "replace_int8_with_uint8": Proved(39, 39, "bits"),
    "replace_lone_split_with_slice": Proved(5, 5, "bits"),
    "replace_pow": Proved(89, 89, "bits"),
    "replace_slice_with_gather": Proved(52, 52, "bits"),
    "replace_tile_with_expand": Proved(13, 13, "bits"),
    "replace_transpose_with_reshape": Proved(10, 10, "bits"),
    "replace_uint8_with_int8": Proved(33, 33, "bits"),
    "simplify_inference": Proved(42, 42, "bits"),
    "sink_expand": Proved(23, 23, "bits"),
    "trace_folding": Proved(123, 123, "bits"),
    "unique_name_for_nodes": Proved(8, 8, "bits"),
}
