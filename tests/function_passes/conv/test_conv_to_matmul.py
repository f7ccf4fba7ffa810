import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "conv_to_matmul"
CONSTANTS = (
    *("int64[2] km = {3,2}", "int64[3] flat = {0,0,20}", "int64[4] back = {0,0,4,5}"),
    *("float[3,2] m = {1,2,3,4,5,6}", "float[3,2,1,1] w = {1,2,3,4,5,6}"),
    *("float[3,1] c = {7,8,9}", "float[3] b = {7,8,9}"),
)


def graph(nodes: str, x: str = "float[2,2,4,5] x") -> str:
    return f"({x}) => (float[{x[6]},3,4,5] y) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


def test_channels_of_pixels_are_multiplied() -> None:
    assert_rewrites(
        PASS,
        graph("y = Conv(x, w)"),
        graph("p = Reshape(x, flat) q = MatMul(m, p) y = Reshape(q, back)"),
    )


def test_a_bias_is_added_to_each_channel() -> None:
    assert_rewrites(
        PASS,
        graph("y = Conv<kernel_shape=[1,1], pads=[0,0,0,0]>(x, w, b)"),
        graph("p = Reshape(x, flat) q = MatMul(m, p) r = Add(q, c) y = Reshape(r, back)"),
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            graph("y = Conv<pads=[1,1,1,1]>(x, k)", "float[N,2,4,5] x, float[3,2,3,3] k"),
            "the kernel size may not be 1",
        ),
        (
            graph("y = Conv<pads=[1,1,0,0]>(x, w)").replace("4,5] y", "5,6] y"),
            "the image is padded",
        ),
        (
            graph("y = Conv<strides=[2,2]>(x, w)").replace("4,5] y", "2,3] y"),
            "it has groups or strides",
        ),
        (
            graph("y = Conv(x, w)", "float[2,2,H,5] x").replace("4,5] y", "H,5] y"),
            "image and kernel sizes are not known",
        ),
        (
            graph("y = Conv(x, w)", "float[N,2,4,5] x"),
            "onnxruntime's kernel rejects an empty batch",
        ),
    ],
)
def test_a_convolution_that_is_not_a_product_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
