"""The first forms of operators, of opsets 1 to 6, and what they can and cannot say."""

from typing import Any

import onnx
import pytest

from tests.graph.opset.texts import at
from tiered import Model, Node, PassContext, get_pass
from tiered.support.errors import OpsetError
from tiered.testing import parse


def moved(text: str, before: int, after: int, **attributes: Any) -> Node:
    """Convert a model of one node, with attributes of its own opset; return the last node."""
    proto = parse(at(before, text))
    proto.graph.node[0].attribute.extend(
        onnx.helper.make_attribute(key, value) for key, value in attributes.items()
    )
    of = Model.from_proto(proto)
    get_pass("convert_opset", to=after).apply(of, PassContext.isolated())
    return of.main.nodes[-1]


def slope(x: str, sizes: str, numbers: str) -> str:
    return (
        f"(float[{x}] x) => (float[{x}] y) <float[{sizes}] s = {{{numbers}}}> {{ y = PRelu(x, s) }}"
    )


@pytest.mark.parametrize(
    ("x", "sizes", "numbers"),
    [("2,3,4,4", "1", "0.5"), ("2,3", "3", "1, 2, 3"), ("2,3", "1", "0.5")],
)
@pytest.mark.parametrize(("before", "after"), [(6, 7), (7, 6)])
def test_a_slope_for_all_or_for_the_columns_of_a_matrix_is_the_same_in_both_forms(
    x: str, sizes: str, numbers: str, before: int, after: int
) -> None:
    assert moved(slope(x, sizes, numbers), before, after).op_type == "PRelu"


@pytest.mark.parametrize(
    ("x", "sizes", "numbers"),
    [
        ("2,3,4,3", "3", "1, 2, 3"),  # of the last axis since 7
        ("2,3,4,4", "3,1,1", "1, 2, 3"),
        ("2,3", "2,1", "1, 2"),
    ],
)
def test_another_slope_blocks_before_7(x: str, sizes: str, numbers: str) -> None:
    with pytest.raises(OpsetError, match="has a slope for each channel"):
        moved(slope(x, sizes, numbers), 7, 6)


def test_a_slope_for_each_channel_gets_the_axes_behind_it() -> None:
    node = moved(slope("2,3,4,3", "3", "1, 2, 3"), 6, 7)
    read = node.input(1)
    assert read is not None
    assert read.shape == (3, 1, 1)


ADD = "(float[{x}] x, float[{z}] z) => (float[{x}] y) {{ y = Add(x, z) }}"


@pytest.mark.parametrize(
    ("x", "z", "said"),
    [("2,3", "2,3", None), ("2,3", "3", 1), ("4,2,3", "2,3", 1), ("2,3", "", 1)],
)
def test_the_last_dims_are_broadcast_where_it_is_said(x: str, z: str, said: int | None) -> None:
    node = moved(ADD.format(x=x, z=z).replace("float[]", "float"), 7, 6)
    written = {each.name: each.i for each in node.proto.attribute}
    assert written.get("broadcast") == said


@pytest.mark.parametrize(("x", "z"), [("2,3", "2,1"), ("2,3", "1"), ("2,N", "M"), ("3", "2,3")])
def test_other_broadcasts_block(x: str, z: str) -> None:
    text = ADD.format(x=x, z=z).replace(f"(float[{x}] y)", "(float[A,B] y)")
    with pytest.raises(OpsetError, match="broadcasts more than the last dims"):
        moved(text, 7, 6)


@pytest.mark.parametrize(
    ("z", "axis"), [("2,3", 0), ("3", 1), ("", 0)], ids=["all", "the last", "a scalar"]
)
def test_an_axis_that_counts_from_the_last_dim_goes(z: str, axis: int) -> None:
    text = ADD.format(x="2,3", z=z).replace("float[]", "float")
    node = moved(text, 6, 7, broadcast=1, axis=axis)
    assert list(node.proto.attribute) == []


def test_an_axis_in_front_of_others_becomes_dims_of_1_behind() -> None:
    node = moved(ADD.format(x="3,2", z="3"), 6, 7, broadcast=1, axis=0)
    read = node.input(1)
    assert read is not None
    assert read.shape == (3, 1)


GEMM = "(float[2,3] x, float[3,4] w, float[{z}] b) => (float[2,4] y) {{ y = Gemm(x, w, b) }}"


@pytest.mark.parametrize(("z", "to"), [("4", 6), ("1", 5), ("2,4", 6), ("1,4", 6)])
def test_a_bias_is_said_to_be_broadcast(z: str, to: int) -> None:
    assert moved(GEMM.format(z=z), 7, to).attr("broadcast") == 1


def test_a_bias_of_a_matrix_blocks_before_6() -> None:
    with pytest.raises(OpsetError, match="needs a bias of a known rank"):
        moved(GEMM.format(z="1,4"), 7, 5)


UPSAMPLE = "(float[1,1,2,2] x) => (float[A,B,C,D] y) {{ y = Upsample<{}>(x) }}"


@pytest.mark.parametrize("before", [7, 8])
def test_scales_of_images_have_names_of_their_own(before: int) -> None:
    text = UPSAMPLE.format('mode = "linear", scales = [1.0, 1.0, 2.0, 3.0]')
    node = moved(text, before, 6)
    assert [node.attr(key) for key in ("height_scale", "width_scale", "mode")] == [2, 3, "bilinear"]


@pytest.mark.parametrize("scales", ["2.0, 1.0, 2.0, 3.0", "1.0, 2.0, 2.0, 3.0"])
def test_scales_of_other_axes_block(scales: str) -> None:
    with pytest.raises(OpsetError, match="scales height and width of images alone"):
        moved(UPSAMPLE.format(f"scales = [{scales}]"), 7, 6)
