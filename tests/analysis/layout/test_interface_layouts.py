"""Inputs and outputs in the layout of the operators that they lead to."""

import numpy as np
import onnx
import pytest

from tiered import Pass, PassContext, Sequential, UsageError, get_pass
from tiered.runtime import Session, make_inputs
from tiered.testing import parse

CONVS = (
    "(float[1,3,5,5] x, float[1,2,5,5] bias) => (float[1,2,5,5] y, float[1,10,5] z) "
    "<float[2,3,1,1] w = {1,2,3,4,5,6}, float[2,2,1,1] v = {1,2,3,4}, int64[3] s = {1,10,5}> "
    "{ a = Conv(x, w)  b = Add(a, bias)  c = Conv(b, v)  z = Reshape(c, s)  y = Relu(c) }"
)


def converting(layout: str = "NHWC") -> Pass:
    return get_pass("convert_layout", desired_layouts={"Conv": layout}, io_layout="convert")


def dims(proto: onnx.ModelProto) -> dict[str, list[int]]:
    infos = (*proto.graph.input, *proto.graph.output)
    return {i.name: [dim.dim_value for dim in i.type.tensor_type.shape.dim] for i in infos}


def operators(proto: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in proto.graph.node]


def assert_same(before: onnx.ModelProto, after: onnx.ModelProto, perm: tuple[int, ...]) -> None:
    """Assert that a model computes the same of images in another order."""
    onnx.checker.check_model(after, full_check=True)
    shapes = dims(before), dims(after)
    feeds = make_inputs(before, seed=1).feeds
    permuted_value = {
        name: array if shapes[0][name] == shapes[1][name] else array.transpose(perm)
        for name, array in feeds.items()
    }
    expected, actual = Session(before).run(feeds), Session(after).run(permuted_value)
    for name, array in expected.items():
        same = shapes[0][name] == shapes[1][name]
        wanted = array if same else array.transpose(perm)
        assert np.allclose(wanted, actual[name], rtol=1e-5, atol=1e-5), name


def test_images_come_in_and_go_out_with_channels_last() -> None:
    proto = parse(CONVS)
    result = converting().apply(proto)
    assert dims(result) == {
        "x": [1, 5, 5, 3],
        "bias": [1, 5, 5, 2],
        "y": [1, 5, 5, 2],
        "z": [1, 10, 5],
    }
    assert [value.name for value in result.graph.input] == ["x", "bias"]
    assert [value.name for value in result.graph.output] == ["y", "z"]
    # Only what a Reshape reads in ONNX's order is turned.
    assert operators(result).count("Transpose") == 1
    assert_same(proto, result, (0, 2, 3, 1))


def test_a_model_of_nhwc_images_takes_those_of_onnx() -> None:
    proto = parse(
        "(float[1,5,5,3] x) => (float[1,5,5,2] y) <float[2,3,1,1] w = {1,2,3,4,5,6}> { r = Abs(x)  "
        "a = Transpose<perm=[0,3,1,2]>(r)  c = Conv(a, w)  y = Transpose<perm=[0,2,3,1]>(c) }"
    )
    result = converting("NCHW").apply(proto)
    assert dims(result) == {"x": [1, 3, 5, 5], "y": [1, 2, 5, 5]}
    assert operators(result) == ["Abs", "Conv"]
    assert_same(proto, result, (0, 3, 1, 2))


def test_remarks_say_what_changed() -> None:
    text = CONVS.replace("float[1,3,5,5] x", "float[?,3,5,H] x").replace("[1,2,5,5]", "[?,2,5,H]")
    for proto, said in (
        (CONVS, ["input 'x' is [1,5,5,3]", "input 'bias' is [1,5,5,2]", "output 'y' is [1,5,5,2]"]),
        (text, ["input 'x' is [?,5,H,3]", "input 'bias' is [?,5,H,2]", "output 'y' is [?,5,H,2]"]),
    ):
        with PassContext(opt_level=3) as ctx:
            Sequential([converting()])(parse(proto))
        notes = [str(remark) for remark in ctx.remarks if "permuted" in str(remark)]
        by = "now, permuted by [0, 2, 3, 1]"
        assert notes == [f"convert_layout: {each} {by}" for each in said]


def test_an_input_that_is_an_output_too_stays() -> None:
    text = """(float[1,3,5,5] x) => (float[1,2,5,5] y, float[1,3,5,5] x)
        <float[2,3,1,1] w = {1,2,3,4,5,6}> { y = Conv(x, w) }"""
    result = converting().apply(parse(text))
    assert dims(result) == {"x": [1, 3, 5, 5], "y": [1, 5, 5, 2]}


def test_an_input_with_a_default_stays() -> None:
    text = CONVS.replace("float[1,2,5,5] bias)", "float[1,2,1,1] bias = {1,2})")
    result = converting().apply(parse(text))
    assert dims(result)["bias"] == [1, 2, 1, 1]
    assert_same(parse(text), result, (0, 2, 3, 1))


def test_an_input_that_is_no_image_stays() -> None:
    text = CONVS.replace("float[1,2,5,5] bias", "float[5] bias")
    result = converting().apply(parse(text))
    assert dims(result) == {"x": [1, 5, 5, 3], "bias": [5], "y": [1, 5, 5, 2], "z": [1, 10, 5]}


def test_a_second_run_changes_nothing() -> None:
    result = converting().apply(parse(CONVS))
    again = converting().apply(result)
    assert again.SerializeToString() == result.SerializeToString()


def test_without_such_operators_nothing_changes() -> None:
    proto = parse("(float[1,3,5,5] x) => (float[1,3,5,5] y) { y = Relu(x) }")
    result = converting().apply(proto)
    assert result.SerializeToString() == proto.SerializeToString()


def test_only_this_option_lets_it_change_the_interface() -> None:
    assert converting().info.changes_interface
    assert not converting().with_options(io_layout="keep").info.changes_interface
    assert not get_pass("convert_layout").info.changes_interface


def test_the_layout_is_known() -> None:
    with pytest.raises(UsageError, match="'NCHWc' is no layout"):
        converting("NCHWc").apply(parse(CONVS))
