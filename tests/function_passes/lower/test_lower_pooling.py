import numpy as np
import pytest

from tests.analysis.legalization.compared import assert_close, assert_equal, floats
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "lower_pooling"


def test_windows_are_reduced() -> None:
    assert_rewrites(
        PASS,
        "(float[N,1,4] x) => (float[N,1,2] y) { y = MaxPool<kernel_shape=[2],strides=[2]>(x) }",
        "(float[N,1,4] x) => (float[N,1,2] y) <int64[3] f = {0,1,4}, int64[4] i = {0,2,1,3}, "
        "int64[4] c = {0,1,2,2}, int64[1] a = {2}, int64[3] o = {0,1,2}> { v = Reshape(x, f) "
        "g = Gather<axis=2>(v, i) h = Reshape(g, c) r = ReduceMax<keepdims=0>(h, a) "
        "y = Reshape(r, o) }",
    )


def test_one_window_is_the_image() -> None:
    assert_rewrites(
        PASS,
        "(float[N,2,4,3] x) => (float[N,2,1,1] y) { y = AveragePool<kernel_shape=[4,3]>(x) }",
        "(float[N,2,4,3] x) => (float[N,2,1,1] y) <int64[2] a = {2,3}> { y = ReduceMean(x, a) }",
    )


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize(
    "attributes",
    [
        "kernel_shape=[2,2],strides=[2,2]",
        "kernel_shape=[3,2],strides=[2,2],pads=[1,0,1,1]",
        "kernel_shape=[3,3],strides=[2,3],ceil_mode=1,pads=[1,1,1,1]",
        "kernel_shape=[3,2],strides=[2,2],ceil_mode=1,dilations=[2,1]",
        'kernel_shape=[3,2],auto_pad="SAME_UPPER"',
        'kernel_shape=[2,3],strides=[2,2],auto_pad="SAME_LOWER"',
    ],
)
def test_attributes(operator: str, attributes: str) -> None:
    text = f"(float[N,3,7,8] x) => (float[N,3,H,W] y) {{ y = {operator}<{attributes}>(x) }}"
    assert operator not in assert_close(PASS, text, {"x": floats(2, 3, 7, 8)})


def test_padding_may_count() -> None:
    for more in ("", ",ceil_mode=1,strides=[2,3]"):
        attributes = f"kernel_shape=[3,3],pads=[1,1,1,1],count_include_pad=1{more}"
        text = f"(float[1,3,7,8] x) => (float[1,3,H,W] y) {{ y = AveragePool<{attributes}>(x) }}"
        assert_close(PASS, text, {"x": floats(1, 3, 7, 8)})


def test_norms() -> None:
    text = "(float[1,3,7] x) => (float[1,3,L] y) { y = LpPool<kernel_shape=[3],p=1,pads=[1,1]>(x) }"
    assert "ReduceL1" in assert_close(PASS, text, {"x": floats(1, 3, 7)})


def test_padding_is_less_than_all_numbers() -> None:
    """Zeros as padding, as in some optimisers, would be the largest."""
    text = "(T[1,1,4] x) => (T[1,1,4] y) { y = MaxPool<kernel_shape=[3],pads=[1,1]>(x) }"
    x = np.array([[[-128, -128, -128, -3]]])
    assert_equal(PASS, text.replace("T", "int8"), {"x": x.astype(np.int8)})
    assert_equal(PASS, text.replace("T", "float"), {"x": x.astype(np.float32)})


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            "(float[1,1,4] x) => (float[1,1,3] y, int64[1,1,3] i) "
            "{ y, i = MaxPool<kernel_shape=[2]>(x) }",
            "the indices are an output",
        ),
        (
            "(float[1,1,4] x) => (float[1,1,3] y) { y = LpPool<kernel_shape=[2],p=3>(x) }",
            "no reduction has p = 3",
        ),
        (
            "(float[1,1,L] x) => (float[1,1,M] y) { y = MaxPool<kernel_shape=[2]>(x) }",
            "sizes of image and result are not known",
        ),
        (
            "(float[1,1,5] x) => (float[1,1,3] y) { y = AveragePool<kernel_shape=[2],strides=[2],"
            "ceil_mode=1,count_include_pad=1>(x) }",
            "runtimes count windows beyond the padding differently",
        ),
        (
            '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> g (float[1,1,4] x) => '
            "(float[1,1,3] y) { a = own.A(x) y = MaxPool<kernel_shape=[2]>(a) }",
            "the dtype of x is not known",
        ),
    ],
)
def test_it_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
