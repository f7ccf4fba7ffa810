"""float_to_fp8 with the arguments of PopRT."""

from typing import Any

import numpy as np
import onnx
import pytest

import tiered
from tests.recorded import assert_values
from tests.small import ops
from tiered.compat import poprt
from tiered.compat.poprt.fp8_arguments import float_to_fp8
from tiered.compat.poprt.passes import get_pass as get_poprt_pass
from tiered.support.errors import OptionError, TargetError, UsageError
from tiered.testing import parse

GELU_OF_PRODUCT = """(float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}>
    { [n] h = MatMul(x, w)  y = Gelu(h) }"""


def test_float8_has_the_parameters_of_poprt() -> None:
    product = parse(GELU_OF_PRODUCT, opset=21)
    parameters = ["F152", "F143", -3, -1]
    for lower in (
        poprt.get_pass("float_to_fp8", fp8_params=parameters),
        poprt.get_pass("FloatToFP8", parameters, [], "fp8"),
    ):
        made = tiered.Model.from_proto(lower(product))
        (code,) = made.main.nodes_of("QuantizeLinear")
        assert code.output.dtype == onnx.TensorProto.FLOAT8E5M2FNUZ
        assert [value.const for value in code.inputs[1:2] if value] == [0.125]
    kept = poprt.get_pass("float_to_fp8", skip_op_names=["n"])
    with pytest.raises(TargetError, match="1 MatMul: the node is skipped"):
        kept(product)


def test_float8_has_exponents_by_node() -> None:
    product = parse(GELU_OF_PRODUCT.replace("2,2", "32,32"), opset=21)
    weight = np.ones((32, 32), np.float32)
    product.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weight, "w"))
    lower = poprt.get_pass(
        "float_to_fp8",
        fp8_params=["F143", "F143", -1, -1],
        fp8_input_dict={"n": -4},
        fp8_weight_dict={"n": ["F143", -6]},
    )
    made = tiered.Model.from_proto(lower(product))
    scales = [node.inputs[1] for node in made.main.nodes_of("DequantizeLinear")]
    numbers = {n for s in scales if s is not None and s.const is not None for n in s.const.flat}
    assert numbers == {2.0**-4, 2.0**-6}


def test_float8_of_weights_only() -> None:
    product = parse(GELU_OF_PRODUCT.replace("2,2", "32,32"), opset=21)
    weight = np.ones((32, 32), np.float32)
    product.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weight, "w"))
    lower = poprt.get_pass("float_to_fp8", ["F143", "F143", -1, -1], convert_model="fp8_weight")
    assert ops(lower(product)) == ["DequantizeLinear", "MatMul", "Gelu"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"fp8_input_dict": {"n": ["F152", 1]}}, "all nodes have one format"),
        ({"fp8_weight_dict": {"n": "high"}}, "'n' has 'high': expected an exponent"),
        ({"convert_model": "fp16"}, "convert_model as fp8 or fp8_weight, not .* 'fp16'"),
        ({"fp8_params": [1, 2, 3, 4, 5]}, "takes fp8_params as"),
        ({"fp8_input_dict": {"n": []}}, r"'n' has \[\]: expected an exponent"),
        ({"fp8_input_dict": {"n": True}}, "'n' has True: expected an exponent"),
        ({"fp8_input_dict": {"n": ["F143", "F143", 1]}}, "all nodes have one format"),
        ({"fp8_weight_dict": {"n": 1.0}}, r"expected an exponent, or \['F152', exponent\]"),
        ({"skip_op_names": "n1"}, "takes a list of names, not the string 'n1'"),
        ({"convert_model": "fp8_weight", "fp8_input_dict": {"n": 1}}, "fp8_input_dict is for data"),
    ],
)
def test_float8_without_an_equivalent(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        float_to_fp8(**{"fp8_params": ["F143", "F152"], **arguments})


def test_float8_has_the_defaults_of_poprt() -> None:
    options = poprt.get_pass("float_to_fp8").lifted().options
    assert (options["format"], options["weight_format"], options["min_elements"]) == (
        "F143", "F143", 0,
    )  # fmt: skip
    given = poprt.get_pass("float_to_fp8", fp8_params=["F152", "F143", -1, -2], min_elements=1024)
    assert given.lifted().options["min_elements"] == 1024
    assert given.lifted().options["format"] == "F152"


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


def test_float8_takes_the_last_argument_of_newer_versions() -> None:
    assert poprt.get_pass("float_to_fp8", skip_op=True).name == "float_to_fp8"
    with pytest.raises(UsageError, match="skip_op=False has no equivalent"):
        poprt.get_pass("float_to_fp8", skip_op=False)


@pytest.mark.parametrize("number", ["--5", "²", "1.5", "x"])
def test_what_is_no_integer_is_no_exponent(number: str) -> None:
    with pytest.raises(OptionError, match="option 'exponent' takes an integer or none, not '"):
        float_to_fp8(["F143", "F143", number])


def test_spaces_and_signs_are_parts_of_no_parameter() -> None:
    options = float_to_fp8(" F152, F143 , +3, -1 ").options
    names = ("format", "weight_format", "exponent", "weight_exponent")
    assert [options[name] for name in names] == ["F152", "F143", 3, -1]
    assert [float_to_fp8(["F152"]).options[name] for name in names] == ["F152", "F143", 0, 0]


def test_nodes_are_named_as_they_are_and_not_by_globs() -> None:
    options = float_to_fp8(
        (), ["a*"], fp8_input_dict={"b?": np.int64(2)}, fp8_weight_dict={"c": ("F143", -1)}
    ).options
    assert options["skip_nodes"] == ("a[*]",)
    assert (options["exponents"], options["weight_exponents"]) == (("b[?]=2",), ("c=-1",))


def test_weights_only_have_the_parameters_of_weights() -> None:
    pass_ = float_to_fp8(["F143", "F152", -1, -2], ["n"], "fp8_weight", fp8_weight_dict={"m": 4})
    options = pass_.options
    assert pass_.name == "fp8_weight"
    names = ("format", "exponent", "exponents", "min_elements", "skip_nodes")
    assert [options[name] for name in names] == ["F152", -2, ("m=4",), 0, ("n",)]


def test_arguments_become_options() -> None:
    names = {
        "shown": lambda *args, **more: str(get_poprt_pass("float_to_fp8", *args, **more).lifted())
    }
    assert_values(__file__, names)
