"""Gradients of operators that move or repeat elements."""

from typing import Any

import numpy as np
import onnx
import pytest

from tests.extensions.gradients.differences import check, gradients_of
from tiered import get_pass
from tiered.extensions.gradients import NoGradient
from tiered.testing import parse

MOVEMENTS = [
    "(double[3,4] x) => (double[2,6] y) <int64[2] s = {2,6}> { y = Reshape(x, s) }",
    "(double[N,4,2] x) => (double[N,8] y) { y = Flatten(x) }",
    "(double[3,1,4] x) => (double[3,4] y) { y = Squeeze(x) }",
    "(double[3,4] x) => (double[3,1,4] y) <int64[1] s = {1}> { y = Unsqueeze(x, s) }",
    "(double[3,4,2] x) => (double[2,3,4] y) { y = Transpose <perm = [2,0,1]> (x) }",
    "(double[3,1] x) => (double[2,3,4] y) <int64[3] s = {2,3,4}> { y = Expand(x, s) }",
    "(double[3,2] x) => (double[6,6] y) <int64[2] s = {2,3}> { y = Tile(x, s) }",
    "(double[N,2] x) => (double[M,6] y) <int64[2] s = {2,3}> { y = Tile(x, s) }",
    "(double[3,2] a, double[3,4] b) => (double[3,6] y) { y = Concat <axis = 1> (a, b) }",
    "(double[3,K] a, double[3,L] b) => (double[3,M] y) { y = Concat <axis = -1> (a, b) }",
    "(double[3,6] x) => (double[3,2] a, double[3,2] b) "
    "{ a, c, b = Split <axis = 1, num_outputs = 3> (x) }",
    "(double[5,6] x) => (double[2,3] y) <int64[2] s = {1,-4}, int64[2] e = {3,-1}> "
    "{ y = Slice(x, s, e) }",
    "(double[5,6] x) => (double[2,6] y) <int64[1] s = {-1}, int64[1] e = {0}, int64[1] a = {0}, "
    "int64[1] t = {-2}> { y = Slice(x, s, e, a, t) }",
    "(double[N,6] x) => (double[M,6] y) <int64[1] s = {-2}, int64[1] e = {9}, int64[1] a = {0}> "
    "{ y = Slice(x, s, e, a) }",
    "(double[3,3] x) => (double[3,3] y) { y = Trilu <upper = 0> (x) }",
    "(double[1,8,2,3] x) => (double[1,2,4,6] y) { y = DepthToSpace <blocksize = 2> (x) }",
    "(double[N,8,2,3] x) => (double[N,2,4,6] y) "
    '{ y = DepthToSpace <blocksize = 2, mode = "CRD"> (x) }',
    "(double[1,2,4,6] x) => (double[1,8,2,3] y) { y = SpaceToDepth <blocksize = 2> (x) }",
    "(double[4,3] x) => (double[4,3] y) <int64[3] l = {4,2,1}> { y = ReverseSequence(x, l) }",
    "(double[4,3] x) => (double[2,3] y) <bool[4] c = {1,0,1,0}> { y = Compress <axis = 0> (x, c) }",
]


@pytest.mark.parametrize("text", MOVEMENTS)
def test_movements(text: str) -> None:
    check(text)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_padding(mode: str) -> None:
    check(
        f"(double[3,4] x) => (double[4,7] y) <int64[4] p = {{1,2,0,1}}> "
        f'{{ y = Pad <mode = "{mode}"> (x, p) }}'
    )


def test_padding_with_an_operand() -> None:
    check(
        "(double[3,4] x, double[1] v) => (double[4,7] y) <int64[4] p = {1,2,0,1}> {"
        " s = Squeeze(v)  y = Pad(x, p, s) }"
    )


@pytest.mark.parametrize("opset", [10, 12, 13])
def test_the_blocks_of_each_opset(opset: int) -> None:
    # Before opset 11 a DepthToSpace had no mode: it was what DCR is now.
    text = """(float[1,8,1,1] x) => (float[1,2,2,2] y) { y = DepthToSpace <blocksize = 2> (x) }"""
    x = np.arange(8).reshape(1, 8, 1, 1)
    found = gradients_of(text, x=x, seed=x, opset=opset, in_float=True)["x"]
    np.testing.assert_array_equal(found.ravel(), [0, 4, 1, 5, 2, 6, 3, 7])


