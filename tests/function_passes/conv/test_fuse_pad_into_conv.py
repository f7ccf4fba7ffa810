import numpy as np
import pytest

from tiered import get_pass
from tiered.runtime import run
from tiered.support.numerics import Numerics
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "fuse_pad_into_conv"
WEIGHT = "float[1,1,2,2] w = {1,2,3,4}"
PADS = "int64[8] p = {0,0,1,0,0,0,2,1}"
IMAGE = "(float[N,1,4,4] x) => (float[N,1,6,4] y)"


def test_pads_go_into_the_convolution() -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} <{WEIGHT}, {PADS}, float z = {{0}}> {{ t = Pad(x, p, z) y = Conv(t, w) }}",
        f"{IMAGE} <{WEIGHT}> {{ y = Conv<pads=[1,0,2,1]>(x, w) }}",
    )


def test_pads_add_up() -> None:
    assert_rewrites(
        PASS,
        f"(float[N,1,4,4] x, float[1] b) => (float[N,1,7,6] y) <{WEIGHT}, {PADS}>"
        " { t = Pad(x, p) y = Conv<pads=[1,1,0,1], kernel_shape=[2,2]>(t, w, b) }",
        f"(float[N,1,4,4] x, float[1] b) => (float[N,1,7,6] y) <{WEIGHT}>"
        " { y = Conv<pads=[2,1,2,2], kernel_shape=[2,2]>(x, w, b) }",
    )


def test_valid_is_no_padding() -> None:
    assert_rewrites(
        PASS,
        f'{IMAGE} <{WEIGHT}, {PADS}> {{ t = Pad(x, p) y = Conv<auto_pad="VALID">(t, w) }}',
        f"{IMAGE} <{WEIGHT}> {{ y = Conv<pads=[1,0,2,1]>(x, w) }}",
    )


def test_axes_select_the_normalised_dims() -> None:
    assert_rewrites(
        PASS,
        f"(float[N,1,4,4] x) => (float[N,1,3,5] y) <{WEIGHT}, int64[2] p = {{1,1}},"
        " int64[1] a = {-1}> { t = Pad(x, p, , a) y = Conv(t, w) }",
        f"(float[N,1,4,4] x) => (float[N,1,3,5] y) <{WEIGHT}> {{ y = Conv<pads=[0,1,0,1]>(x, w) }}",
    )


def test_old_opsets_have_pads_as_attributes() -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} <{WEIGHT}> {{ t = Pad<pads=[0,0,1,0,0,0,2,1]>(x) y = Conv(t, w) }}",
        f"{IMAGE} <{WEIGHT}> {{ y = Conv<pads=[1,0,2,1]>(x, w) }}",
        opset=10,
    )


def test_integers_pad_with_their_zero_point() -> None:
    image = "(uint8[N,1,4,4] x) => (int32[N,1,6,4] y)"
    weight = "uint8[1,1,2,2] w = {1,2,3,4}, uint8 z = {3}"
    assert_rewrites(
        PASS,
        f"{image} <{weight}, {PADS}> {{ t = Pad(x, p, z) y = ConvInteger(t, w, z) }}",
        f"{image} <{weight}> {{ y = ConvInteger<pads=[1,0,2,1]>(x, w, z) }}",
    )
    assert_unchanged(
        PASS,
        f"{image} <{weight}, {PADS}> {{ t = Pad(x, p) y = ConvInteger(t, w, z) }}",
        because="it does not pad with zeros",
    )


@pytest.mark.parametrize(
    ("how", "pads"), [("SAME_UPPER", "[1,0,3,2]"), ("SAME_LOWER", "[2,1,2,1]")]
)
def test_same_pads_by_the_padded_size(how: str, pads: str) -> None:
    head = "(float[N,1,H,4] x) => (float[N,1,A,B] y)"
    assert_rewrites(
        PASS,
        f'{head} <{WEIGHT}, {PADS}> {{ t = Pad(x, p) y = Conv<auto_pad="{how}">(t, w) }}',
        f"{head} <{WEIGHT}> {{ y = Conv<pads={pads}>(x, w) }}",
    )


@pytest.mark.parametrize("how", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("size", range(3, 9))
@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)])
def test_same_pads_as_the_runtime_does(how: str, size: int, stride: int, kernel: int) -> None:
    model = parse(
        f"(float[2,1,{size}] x, float[1,1,{kernel}] w) => (float[2,1,M] y)"
        " <int64[6] p = {0,0,1,0,0,2}>"
        f' {{ t = Pad(x, p) y = Conv<auto_pad="{how}", strides=[{stride}]>(t, w) }}'
    )
    rng = np.random.default_rng(0)
    feeds = {
        "x": rng.standard_normal((2, 1, size), np.float32),
        "w": rng.standard_normal((1, 1, kernel), np.float32),
    }
    result = get_pass(PASS).apply(model)
    assert [node.op_type for node in result.graph.node] == ["Conv"]
    np.testing.assert_allclose(run(model, feeds)["y"], run(result, feeds)["y"], rtol=1e-6)


