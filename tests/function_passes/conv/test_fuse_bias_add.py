import pytest

from tests.small import made_by, parsed
from tiered import get_pass
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_bias_add"
WEIGHT = "float[2,2,1,1] w = {1,2,3,4}"
IMAGE = "(float[N,2,3,3] x) => (float[N,2,3,3] y)"


@pytest.mark.parametrize("shape", ["2,1,1", "1,2,1,1"])
@pytest.mark.parametrize("operands", ["t, b", "b, t"])
def test_one_number_a_channel_is_a_bias(shape: str, operands: str) -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} <{WEIGHT}, float[{shape}] b = {{1,2}}> {{ t = Conv(x, w) y = Add({operands}) }}",
        f"{IMAGE} <{WEIGHT}, float[2] b = {{1,2}}> {{ y = Conv(x, w, b) }}",
    )


@pytest.mark.parametrize("shape", ["", "[1]", "[1,1,1]"])
def test_one_number_is_one_for_each_channel(shape: str) -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} <{WEIGHT}, float{shape} b = {{3}}> {{ t = Conv(x, w) y = Add(t, b) }}",
        f"{IMAGE} <{WEIGHT}, float[2] b = {{3,3}}> {{ y = Conv(x, w, b) }}",
    )


def test_biases_add_up() -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} <{WEIGHT}, float[2] c = {{10,20}}, float[2,1,1] b = {{1,2}}>"
        " { t = Conv<group=1, kernel_shape=[1,1]>(x, w, c) y = Add(t, b) }",
        f"{IMAGE} <{WEIGHT}, float[2] c = {{11,22}}>"
        " { y = Conv<group=1, kernel_shape=[1,1]>(x, w, c) }",
    )


def test_the_channels_of_a_transposed_convolution_are_on_axis_1() -> None:
    assert_rewrites(
        PASS,
        "(float[N,2,3,3] x) => (float[N,4,3,3] y) <float[2,2,1,1] w = {1,2,3,4},"
        " float[4,1,1] b = {1,2,3,4}> { t = ConvTranspose<group=2>(x, w) y = Add(t, b) }",
        "(float[N,2,3,3] x) => (float[N,4,3,3] y) <float[2,2,1,1] w = {1,2,3,4},"
        " float[4] b = {1,2,3,4}> { y = ConvTranspose<group=2>(x, w, b) }",
    )


def test_the_weight_may_be_computed() -> None:
    assert_rewrites(
        PASS,
        "(float[1,2,3,3] x, float[2,2,1,1] w) => (float[1,2,3,3] y) <float[2,1,1] b = {1,2}>"
        " { t = Conv(x, w) y = Add(t, b) }",
        "(float[1,2,3,3] x, float[2,2,1,1] w) => (float[1,2,3,3] y) <float[2] b = {1,2}>"
        " { y = Conv(x, w, b) }",
    )


@pytest.mark.parametrize("shape", ["[2]", "[1,2]", "[2,2,1]"])
def test_an_addend_along_rows_is_not_a_bias(shape: str) -> None:
    numbers = "1,2,3,4" if shape == "[2,2,1]" else "1,2"
    assert_unchanged(
        PASS,
        f"(float[1,2,2,2] x) => (float[1,2,2,2] y) <{WEIGHT}, float{shape} b = {{{numbers}}}>"
        " { t = Conv<kernel_shape=[1,1]>(x, w) y = Add(t, b) }",
        because="the addend is not per channel",
    )


def test_an_addend_may_not_add_dims() -> None:
    assert_unchanged(
        PASS,
        f"(float[1,2,3,3] x) => (float[1,1,2,3,3] y) <{WEIGHT}, float[1,1,2,1,1] b = {{1,2}}>"
        " { t = Conv(x, w) y = Add(t, b) }",
        because="the addend is not per channel",
    )


def test_a_bias_that_callers_feed_is_no_constant() -> None:
    assert_unchanged(
        PASS,
        f"(float[1,2,3,3] x, float[2] c) => (float[1,2,3,3] y) <{WEIGHT}, float[2,1,1] b = {{1,2}}>"
        " { t = Conv(x, w, c) y = Add(t, b) }",
        because="the bias is not a constant",
    )


def test_a_weight_of_unknown_shape_has_no_channels() -> None:
    assert_unchanged(
        PASS,
        "(float[1,2,3,3] x, float[a,2,1,1] w) => (float[1,b,3,3] y) <float[2,1,1] b = {1,2}>"
        " { t = Conv(x, w) y = Add(t, b) }",
        because="the shape of the weight is not known",
    )


