import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "forward_fold_scale_axis"
IMAGE = "(float[1,2,2,2] x) => (float[1,2,2,2] y)"
CONV = "<float[2,1,1] s = {2,4}, float[2,2,1,1] w = {1,2,3,4}>"
SCALED = "<float[2,2,1,1] w = {2,8,6,16}>"


def test_factors_of_input_channels_go_into_the_kernel() -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} {CONV} {{ a = Mul(x, s) y = Conv<kernel_shape=[1,1]>(a, w) }}",
        f"{IMAGE} {SCALED} {{ y = Conv<kernel_shape=[1,1]>(x, w) }}",
    )


def test_zero_pads_are_zeros_before_and_after() -> None:
    assert_rewrites(
        PASS,
        "(float[1,1,2,2] x) => (float[1,1,2,2] y) <float s = {2}, float b = {1},"
        " float[1,1,3,3] w = {1,2,3,4,5,6,7,8,9}>"
        " { a = Mul(x, s) y = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(a, w) }",
        "(float[1,1,2,2] x) => (float[1,1,2,2] y) <float[1,1,3,3] w ="
        " {2,4,6,8,10,12,14,16,18}> { y = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w) }",
    )


def test_groups_share_out_the_factors() -> None:
    assert_rewrites(
        PASS,
        "(float[1,4,1,1] x) => (float[1,2,1,1] y) <float[4,1,1] s = {2,4,8,16},"
        " float[2,2,1,1] w = {1,1,1,1}> { a = Mul(x, s) y = Conv<group=2>(a, w) }",
        "(float[1,4,1,1] x) => (float[1,2,1,1] y) <float[2,2,1,1] w = {2,4,8,16}>"
        " { y = Conv<group=2>(x, w) }",
    )


def test_groups_of_other_channels_are_no_convolution() -> None:
    assert_unchanged(
        PASS,
        "(float[1,4,1,1] x) => (float[1,2,1,1] y) <float[4,1,1] s = {2,4,8,16},"
        " float[2,2,1,1] w = {1,1,1,1}> { a = Mul(x, s) y = Conv(a, w) }",
        because="Conv does not absorb a scale",
    )


def test_a_transposed_convolution_has_its_inputs_on_axis_0() -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} {CONV} {{ a = Mul(x, s) y = ConvTranspose(a, w) }}",
        f"{IMAGE} <float[2,2,1,1] w = {{2,4,12,16}}> {{ y = ConvTranspose(x, w) }}",
    )


def test_all_readers_absorb_it_through_what_commutes() -> None:
    assert_rewrites(
        PASS,
        "(float[N,2] x) => (float[N,2] y, float[N,2] z) <float[2] s = {2,4},"
        " float[2,2] u = {1,2,3,4}, float[2,2] v = {1,1,1,1}>"
        " { a = Mul(x, s) r = Relu(a) y = MatMul(r, u) z = Gemm<transB=1>(r, v) }",
        "(float[N,2] x) => (float[N,2] y, float[N,2] z) <float[2,2] u = {2,4,12,16},"
        " float[2,2] v = {2,4,2,4}> { r = Relu(x) y = MatMul(r, u) z = Gemm<transB=1>(r, v) }",
    )


def test_the_right_operand_of_a_matrix_product() -> None:
    assert_rewrites(
        PASS,
        "(float[2,2] x) => (float[2,2] y) <float[2,1] s = {2,4}, float[2,2] w = {1,2,3,4}>"
        " { a = Div(x, s) y = MatMul(w, a) }",
        "(float[2,2] x) => (float[2,2] y) <float[2,2] w = {0.5,0.5,1.5,1}> { y = MatMul(w, x) }",
    )


def test_a_transpose_moves_the_axis() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float[3,1] y) <float[2,1] s = {2,4}, float[2,1] w = {1,1}>"
        " { a = Mul(x, s) t = Transpose<perm=[1,0]>(a) y = MatMul(t, w) }",
        "(float[2,3] x) => (float[3,1] y) <float[2,1] w = {2,4}>"
        " { t = Transpose<perm=[1,0]>(x) y = MatMul(t, w) }",
    )


W = "float[2,2,1,1] w = {1,2,3,4}"


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            "(float[1,2,2,2] x) => (float[1,2,2,2] y, float[1,2,2,2] a)"
            f" <{W}, float s = {{2}}> {{ a = Mul(x, s) y = Conv(a, w) }}",
            "a is used outside of the graph",
        ),
        (
            "(float[1,2,2,2] x) => (float[1,2,2,2] y, float[1,2,2,2] z)"
            f" <{W}, float s = {{2}}> {{ a = Mul(x, s) y = Conv(a, w) z = Abs(a) }}",
            "Abs does not absorb a scale",
        ),
        (
            f"{IMAGE} <{W}, float[2,1,1] s = {{-2,4}}>"
            " { a = Mul(x, s) r = Relu(a) y = Conv(r, w) }",
            "does not commute with negative factors",
        ),
        (
            f"{IMAGE} <{W}, float[1,2] s = {{2,4}}> {{ a = Mul(x, s) y = Conv(a, w) }}",
            "Conv does not absorb a scale",
        ),
        (
            "(float[2,2] x) => (float[2,2] y) <float[2] g = {2,4}, float[2,2] w = {1,2,3,4}>"
            " { q = Mul(x, x) r = Sqrt(q) d = Div(x, r) a = Mul(d, g) y = MatMul(a, w) }",
            "runtimes fuse it with an activation or normalization",
        ),
        (
            "(float[2,2] x) => (float[2,2] y) <float h = {0.5}, float[2,2] w = {1,2,3,4}>"
            " { e = Erf(x) m = Mul(x, e) a = Mul(m, h) y = MatMul(a, w) }",
            "runtimes fuse it with an activation or normalization",
        ),
        (f"{IMAGE} <{W}, float s = {{0}}> {{ a = Mul(x, s) y = Conv(a, w) }}", "a factor is 0"),
        (
            "(float[1,1] x) => (float[1,1] y) <float[1,1] w = {1e-30}, float s = {1e-14}>"
            " { a = Mul(x, s) y = MatMul(a, w) }",
            "w times the factors becomes subnormal",
        ),
    ],
)
def test_it_declines(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_old_opsets_broadcast_along_an_axis() -> None:
    assert_unchanged(
        PASS,
        "(float[2,2] x) => (float[2,2] y) <float[2] s = {2,4}, float[2,2] w = {1,2,3,4}>"
        " { a = Mul<broadcast=1, axis=0>(x, s) y = MatMul(a, w) }",
        because="before opset 7, an attribute says along which axis operands broadcast",
        opset=6,
    )