@pytest.mark.parametrize("opset", [10, 13])
def test_the_depths_of_each_opset(opset: int) -> None:
    text = """(float[1,2,2,2] x) => (float[1,8,1,1] y) { y = SpaceToDepth <blocksize = 2> (x) }"""
    x = np.arange(8).reshape(1, 2, 2, 2)
    found = gradients_of(text, x=x, seed=x, opset=opset, in_float=True)["x"]
    np.testing.assert_array_equal(found.ravel(), [0, 2, 4, 6, 1, 3, 5, 7])


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        ("int64[1] s = {1}, int64[1] e = {3}", [0, 1, 10, 0]),
        ("int64[1] s = {-2}, int64[1] e = {99}", [0, 0, 1, 10]),
        ("int64[1] s = {0}, int64[1] e = {2}", [1, 10, 0, 0]),
        ("int64[1] s = {3}, int64[1] e = {0}, int64[1] a = {0}, int64[1] t = {-2}", [0, 10, 0, 1]),
        ("int64[1] s = {0}, int64[1] e = {4}, int64[1] a = {-1}, int64[1] t = {2}", [1, 0, 10, 0]),
    ],
)
def test_what_a_slice_cut_off_gets_zeros(slices: str, expected: list[float]) -> None:
    operands = "x, s, e, a, t" if " a = " in slices else "x, s, e"
    text = f"(double[4] x) => (double[2] y) <{slices}> {{ y = Slice({operands}) }}"
    found = gradients_of(text, x=[1, 2, 3, 4], seed=[1, 10])["x"]
    np.testing.assert_array_equal(found, expected)


def test_an_empty_slice_has_the_gradient_zero() -> None:
    text = """(double[4] x) => (double[0] y) <int64[1] s = {3}, int64[1] e = {1}>
        { y = Slice(x, s, e) }"""
    np.testing.assert_array_equal(gradients_of(text, x=[1, 2, 3, 4])["x"], np.zeros(4))


@pytest.mark.parametrize("ends", [", int64[1] e", ""])
def test_a_slice_with_bounds_known_at_run_time(ends: str) -> None:
    constant = "" if ends else "<int64[1] e = {3}>"
    text = f"(double[4] x, int64[1] s{ends}) => (double[M] y) {constant} {{ y = Slice(x, s, e) }}"
    feeds: dict[str, Any] = {"s": [1], **({"e": [3]} if ends else {})}
    found = gradients_of(text, x=[1, 2, 3, 4], seed=[1, 10], **feeds)["x"]
    np.testing.assert_array_equal(found, [0, 1, 10, 0])


def test_repetitions_by_zero() -> None:
    text = "(double[2] x) => (double[0] y) <int64[1] s = {0}> { y = Tile(x, s) }"
    np.testing.assert_array_equal(gradients_of(text, x=[1, 2])["x"], [0, 0])


@pytest.mark.parametrize("times", ["<int64[1] s = {2}>", ""])
def test_repetitions_add_up(times: str) -> None:
    operand = "" if times else ", int64[1] s"
    text = f"(double[2] x{operand}) => (double[M] y) {times} {{ y = Tile(x, s) }}"
    feeds: dict[str, Any] = {} if times else {"s": [2]}
    found = gradients_of(text, x=[1, 2], seed=[1, 10, 100, 1000], **feeds)["x"]
    np.testing.assert_array_equal(found, [101, 1010])


def test_the_parts_of_a_split_that_are_not_read_get_zeros() -> None:
    text = """(double[3] x) => (double[1] y) { a, y, b = Split <axis = 0, num_outputs = 3> (x) }"""
    np.testing.assert_array_equal(gradients_of(text, x=[1, 2, 3])["x"], [0, 1, 0])


def test_a_split_with_an_absent_output_has_no_gradient() -> None:
    text = '(float[3] x) => (float[1] y) { y, "", b = Split <axis = 0, num_outputs = 3> (x) }'
    with pytest.raises(NoGradient, match="one of its outputs is absent"):
        get_pass("gradient", seed="input")(parse(text, opset=21))