@pytest.mark.parametrize(
    ("x", "conv", "because"),
    [
        (
            "[1,1,4,M]",
            'Conv<auto_pad="SAME_UPPER", strides=[2,2]>(t, w)',
            "auto_pad depends on an unknown size",
        ),
        (
            "[1,1,4,4]",
            'Conv<auto_pad="SAME_UPPER", dilations=[2,1]>(t, w)',
            "runtimes differ on auto_pad with dilations",
        ),
        (
            "[1,1,4,4]",
            'Conv<auto_pad="SAME_LOWER">(t, v)',
            "the size of the kernel is not known",
        ),
        # onnxruntime begins in the middle of what the windows leave out, others at the front.
        (
            "[1,1,4,4]",
            'Conv<auto_pad="SAME_UPPER", strides=[1,8]>(t, w)',
            "runtimes differ on this auto_pad",
        ),
    ],
)
def test_same_that_is_not_known_stays(x: str, conv: str, because: str) -> None:
    assert_unchanged(
        PASS,
        f"(float{x} x, float[1,1,K,2] v) => (float[1,1,A,B] y) <{WEIGHT}, {PADS}>"
        f" {{ t = Pad(x, p) y = {conv} }}",
        because=because,
    )


def test_a_computed_zero_point_is_still_a_zero_point() -> None:
    head = "(float[N,1,4,4] x) => (int32[N,1,6,4] y) <uint8[1,1,2,2] w = {1,2,3,4}"
    dynamic = "q, s, z = DynamicQuantizeLinear(x)"
    assert_rewrites(
        PASS,
        f"{head}, {PADS}> {{ {dynamic} t = Pad(q, p, z) y = ConvInteger(t, w, z) }}",
        f"{head}> {{ {dynamic} y = ConvInteger<pads=[1,0,2,1]>(q, w, z) }}",
    )
    assert_rewrites(
        PASS,
        f"{head}, {PADS}> {{ {dynamic} t = Pad(q, p, z)"
        ' y = ConvInteger<auto_pad="SAME_LOWER">(t, w, z) }'.replace("[N,1,6,4]", "[N,1,A,B]"),
        f"{head}> {{ {dynamic} y = ConvInteger<pads=[2,1,2,1]>(q, w, z) }}",
    )
    assert_unchanged(
        PASS,
        f"{head}, {PADS}> {{ {dynamic} t = Pad(q, p) y = ConvInteger(t, w, z) }}",
        because="it does not pad with zeros",
    )


@pytest.mark.parametrize(
    "pads", ["{0,1,0,0,0,0,0,0}", "{1,0,0,0,0,0,0,0}", "{0,0,-1,0,0,0,0,0}", "{0,0,0,0,0,1,0,0}"]
)
def test_batch_channels_and_crops_stay(pads: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[1,1,4,4] x) => (y) <float[1,1,2,2] w = {{1,2,3,4}}, int64[8] p = {pads}>"
        " { t = Pad(x, p) y = Conv(t, w) }",
        because="the pads are not constant, spatial and non-negative",
    )


def test_pads_that_callers_feed_are_no_constants() -> None:
    assert_unchanged(
        PASS,
        "(float[1,1,4,4] x, int64[8] p) => (y) <float[1,1,2,2] w = {1,2,3,4}>"
        " { t = Pad(x, p) y = Conv(t, w) }",
        because="the pads are not constant, spatial and non-negative",
    )


@pytest.mark.parametrize("mode", ["reflect", "edge"])
def test_other_modes_are_no_match(mode: str) -> None:
    assert_unchanged(
        PASS,
        f"{IMAGE} <{WEIGHT}, {PADS}> {{ t = Pad<mode={mode!r}>(x, p) y = Conv(t, w) }}".replace(
            "'", '"'
        ),
    )


def test_other_values_stay() -> None:
    assert_unchanged(
        PASS,
        f"{IMAGE} <{WEIGHT}, {PADS}, float z = {{1}}> {{ t = Pad(x, p, z) y = Conv(t, w) }}",
        because="it does not pad with zeros",
    )


def test_a_result_that_others_see_stays() -> None:
    assert_unchanged(
        PASS,
        f"(float[1,1,4,4] x) => (float[1,1,6,4] y, float[1,1,7,5] t) <{WEIGHT}, {PADS}>"
        " { t = Pad(x, p) y = Conv(t, w) }",
        because="an inner value is a graph output",
    )


def test_it_is_no_exact_pass() -> None:
    """onnxruntime sums rows that are as wide as the kernel in an order of its own."""
    info = get_pass(PASS).info
    assert (info.opt_level, info.numerics) == (3, Numerics.REASSOCIATING)
