"""PopRT's converter, its module paths, and the arguments of its newest version."""

import importlib
import logging
from typing import Any

import numpy as np
import onnx
import pytest

from tests.small import ops
from tiered.compat import poprt
from tiered.passes.interface.registry import registry
from tiered.support.errors import TargetError, UsageError, VerificationError
from tiered.testing import parse

TEXT = """(float[n,4] x) => (float[n,4] y, float[n,4] z) <float[4,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}> {
    a = Identity(x) p = MatMul(a, w) y = Relu(p) z = Neg(p) }"""  # noqa: E501  # one graph


def _types(model: onnx.ModelProto) -> list[list[int | str]]:
    dims = [each.type.tensor_type.shape.dim for each in (*model.graph.input, *model.graph.output)]
    return [[dim.dim_param or dim.dim_value for dim in shape] for shape in dims]


def test_a_model_is_converted() -> None:
    model = parse(TEXT)
    before = model.SerializeToString()
    made = poprt.Converter(input_shape={"x": [2, 4]}, precision="fp16", check=False).convert(model)
    assert ops(made) == ["Cast", "MatMul", "Relu", "Neg", "Cast", "Cast"]
    assert _types(made) == [[2, 4], [2, 4], [2, 4]]
    assert model.SerializeToString() == before
    plain = poprt.Converter(check=True, logger=logging.getLogger(__name__)).convert(model)
    assert ops(plain) == ["MatMul", "Relu", "Neg"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"used_passes": ["eliminate_deadend"]}, ["Identity", "MatMul", "Relu", "Neg"]),
        ({"used_passes": ["eliminate_identity"], "remove_outputs": ["z"]}, ["MatMul", "Relu"]),
        ({"skip_passes": "eliminate_identity,fold_constant", "used_passes": ["eliminate_identity"]},
         ["Identity", "MatMul", "Relu", "Neg"]),
        ({"precision": "fp16", "fp16_skip_op_types": "MatMul,Relu"},
         ["MatMul", "Relu", "Cast", "Neg", "Cast"]),
        ({"precision": "fp8_weight", "convert_version": 21, "fp8_params": "F143,F143,-3,-3"},
         ["DequantizeLinear", "MatMul", "Relu", "Neg"]),
        ({"serialize_matmul": {"n1": "2/output_channels"}},
         ["MatMul", "MatMul", "Concat", "Relu", "Neg"]),
        ({"checkpoints": "p", "max_tensor_size": 64}, ["MatMul", "Relu", "Neg"]),
        ({"enable_insert_remap": True, "enable_erf_gelu": True}, ["MatMul", "Relu", "Neg"]),
    ],
)  # fmt: skip
def test_the_arguments_of_the_converter(settings: dict[str, Any], expected: list[str]) -> None:
    model = parse(TEXT, opset=21)
    for number, node in enumerate(model.graph.node):
        node.name = f"n{number}"
    made = poprt.Converter(**settings).convert(model)
    assert ops(made) == expected
    outputs = [output.name for output in made.graph.output]
    assert outputs == (
        ["y"] if "remove_outputs" in settings
        else ["y", "z", "p"] if "checkpoints" in settings else ["y", "z"]
    )  # fmt: skip


def test_a_precision_that_nothing_gets_is_an_error() -> None:
    model = parse(TEXT, opset=21)
    for number, node in enumerate(model.graph.node):
        node.name = f"n{number}"
    settings = {"precision": "fp8", "convert_version": 21, "fp8_skip_op_names": "n1"}
    with pytest.raises(TargetError, match="1 MatMul: the node is skipped"):
        poprt.Converter(**settings).convert(model)


def test_the_batch_of_all_inputs_is_set() -> None:
    made = poprt.Converter(batch_size=3, batch_axis=0).convert(parse(TEXT))
    assert _types(made) == [[3, 4], [3, 4], [3, 4]]
    by_pass = poprt.get_pass("const_input_shape", const_input_shape={}, batch_size=5)
    assert _types(by_pass(parse(TEXT))) == [[5, 4], [5, 4], [5, 4]]
    with pytest.raises(UsageError, match="batch_axis needs batch_size"):
        poprt.get_pass("const_input_shape", {}, batch_axis=1)


