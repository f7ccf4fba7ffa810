"""Legalizations are found under the names of the systems that they come from."""

import pytest

from tiered import get_pass

NAMES = {
    "cumsum_workaround": "legalize_cumsum",
    "float_ops_workaround": "legalize_float_ops",
    "indices_workaround": "legalize_indices",
    "insert_attention_mask": "insert_attention_mask",
    "matmul_rotary_embedding": "matmul_rotary_embedding",
    "replace_celu": "replace_celu",
    "replace_consecutive_cast_with_notzero": "replace_consecutive_cast_with_notzero",
    "replace_greater_or_equal": "replace_greater_or_equal",
    "replace_groupnorm_with_fast_norm": "replace_groupnorm_with_fast_norm",
    "replace_hardswish": "replace_hardswish",
    "replace_less_or_equal": "replace_less_or_equal",
    "replace_nonzero": "replace_nonzero",
    "replace_softmax": "replace_softmax",
    "replace_trilu": "replace_trilu",
    "replace_where_with_mul_add": "replace_where_with_mul_add",
    "replace_where_with_wherev2": "replace_where_with_wherev2",
    "topk_workaround": "normalize_axes",
    "legalize_topk_axis": "normalize_axes",
    "Legalize": "legalize",
    "SimplifyInference": "simplify_inference",
    "CanonicalizeOps": "canonicalize_ops",
    "fused_attention": "fuse_qkv",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_leads_to_its_pass(name: str) -> None:
    assert get_pass(name).name == NAMES[name]