def test_without_a_dtype_nothing_is_known() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>'
        " g (float[1,2,3,3] x) => (float[1,2,3,3] y) <float[2,1,1] b = {1,2}>"
        " { w = d.Unknown(x) t = Conv(x, w) y = Add(t, b) }",
        because="the dtype is not a float",
    )


def test_a_result_that_others_see_stays() -> None:
    assert_unchanged(
        PASS,
        f"(float[1,2,3,3] x) => (float[1,2,3,3] y, float[1,2,3,3] z) <{WEIGHT},"
        " float[2,1,1] b = {1,2}> { t = Conv(x, w) y = Add(t, b) z = Relu(t) }",
        because="an inner value has another user",
    )


def test_biases_whose_sum_overflows_stay_apart() -> None:
    assert_unchanged(
        PASS,
        f"{IMAGE} <{WEIGHT}, float[2] b = {{3e38,1}}, float[2,1,1] c = {{3e38,1}}>"
        " { t = Conv(x, w, b) y = Add(t, c) }",
        because="the sum with the bias is not finite",
    )


@pytest.mark.parametrize(
    ("dims", "axes", "offset", "numbers"),
    [
        ("N,2,1,1", "2,3", "2", "1,2"),
        ("N,2,1,1", "-1,-2", "1,2", "1,2"),
        ("N,2,1,3", "2", "2,1", "1,2"),
        ("N,2,3,1", "3", "1,2,1", "1,2"),
        ("1,2,3,3", "0", "2,1,1", "1,2"),
        ("1,2,1,1", "0,2,3", "2", "1,2"),
    ],
)
def test_behind_a_squeeze_channels_are_on_another_axis(
    dims: str, axes: str, offset: str, numbers: str
) -> None:
    count = axes.count(",") + 1
    gone = {int(axis) % 4 for axis in axes.split(",")}
    kept = ",".join(dim for axis, dim in enumerate(dims.split(",")) if axis not in gone)
    head = f"(float[{dims}] x) => (float[{kept}] y) <{WEIGHT}, int64[{count}] a = {{{axes}}}"
    assert_rewrites(
        PASS,
        f"{head}, float[{offset}] b = {{{numbers}}}>"
        " { t = Conv(x, w)  s = Squeeze(t, a)  y = Add(b, s) }",
        f"{head}, float[2] b = {{{numbers}}}> {{ t = Conv(x, w, b)  y = Squeeze(t, a) }}",
    )


@pytest.mark.parametrize("axes", ["int64[1] a = {1}", "int64[2] a = {1,-3}"])
def test_a_squeezed_channel_has_one_number(axes: str) -> None:
    head = f"(float[N,2,3,3] x) => (float[N,3,3] y) <float[1,2,1,1] w = {{1,2}}, {axes}"
    assert_rewrites(
        PASS,
        f"{head}, float b = {{3}}> {{ t = Conv(x, w)  s = Squeeze(t, a)  y = Add(s, b) }}",
        f"{head}, float[1] b = {{3}}> {{ t = Conv(x, w, b)  y = Squeeze(t, a) }}",
    )


@pytest.mark.parametrize(
    ("offset", "numbers"),
    [("2", "1,2"), ("1,1,1,2", "1,2"), ("2,2", "1,2,3,4"), ("2,1,1,1", "1,2")],
)
def test_behind_a_squeeze_other_axes_are_no_channels(offset: str, numbers: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[1,2,1,2] x) => (float[A,B,C,D] y) <{WEIGHT}, int64[1] a = {{2}},"
        f" float[{offset}] b = {{{numbers}}}, int64[4] r = {{-1,1,1,1}}>"
        " { t = Conv(x, w)  s = Squeeze(t, a)  z = Add(s, b)  y = Reshape(z, r) }",
        because="the addend is not per channel",
    )


def test_a_squeeze_that_others_read_stays() -> None:
    assert_unchanged(
        PASS,
        f"(float[N,2,1,1] x) => (float[N,2] y, float[N,2] s) <{WEIGHT}, int64[2] a = {{2,3}},"
        " float[2] b = {1,2}> { t = Conv(x, w)  s = Squeeze(t, a)  y = Add(s, b) }",
    )


def test_the_new_bias_is_named_after_the_old_one_or_the_addend() -> None:
    for call, expected in [("Conv(x, w)", "o_1"), ("Conv(x, w, c)", "c_1")]:
        model = parsed(
            "(float[1,2,3,3] x) => (float[1,2,3,3] y) <float[2,2,1,1] w = {1,2,3,4},"
            f" float[2] c = {{1,2}}, float[2,1,1] o = {{3,4}}> {{ t = {call} y = Add(t, o) }}"
        )
        get_pass(PASS).apply(model)
        assert [value.name for value in made_by(model, "y").reads] == ["x", "w", expected]
