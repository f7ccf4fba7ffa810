"""Operators and attributes by TVM's names."""

from typing import Any

import onnx
import pytest
from onnx import defs

from tests.recorded import assert_values
from tests.small import made_by, parsed
from tiered import Model
from tiered.compat.tvm.patterns.operator_names import (
    OPERATORS,
    attribute_names,
    has_attribute,
    operators_of,
    relay_name,
)
from tiered.support.errors import UsageError


def test_every_name_is_of_operators_of_onnx() -> None:
    assert all(defs.has(own) for names in OPERATORS.values() for own in names)


def test_a_name_is_of_tvm_or_onnx_or_of_a_domain() -> None:
    assert operators_of("nn.conv2d") == ("Conv",)
    assert operators_of("nn.dense") == ("MatMul", "Gemm")
    assert operators_of("Gelu") == ("Gelu",)
    assert operators_of("my.domain::Scale") == ("my.domain::Scale",)
    for wrong, meant in (("nn.con2d", "nn.conv2d"), ("Geluu", "Gelu")):
        with pytest.raises(
            UsageError, match=f"no operator is named '{wrong}'; did you mean '{meant}'"
        ):
            operators_of(wrong)


CONV = "(float[1,2,8,8] x, float[4,2,3,3] w) => (float[1,4,6,6] y) {{ y = Conv{}(x, w) }}"


@pytest.mark.parametrize(
    ("attributes", "name", "wanted", "has"),
    [
        ("", "groups", 1, True),
        ("<group=2>", "groups", 2, True),
        ("<group=2>", "group", 1, False),
        ("", "strides", (1, 1), True),
        ("", "dilation", [1, 1], True),
        ("", "dilation", [1, 2], False),
        ("<strides=[2,1]>", "strides", (2, 1), True),
        ("<strides=[2,1]>", "strides", [1, 2], False),
        ("", "padding", (0, 0), True),
        ("", "padding", (0, 0, 0, 0), True),
        ("", "padding", (1, 1), False),
        ("<pads=[1,2,1,2]>", "padding", (1, 2), True),
        ("<pads=[1,2,1,2]>", "padding", (1, 2, 1, 2), True),
        ("<pads=[1,2,1,3]>", "padding", (1, 2), False),
        ("""<auto_pad="SAME_UPPER">""", "padding", (0, 0), False),
        ("""<auto_pad="SAME_LOWER">""", "pads", (0, 0, 0, 0), False),
        ("""<auto_pad="VALID">""", "padding", (0, 0), True),
        ("", "kernel_size", (3, 3), True),
        ("<kernel_shape=[3,3]>", "kernel_size", [3, 3], True),
        ("<kernel_shape=[3,3]>", "kernel_size", [3, 1], False),
        ("", "kernel_size", (3,), False),
        ("", "data_layout", "NCHW", True),
        ("", "data_layout", "NHWC", False),
        ("", "kernel_layout", "OIHW", True),
        ("", "out_layout", "", True),
        ("""<auto_pad="VALID">""", "auto_pad", "VALID", True),
        ("", "auto_pad", "NOTSET", True),
    ],
)
def test_an_attribute_has_its_value_or_its_default(
    attributes: str, name: str, wanted: Any, has: bool
) -> None:
    node = made_by(parsed(CONV.format(attributes)), "y")
    assert has_attribute(node, name, wanted) is has


def test_a_kernel_of_a_weight_of_unknown_shape_has_no_size() -> None:
    text = "(float[1,2,8,8] x, float[4] v, int64[k] s) => (y) { w = Reshape(v, s)  y = Conv(x, w) }"
    assert not has_attribute(made_by(parsed(text), "y"), "kernel_size", (3, 3))


def test_the_axes_of_a_transpose_are_its_perm() -> None:
    text = "(float[2,3] x) => (float[3,2] y) { y = Transpose<perm=[1,0]>(x) }"
    transpose = made_by(parsed(text), "y")
    assert has_attribute(transpose, "axes", (1, 0))
    assert not has_attribute(transpose, "axes", [0, 1])
    assert has_attribute(transpose, "perm", [1, 0])


