"""The registry of PopRT's passes: all names of its reference are keys, classes have modules."""

from collections.abc import Iterator
from typing import Any, Final

import onnx
import pytest

from tests.registered import passes_forgotten
from tiered.compat import poprt
from tiered.support.errors import UsageError
from tiered.testing import parse

NAMES: Final = [
    "add_checkpoints", "apply_ir_pass", "auto_insert_remap", "batchnorm_workaround",
    "check_with_fake_data", "const_batch_size", "const_input_shape", "constant_folding",
    "cumsum_workaround", "eight_bits_io", "eliminate_deadend", "eliminate_duplicate_initializer",
    "eliminate_identity", "eliminate_nop_arithmetic", "eliminate_nop_cast", "eliminate_nop_expand",
    "eliminate_nop_flatten", "eliminate_nop_if", "eliminate_nop_pad", "eliminate_nop_reshape",
    "eliminate_nop_transpose", "eliminate_unused_initializer", "erf_gelu_pattern",
    "extract_constant_to_initializer", "final_check", "float_ops_workaround", "float_to_fp8",
    "float_to_half", "float_to_mixed", "fuse_bn_into_conv", "fuse_bn_into_gemm",
    "fuse_cast_into_onehot", "fuse_consecutive_cast", "fuse_consecutive_reshape",
    "fuse_consecutive_squeeze", "fuse_consecutive_transpose", "fuse_consecutive_unsqueeze",
    "fused_attention", "gelu_pattern", "indices_workaround", "insert_attention_mask",
    "int64_to_int32", "layer_norm_pattern", "layer_precision_compare", "manual_sharding",
    "matmul_rotary_embedding", "model_overview", "move_subgraph_initializer", "overlap_io",
    "packed_transformer", "post_expand", "pre_scale", "remove_duplicated_initializer",
    "remove_initializer_from_input", "remove_input_cast", "replace_bn_with_mul_add",
    "replace_celu", "replace_clip_empty_inputs", "replace_consecutive_cast_with_notzero",
    "replace_div_with_mul", "replace_einsum_with_matmul", "replace_erf_with_erfv2",
    "replace_greater_or_equal", "replace_groupnorm_with_fast_norm", "replace_half_reducemean",
    "replace_hardswish", "replace_less_or_equal", "replace_nonzero", "replace_pow",
    "replace_softmax", "replace_trilu", "replace_where_mask", "replace_where_with_mul_add",
    "replace_where_with_wherev2", "serialize_matmul", "serialize_matmul_add", "shape_inference",
    "topk_workaround", "trace_folding", "unique_name_for_nodes",
]  # fmt: skip
"""The registered names of PopRT's first reference."""

NEWER: Final = [
    "double_to_float", "fill_squeeze_axes", "fuse_mul_into_matmul", "merge_matmul",
    "merge_matmul_add", "remove_empty_concat_inputs", "remove_outputs", "replace_castlike",
    "replace_gemm_with_matmul", "replace_isinf", "replace_round", "sort_graph",
]  # fmt: skip
"""Names of its later versions."""

TEXT: Final = "(float[2] x) => (float[2] y) { a = Identity(x) y = Round(a) }"


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    with passes_forgotten():
        yield


def ops(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def test_all_names_of_the_reference_are_keys() -> None:
    assert len(NAMES) == 80
    known = poprt.get_registered_passes()
    assert set(NAMES + NEWER) <= set(known.keys())
    assert poprt.Pass.get_registered_passes().keys() == known.keys()
    assert list(known) == sorted(known)
    for name in ("constant_folding", "apply_ir_pass", "fused_attention"):
        assert known[name].apply(parse(TEXT)) == parse(TEXT)


def test_a_pass_is_registered_and_found_by_its_base_class() -> None:
    @poprt.Pass.register_pass("silent")
    class Silent(poprt.Pass):
        def run(self, onnx_model: onnx.ModelProto) -> onnx.ModelProto:
            return onnx_model

    assert isinstance(poprt.Pass.get_pass("silent"), Silent)
    assert ops(poprt.Pass.get_pass("eliminate_identity")(parse(TEXT))) == ["Round"]
    assert "silent" in poprt.Pass.get_registered_passes()


def test_passes_are_added_to_a_manager() -> None:
    manager = poprt.PassManager(["eliminate_identity"], gather_ir_passes=True)
    manager.add_passes(["replace_round", poprt.get_pass("model_overview")])
    names = ["eliminate_identity", "replace_round", "model_overview"]
    assert manager.get_all_pass_names() == names
    assert [each.name for each in manager.get_passes()] == names
    assert ops(manager.run(parse(TEXT))) == ["RoundV2"]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"merge_moe": "a,b"}, "no pass merges experts"),
        ({"fold_periodic_initializer": True}, "no pass tiles a smaller initializer"),
        ({"enable_compress_pattern": True}, "MaskCompress is an operator of PopRT's target only"),
        ({"merge_if_with_same_cond": True}, "no pass merges two Ifs of one condition"),
    ],
)
def test_newer_arguments_of_the_converter(settings: dict[str, object], reason: str) -> None:
    (name,) = settings
    with pytest.raises(UsageError, match=f"Converter does not take {name} here: {reason}"):
        poprt.Converter(**settings)
    assert ops(poprt.Converter(**{name: None}).convert(parse(TEXT, opset=11))) == ["Round"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("layer_precision_compare", {"origin_model": onnx.ModelProto(), "wrong": 1}),
        ("float_to_fp8", {"wrong": 1}),
        ("remove_outputs", {"wrong": 1}),
    ],
)
def test_an_argument_that_a_pass_has_not_is_named(name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"{name}.*'?wrong"):
        poprt.get_pass(name, **arguments)
