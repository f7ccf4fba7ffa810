"""Cuts: which parts of its operands a part of a result needs, and how the part is written."""

import pytest

from tiered import Model
from tiered.analysis.axes.axis_map import AxisMap, WindowSteps
from tiered.analysis.axes.node_cut import NodeCut, OperandWindow, cut_along, node_cut
from tiered.analysis.axes.rules import axis_map
from tiered.testing import parse


def cut(text: str, axis: int) -> NodeCut | None:
    """Return the cut of the first node that is no constant; the text may be of any opset."""
    nodes = Model.from_proto(parse(text)).main.nodes
    return node_cut(next(node for node in nodes if node.op_type != "Constant"), axis)


def test_an_operand_that_broadcasts_is_taken_whole() -> None:
    text = "(float[2,3] x, float[3] b, float[2,1] c) => (float[2,3] y) { y = Sum(x, b, c) }"
    assert cut(text, 0) == NodeCut(0, (OperandWindow(0, 2), None, OperandWindow(0, 2)))
    assert cut(text, 1) == NodeCut(1, (OperandWindow(1, 3), OperandWindow(0, 3), None))


def test_a_window_takes_what_its_kernel_reaches() -> None:
    found = cut(
        "(float[1,1,9] x, float[1,1,3] k) => (float[1,1,5] y)"
        " { y = Conv<strides=[2], pads=[1,2], dilations=[2]>(x, k) }",
        2,
    )
    window = OperandWindow(2, 9, WindowSteps(stride=2, pad=1, extent=5))
    assert found == NodeCut(2, (window, None), "pads")
    assert (window.range(0, 2), window.pads(0, 2)) == ((0, 6), (1, 0))
    assert (window.range(3, 5), window.pads(3, 5)) == ((5, 9), (0, 3))


def test_the_addend_of_a_convolution_has_no_window() -> None:
    text = """(float[1,2,4] x, float[2,2,3] k, float[2] b, float[1,2,2] z) => (float[1,2,2] y)
        { y = com.microsoft.FusedConv<activation = "Relu">(x, k, b, z) }"""
    model = Model.from_proto(parse(text, opset=17))
    # Only operators that are known to draw no random numbers are computed in parts.
    assert node_cut(model.main.nodes[0], 2) is None
    axes = axis_map(model.main.nodes[0])
    assert isinstance(axes, AxisMap)
    found = cut_along(model.main.nodes[0], axes, 2)
    assert found is not None
    assert found.windows == (
        OperandWindow(2, 4, WindowSteps(extent=3)),
        None,
        None,
        OperandWindow(2, 2),
    )


@pytest.mark.parametrize("line", ["Reshape(x, s)", "Expand(x, s)"])
def test_a_shape_is_written_for_the_part(line: str) -> None:
    text = f"(float[2,1,3] x) => (float[2,1,3] y) <int64[3] s = {{2,1,3}}> {{ y = {line} }}"
    found = cut(text, 2)
    assert found == NodeCut(2, (OperandWindow(2, 3), None), "shape")


@pytest.mark.parametrize(
    ("text", "axis"),
    [
        ("(float[2,3] x) => (float[2,3] y) { y = Softmax(x) }", 1),
        ("(float[2,3] x) => (float[2,1] y) <int64[1] a = {1}> { y = ReduceSum(x, a) }", 1),
        ("(float[2,N] x) => (float[2,N] y) { y = Tanh(x) }", 0),
        ("(float[2,3] x) => (float[2,1,3] y) <int64[1] a = {1}> { y = Unsqueeze(x, a) }", 1),
        ("(float[2,3] x) => (float[2,1] y, int64[2,1] z) <int64[1] k = {1}> { y, z = TopK(x, k) }",
         0),
        ('<ir_version: 7, opset_import: ["": 11]> g (float[2,3,2] x) => (float[2,3,2] y)'
         " { y = Softmax<axis=1>(x) }", 0),
        ("(float[2,3] x) => (int64[2,1] z) <int64[1] k = {1}> { , z = TopK(x, k) }", 0),
        ("(float[2,3] x, int64 at) => (float[2,3] y) { y = CumSum(x, at) }", 0),
    ],
)  # fmt: skip
def test_what_has_no_parts(text: str, axis: int) -> None:
    assert cut(text, axis) is None


def test_an_output_that_the_map_does_not_describe_has_no_parts() -> None:
    (node,) = Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Neg(x) }")).main.nodes
    assert cut_along(node, AxisMap(((0,),), (None,)), 0) is None
    assert cut_along(node, AxisMap(((0,),), ((None,),)), 0) is None


def test_a_scale_that_exceeds_the_normalised_axes_is_cut_too() -> None:
    text = "(float[4,6,5] x, float[6,5] s) => (float[4,6,5] y) { y = LayerNormalization(x, s) }"
    found = cut(text, 1)
    assert found == NodeCut(1, (OperandWindow(1, 6), OperandWindow(0, 6)))


def test_a_type_that_is_copied_is_not_cut() -> None:
    found = cut("(float[4,3] x, double[4,3] t) => (double[4,3] y) { y = CastLike(x, t) }", 0)
    assert found == NodeCut(0, (OperandWindow(0, 4), None))