def test_a_pool_has_its_window() -> None:
    node = made_by(
        parsed("(float[1,1,4,4] x) => (float[1,1,3,3] y) { y = MaxPool<kernel_shape=[2,2]>(x) }"),
        "y",
    )
    assert has_attribute(node, "pool_size", (2, 2))
    assert has_attribute(node, "ceil_mode", 0)


def test_an_attribute_that_no_operator_has_is_an_error() -> None:
    node = made_by(parsed(CONV.format("")), "y")
    with pytest.raises(
        UsageError, match="has_attr: Conv has no attribute 'stride'; did you mean 'strides'"
    ):
        has_attribute(node, "stride", 1)


def test_an_operator_without_a_schema_has_what_its_node_has() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
        g (float[2] x) => (float[2] y) { y = my.Scale<factor=3, steps=[1,2]>(x) }"""
    node = made_by(Model.from_proto(onnx.parser.parse_model(text)), "y")
    assert has_attribute(node, "factor", 3)
    assert not has_attribute(node, "factor", 2)
    assert has_attribute(node, "steps", [1, 2])
    assert not has_attribute(node, "other", 1)
    assert not has_attribute(node, "other", [1])
    assert relay_name(node) == "my::Scale"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("(float[1,2,8] x, float[4,2,3] w) => (y) { y = Conv(x, w) }", "nn.conv1d"),
        ("(float[1,2,8,8] x, float[4,2,3,3] w) => (y) { y = Conv(x, w) }", "nn.conv2d"),
        (
            "(float[1,2,8,8,8] x, float[4,2,3,3,3] w) => (y) { y = ConvTranspose(x, w) }",
            "nn.conv3d_transpose",
        ),
        ("(float[1,2,8] x) => (y) { y = MaxPool<kernel_shape=[2]>(x) }", "nn.max_pool1d"),
        ("(float[1,2,8,8] x) => (y) { y = AveragePool<kernel_shape=[2,2]>(x) }", "nn.avg_pool2d"),
        ("(float[2] x) => (y) { y = Add(x, x) }", "add"),
        ("(float[2,2] x) => (y) { y = MatMul(x, x) }", "nn.matmul"),
        ("(float[2,2] x) => (y) { y = Gemm(x, x) }", "nn.dense"),
        ("(float[2,2] x) => (y) { y = Gelu(x) }", "Gelu"),
        ("(float[2,2] x) => (y) { y = ReduceSum(x) }", "sum"),
    ],
)
def test_a_node_has_the_name_of_tvm(text: str, name: str) -> None:
    assert relay_name(made_by(parsed(text), "y")) == name


def test_a_convolution_of_unknown_rank_is_of_two_axes() -> None:
    model = parsed(
        """(float[1,2,8,8] x, int64[k] s, float[4,2,3,3] w) => (y) {
            a = Reshape(x, s)  y = Conv(a, w) }"""
    )
    assert relay_name(made_by(model, "y")) == "nn.conv2d"


def test_an_attribute_may_have_several_names() -> None:
    assert attribute_names("padding") == ("padding", "pads")
    assert attribute_names("axes") == ("axes", "axes", "perm")
    assert attribute_names("strides") == ("strides", "strides")


def node_of(text: str, inputs: str = "float[1,2,8,8] x") -> Any:
    """Return the last node of a graph."""
    zeros = ",".join(["0"] * 48)
    constants = f"float[4,2,3,2] w = {{{zeros}}}"
    return parsed(f"({inputs}) => (y) <{constants}> {{ {text} }}").main.nodes[-1]


def test_names_and_attributes_by_tvm_and_onnx() -> None:
    names = {
        "relay": lambda *args: relay_name(node_of(*args)),
        "has": lambda text, name, wanted: has_attribute(node_of(text), name, wanted),
        "names": attribute_names,
        "ops": operators_of,
    }
    assert_values(__file__, names)