def test_the_opset_is_raised_and_lowered_only_if_that_is_asked_for() -> None:
    def version(model: onnx.ModelProto, **settings: Any) -> int:
        return poprt.Converter(**settings).convert(model).opset_import[0].version

    assert version(parse(TEXT, opset=9)) == 11
    assert version(parse(TEXT, opset=17)) == 17
    assert version(parse(TEXT, opset=17), convert_version=13) == 13


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"precison": "fp16"}, "no argument 'precison'; did you mean 'precision'"),
        ({"precision": "fp64"}, "precision is one of fp32, fp16, fp8, fp8_weight, not 'fp64'"),
        ({"quantize": True}, "Converter does not take quantize here: use tiered.quantize_model"),
        ({"merge_matmul": "a,b"}, "does not take merge_matmul here: .*combine_parallel_dense"),
    ],
)
def test_what_a_converter_does_not_do_is_named(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        poprt.Converter(**settings)


def test_what_is_not_there_is_an_error() -> None:
    with pytest.raises(UsageError, match="no output 'zz'; did you mean 'z'"):
        poprt.get_pass("remove_outputs", outputs=["zz"]).run(parse(TEXT))
    with pytest.raises(UsageError, match="takes a list of names, not the string 'z'"):
        poprt.get_pass("remove_outputs", "z")
    with pytest.raises(TargetError, match="is named 'n9'"):
        poprt.Converter(serialize_matmul={"n9": "2/output_channels"}).convert(parse(TEXT))


def test_a_conversion_is_checked() -> None:
    @poprt.register("wrong")
    class Wrong(poprt.Pass):
        def run(self, onnx_model: onnx.ModelProto) -> onnx.ModelProto:
            onnx_model.graph.node[-1].op_type = "Abs"
            return onnx_model

    try:
        with pytest.raises(VerificationError):
            poprt.Converter(used_passes=["wrong"], check=True).convert(parse(TEXT))
    finally:
        poprt.passes._CLASSES.clear()
        registry.unregister("wrong")


@pytest.mark.parametrize(
    ("module", "name", "passes"),
    [
        ("apply_ir_pass", "fuse_bn_into_conv", ["fuse_bn_into_conv"]),
        ("apply_ir_pass", "eliminate_nop_transpose", ["eliminate_nop_transpose"]),
        ("workarounds", "BatchNormWorkaround", ["batchnorm_workaround"]),
        ("workarounds", "IndicesWorkaround", ["legalize_indices"]),
        ("manual_sharding", "ManualSharding", ["rewrite_annotated_ops"]),
        ("replace_castlike", "ReplaceCastLike", ["replace_castlike_with_cast"]),
        ("replace_clip_empty_inputs", "ReplaceClipInputs", ["replace_clip_empty_inputs"]),
        ("replace_gemm_with_matmul", "ReplaceGemmWithMatMul", ["decompose_gemm"]),
        ("replace_bn_with_mul_add", "ReplaceBNWithMulAdd", ["replace_bn_with_mul_add"]),
        ("remove_outputs", "RemoveOutputs", ["remove_outputs", "eliminate_deadend"]),
        ("float_to_fp8", "Float2FP8", ["float_to_fp8"]),
        ("int64_to_int32", "Int64ToInt32", ["int64_to_int32"]),
    ],
)
def test_classes_are_in_the_modules_of_poprt(module: str, name: str, passes: list[str]) -> None:
    found = importlib.import_module(f"tiered.compat.poprt.passes.{module}")
    made = getattr(found, name)().lifted()
    assert [leaf.name for leaf in getattr(made, "leaves", lambda: [made])()][
        -len(passes) :
    ] == passes


def test_a_module_of_several_has_passes_only() -> None:
    found = importlib.import_module("tiered.compat.poprt.passes.workarounds")
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchWorkaround'"):
        found.NoSuchWorkaround  # noqa: B018  # raises


def test_arguments_without_an_effect(capsys: pytest.CaptureFixture[str]) -> None:
    model = parse("(float[2] x) => (float[2] y) { y = Relu(x) }")
    half = poprt.passes.Float2Half(skip_op_types=[], enable_avoid_overflow_patterns=True)
    assert ops(half(model)) == ["Cast", "Relu", "Cast"]
    poprt.passes.ModelOverview(use_print=True)(model)
    assert "1 Relu" in capsys.readouterr().err
    with pytest.raises(UsageError, match="use_print=False has no equivalent"):
        poprt.passes.ModelOverview(use_print=False)


def test_float8_has_scales_of_1_by_default() -> None:
    options = poprt.get_pass("float_to_fp8").lifted().options
    assert (options["exponent"], options["weight_exponent"]) == (0, 0)
    as_text = poprt.get_pass("float_to_fp8", "F152,F143,-3,-1").lifted().options
    assert [as_text[each] for each in ("format", "exponent", "weight_exponent")] == ["F152", -3, -1]
    measured = poprt.get_pass("float_to_fp8", exponent=None, weight_exponent=None).lifted()
    assert measured.options["exponent"] is None
    text = "(float[2,2] x) => (float[2,2] y) <float[2,2] w = {0.1,2,3,4}> { y = MatMul(x, w) }"
    made = poprt.get_pass("float_to_fp8")(parse(text, opset=21))
    scales = [
        onnx.numpy_helper.to_array(each)
        for each in made.graph.initializer
        if each.name in {node.input[1] for node in made.graph.node if "Linear" in node.op_type}
    ]
    assert scales
    assert all(np.all(scale == 1) for scale in scales)


def test_halves_are_checked_as_halves() -> None:
    text = "(float[64,64] x) => (float[64,64] y) { a = MatMul(x, x) y = Relu(a) }"
    made = poprt.Converter(precision="fp16", check=True).convert(parse(text))
    assert ops(made) == ["Cast", "MatMul", "Relu", "Cast"]


def test_one_pass_is_no_list_of_letters() -> None:
    eliminated = ["MatMul", "Relu", "Neg"]
    for given in ("eliminate_identity", poprt.get_pass("eliminate_identity")):
        assert ops(poprt.PassManager(given).run(parse(TEXT))) == eliminated
    assert ops(poprt.Converter(used_passes="eliminate_identity").convert(parse(TEXT))) == eliminated
