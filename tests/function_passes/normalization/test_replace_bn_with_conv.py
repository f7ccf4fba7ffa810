import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_bn_with_conv"
CONSTANTS = (
    *("float[2] s = {2,0.5}", "float[2] b = {1,-1}", "float[2] m = {0.5,0.25}"),
    *("float[2] v = {4,1}", "float[2,1,1,1] w = {1,0.5}", "float[2] c = {0.5,-1.125}"),
    *("float[2] low = {-4,1}", "float[2] huge = {3e38,1}", "float[2] tiny = {1e-30,1}"),
)
NORM = "y = BatchNormalization<epsilon=0.0>(x, s, b, m, {})"


def graph(nodes: str, x: str = "float[N,2,3,3]") -> str:
    return f"({x} x) => ({x} y) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


def test_channels_have_convolutions_of_their_own() -> None:
    assert_rewrites(
        PASS,
        graph(NORM.format("v")),
        graph("y = Conv<kernel_shape=[1,1], group=2>(x, w, c)"),
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (graph(NORM.format("v"), "float[N,2]"), "spatial dims or dtype are not known"),
        (
            graph(NORM.format("tiny").replace("(x, s", "(x, huge")),
            "a factor or an offset is not finite",
        ),
    ],
)
def test_other_operators_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_a_variance_below_zero_stays() -> None:
    assert_unchanged(PASS, graph(NORM.format("low")), because="var + epsilon is not positive")


def test_doubles_stay_as_runtimes_have_no_kernel_for_them() -> None:
    text = graph(NORM.format("v")).replace("float[", "double[")
    assert_unchanged(PASS, text, because="Conv has no kernel for doubles")


def test_pictures_without_pixels_stay() -> None:
    assert_unchanged(
        PASS,
        graph(NORM.format("v"), "float[N,2,0,3]"),
        because="onnxruntime rejects convolution of empty images",
    )
