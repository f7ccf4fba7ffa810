import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_pad_into_pool"


def test_an_average_counts_what_is_padded() -> None:
    image = "(float[N,1,4,4] x) => (float[N,1,5,4] y)"
    pads = "int64[8] p = {0,0,1,0,0,0,1,1}"
    assert_rewrites(
        PASS,
        f"{image} <{pads}> {{ t = Pad(x, p) y = AveragePool<kernel_shape=[2,2]>(t) }}",
        f"{image} {{ y = AveragePool<kernel_shape=[2,2], pads=[1,0,1,1], count_include_pad=1>(x) }}",
    )


def test_an_average_that_does_not_count_its_own_padding_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[1,1,4,4] x) => (float[1,1,6,6] y) <int64[8] p = {0,0,1,1,0,0,1,1}>"
        " { t = Pad(x, p) y = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(t) }",
        because="count_include_pad differs from the padding",
    )


@pytest.mark.parametrize(
    ("inner", "value"),
    [("u = Relu(x)", "0"), ("u = Clip(x, z)", "0"), ("u = Neg(x)", "-inf")],
)
def test_a_maximum_pads_with_what_is_never_the_largest(inner: str, value: str) -> None:
    image = "(float[N,1,4,4] x) => (float[N,1,5,5] y)"
    bound = "float z = {0}"
    pads = f"int64[8] p = {{0,0,1,1,0,0,1,1}}, float v = {{{value}}}"
    others = f"<{bound}>" if "z" in inner else ""
    first = f"<{bound}, {pads}>" if "z" in inner else f"<{pads}>"
    assert_rewrites(
        PASS,
        f"{image} {first} {{ {inner} t = Pad(u, p, v) y = MaxPool<kernel_shape=[2,2]>(t) }}",
        f"{image} {others} {{ {inner} y = MaxPool<kernel_shape=[2,2], pads=[1,1,1,1]>(u) }}",
    )


def test_a_maximum_of_negative_numbers_sees_the_zeros() -> None:
    assert_unchanged(
        PASS,
        "(float[1,1,4,4] x) => (float[1,1,5,5] y) <int64[8] p = {0,0,1,1,0,0,1,1}>"
        " { t = Pad(x, p) y = MaxPool<kernel_shape=[2,2]>(t) }",
        because="the maximum may be a padding value",
    )


POOLED = (
    "(float[1,1,4,4] x) => (float[1,1,a,b] y{more}) <int64[8] p = {{0,0,1,1,0,0,1,1}}>"
    " {{ u = Relu(x) t = Pad(u, p) y{names} = MaxPool<kernel_shape=[{k},2]{settings}>(t) }}"
)


@pytest.mark.parametrize(
    ("kernel", "settings", "because"),
    [
        (1, "", "a window may contain only padding"),
        (2, ", dilations=[2,2]", "a dilated window may contain only padding"),
        (2, ", ceil_mode=1, strides=[3,3]", "a window may exceed the padding"),
    ],
)
def test_windows_of_padding_alone_stay(kernel: int, settings: str, because: str) -> None:
    text = POOLED.format(more="", names="", k=kernel, settings=settings)
    assert_unchanged(PASS, text, because=because)


def test_the_places_of_the_largest_stay() -> None:
    text = POOLED.format(more=", int64[1,1,a,b] i", names=", i", k=2, settings="")
    assert_unchanged(PASS, text, because="indices of the maxima would change")


IMAGE = "(float[1,1,4,4] x) => (float[1,1,a,b] y)"


def test_auto_pad_sees_the_padded_size() -> None:
    assert_unchanged(
        PASS,
        f"{IMAGE} <int64[8] p = {{0,0,1,1,0,0,1,1}}> {{ t = Pad(x, p)"
        ' y = AveragePool<kernel_shape=[2,2], auto_pad="SAME_UPPER">(t) }',
        because="auto_pad depends on the size of x",
    )


def test_channels_stay() -> None:
    assert_unchanged(
        PASS,
        f"{IMAGE} <int64[8] p = {{0,1,0,0,0,0,0,0}}> {{ t = Pad(x, p)"
        " y = AveragePool<kernel_shape=[2,2]>(t) }",
        because="the pads are not constant, spatial and non-negative",
    )


def test_other_values_stay() -> None:
    assert_unchanged(
        PASS,
        f"{IMAGE} <int64[8] p = {{0,0,1,1,0,0,1,1}}, float z = {{1}}> {{ t = Pad(x, p, z)"
        " y = AveragePool<kernel_shape=[2,2]>(t) }",
        because="it does not pad with zeros",
    )


@pytest.mark.parametrize(
    ("inputs", "inner", "because"),
    [
        ("float[1,1,4] x, float h", "u = Clip(x, z, h)", "the maximum may be a padding value"),
        ("float[1,1,4] x", "u = Clip(x, z, low)", "the maximum may be a padding value"),
        ("int8[1,1,4] x", "u = Abs(x)", "the maximum may be a padding value"),
        ("float[1,1,0] x", "u = Relu(x)", "onnxruntime rejects pooling of empty images"),
    ],
)
def test_what_may_be_below_zero_or_empty_stays(inputs: str, inner: str, because: str) -> None:
    dtype = inputs.partition("[")[0]
    nodes = f"{inner} t = Pad(u, p) y = MaxPool<kernel_shape=[2]>(t)"
    constants = ("float z = {0}", "float low = {-1}", "int64[6] p = {0,0,1,0,0,1}")
    assert_unchanged(
        PASS,
        f"({inputs}) => ({dtype}[a,b,c] y) {spoken_of(nodes, *constants)} {{ {nodes} }}",
        because=because,
    )


def test_what_is_clipped_between_two_bounds_is_not_below_the_first() -> None:
    image = "(float[1,1,4] x) => (float[1,1,5] y)"
    bounds = "float z = {0}, float h = {6}"
    assert_rewrites(
        PASS,
        f"{image} <{bounds}, int64[6] p = {{0,0,1,0,0,1}}>"
        " { u = Clip(x, z, h) t = Pad(u, p) y = MaxPool<kernel_shape=[2]>(t) }",
        f"{image} <{bounds}> {{ u = Clip(x, z, h) y = MaxPool<kernel_shape=[2], pads=[1,1]>(u) }}",
    )


def test_issue_40_zeros_stay_where_their_sign_is_read() -> None:
    assert_unchanged(
        PASS,
        "(float[1,1,4,4] x) => (float[1,1,2,2] y) <int64[8] pads = {0,0,0,0,0,0,1,1}>"
        " { p = Pad(x, pads) a = AveragePool<kernel_shape=[2,2], strides=[2,2], count_include_pad=1>(p)"
        " y = Reciprocal(a) }",
        because="a consumer reads the sign of a zero",
    )
