"""PopRT's converter, its module paths, and the arguments of its newest version."""

import logging
from typing import Any

import onnx
import pytest

from tests.recorded import assert_values
from tests.small import ops, parsed
from tiered.compat import poprt
from tiered.compat.poprt.converter import _names
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


def test_halves_are_checked_as_halves() -> None:
    text = "(float[64,64] x) => (float[64,64] y) { a = MatMul(x, x) y = Relu(a) }"
    made = poprt.Converter(precision="fp16", check=True).convert(parse(text))
    assert ops(made) == ["Cast", "MatMul", "Relu", "Cast"]


def test_one_pass_is_no_list_of_letters() -> None:
    eliminated = ["MatMul", "Relu", "Neg"]
    for given in ("eliminate_identity", poprt.get_pass("eliminate_identity")):
        assert ops(poprt.PassManager(given).run(parse(TEXT))) == eliminated
    assert ops(poprt.Converter(used_passes="eliminate_identity").convert(parse(TEXT))) == eliminated


def test_settings_become_passes() -> None:
    def passes(opset: int = 11, **given: Any) -> object:
        made = poprt.Converter(**given)
        proto = parsed("(float[n,4] x) => (float[n,4] y) { y = Neg(x) }", opset=opset).to_proto()
        before, after = made._before(proto), made._after()
        return [str(each.lifted()) for each in before], [str(each.lifted()) for each in after]

    assert_values(__file__, {"passes": passes, "names": _names})