@pytest.mark.parametrize(
    ("pads", "size", "of_x", "of_value"),
    [
        ("1,2", 6, [10, 100, 1000], 1 + 1e4 + 1e5),
        ("0,0", 3, [1, 10, 100], 0),
        ("-1,1", 3, [0, 1, 10], 100),
        ("1,-1", 3, [10, 100, 0], 1),
    ],
)
@pytest.mark.parametrize("axes", ["", ", int64[1] a = {0}"])
def test_pads_and_crops(
    pads: str, size: int, of_x: list[float], of_value: float, axes: str
) -> None:
    operands = "x, p, v, a" if axes else "x, p, v"
    text = f"""(double[3] x, double v) => (double[{size}] y) <int64[2] p = {{{pads}}}{axes}>
        {{ y = Pad({operands}) }}"""
    seed = 10.0 ** np.arange(size)
    found = gradients_of(text, x=[1, 2, 3], v=7, seed=seed)
    np.testing.assert_array_equal(found["x"], of_x)
    assert found["v"] == of_value


def test_pads_known_at_run_time() -> None:
    text = "(double[3] x, int64[2] p) => (double[M] y) { y = Pad(x, p) }"
    found = gradients_of(text, x=[1, 2, 3], p=[1, 0], seed=[1, 10, 100, 1000])["x"]
    np.testing.assert_array_equal(found, [10, 100, 1000])


def test_copies_of_the_edge_add_up() -> None:
    text = """(double[3] x) => (double[5] y) <int64[2] p = {1,1}, int64[1] a = {-1}>
        { y = Pad <mode = "edge"> (x, p, "", a) }"""
    found = gradients_of(text, x=[1, 2, 3], seed=10.0 ** np.arange(5))["x"]
    np.testing.assert_array_equal(found, [11, 100, 11000])


def test_elements_that_are_not_kept_get_zeros() -> None:
    for axis, shape, expected in (
        ("", "2", [[0, 1], [0, 10]]),
        ("<axis = 1>", "2,1", [[0, 1], [0, 10]]),
        ("<axis = 0>", "1,2", [[0, 0], [1, 10]]),
    ):
        mask = "bool[4] c = {0,1,0,1}" if not axis else "bool[2] c = {0,1}"
        text = f"(double[2,2] x) => (double[{shape}] y) <{mask}> {{ y = Compress {axis} (x, c) }}"
        found = gradients_of(text, x=[[1, 2], [3, 4]], seed=[1, 10])["x"]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("settings", "expected"), [
    ("", [[1, 2], [0, 4]]), ("<upper = 0>", [[1, 0], [3, 4]])
])  # fmt: skip
def test_the_other_triangle_gets_zeros(settings: str, expected: list[list[float]]) -> None:
    text = f"(double[2,2] x) => (double[2,2] y) {{ y = Trilu {settings} (x) }}"
    found = gradients_of(text, x=[[1, 1], [1, 1]], seed=[[1, 2], [3, 4]])["x"]
    np.testing.assert_array_equal(found, expected)


def test_a_triangle_off_the_diagonal() -> None:
    text = "(double[2,2] x) => (double[2,2] y) <int64 k = {1}> { y = Trilu(x, k) }"
    found = gradients_of(text, x=[[1, 1], [1, 1]], seed=[[1, 2], [3, 4]])["x"]
    np.testing.assert_array_equal(found, [[0, 2], [0, 0]])


def test_sequences_that_are_reversed() -> None:
    text = """(double[2,3] x) => (double[2,3] y) <int64[2] l = {2,3}>
        { y = ReverseSequence <batch_axis = 0, time_axis = 1> (x, l) }"""
    found = gradients_of(text, x=np.zeros((2, 3)), seed=[[1, 2, 3], [4, 5, 6]])["x"]
    np.testing.assert_array_equal(found, [[2, 1, 3], [6, 5, 4]])


def test_only_the_wanted_parts_of_a_concat_get_slices() -> None:
    text = "(float[2] a, float[2] b) => (float[4] y) { y = Concat <axis = 0> (a, b) }"
    made = get_pass("gradient", seed="input", with_respect_to=["b"])(parse(text))
    assert isinstance(made, onnx.ModelProto)
    assert [node.op_type for node in made.graph.node].count("Slice") == 1
