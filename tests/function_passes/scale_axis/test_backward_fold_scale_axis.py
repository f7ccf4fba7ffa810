import math

import pytest

from tests.constants import spoken_of
from tiered import get_pass
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "backward_fold_scale_axis"
IMAGE = "(float[1,2,2,2] x) => (float[1,2,2,2] y)"
CONV = "<float[2,1,1] s = {2,4}, float[2,2,1,1] w = {1,2,3,4}, float[2] b = {1,1}>"
SCALED = "<float[2,2,1,1] w = {2,4,12,16}, float[2] b = {2,4}>"


def test_factors_of_channels_go_into_kernel_and_bias() -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} {CONV} {{ a = Conv<kernel_shape=[1,1]>(x, w, b) y = Mul(a, s) }}",
        f"{IMAGE} {SCALED} {{ y = Conv<kernel_shape=[1,1]>(x, w, b) }}",
    )


def test_a_factor_for_all_on_the_left() -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} <float s = {{2}}, float[2,2,1,1] w = {{1,2,3,4}}>"
        " { a = Conv(x, w) y = Mul(s, a) }",
        f"{IMAGE} <float[2,2,1,1] w = {{2,4,6,8}}> {{ y = Conv(x, w) }}",
    )


def test_a_division_multiplies_by_the_inverse() -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} <float s = {{2}}, float[2,2,1,1] w = {{1,2,3,4}}>"
        " { a = Conv(x, w) y = Div(a, s) }",
        f"{IMAGE} <float[2,2,1,1] w = {{0.5,1,1.5,2}}> {{ y = Conv(x, w) }}",
    )


@pytest.mark.parametrize("op", ["Relu", "LeakyRelu<alpha=0.25>", "MaxPool<kernel_shape=[1,1]>"])
def test_positive_factors_pass(op: str) -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} {CONV} {{ a = Conv(x, w, b) r = {op}(a) y = Mul(r, s) }}",
        f"{IMAGE} {SCALED} {{ a = Conv(x, w, b) y = {op}(a) }}",
    )


def test_negative_factors_pass_what_is_linear() -> None:
    assert_rewrites(
        PASS,
        "(float[1,2,2,2] x) => (float[1,2,1,1] y) <float[2,1,1] s = {-2,4},"
        " float[2,2,1,1] w = {1,2,3,4}>"
        " { a = Conv(x, w) n = Neg(a) r = GlobalAveragePool(n) y = Mul(r, s) }",
        "(float[1,2,2,2] x) => (float[1,2,1,1] y) <float[2,2,1,1] w = {-2,-4,12,16}>"
        " { a = Conv(x, w) n = Neg(a) y = GlobalAveragePool(n) }",
    )


def test_a_transpose_moves_the_axis() -> None:
    assert_rewrites(
        PASS,
        "(float[1,2,1,1] x) => (float[1,1,1,2] y) <float[2] s = {2,4},"
        " float[2,2,1,1] w = {1,2,3,4}>"
        " { a = Conv(x, w) t = Transpose<perm=[0,2,3,1]>(a) y = Mul(t, s) }",
        "(float[1,2,1,1] x) => (float[1,1,1,2] y) <float[2,2,1,1] w = {2,4,12,16}>"
        " { a = Conv(x, w) y = Transpose<perm=[0,2,3,1]>(a) }",
    )


def test_a_transpose_without_perm_reverses() -> None:
    assert_rewrites(
        PASS,
        "(float[2,2] x) => (float[3,2] y) <float[3,1] s = {2,4,8}, float[2,3] w = {1,1,1,1,1,1}>"
        " { a = MatMul(x, w) t = Transpose(a) y = Mul(t, s) }",
        "(float[2,2] x) => (float[3,2] y) <float[2,3] w = {2,4,8,2,4,8}>"
        " { a = MatMul(x, w) y = Transpose(a) }",
    )


def test_one_factor_for_all_passes_a_reshape() -> None:
    assert_rewrites(
        PASS,
        "(float[2,2] x) => (float[4] y) <float s = {2}, float[2,2] w = {1,2,3,4},"
        " int64[1] t = {4}> { a = MatMul(x, w) r = Reshape(a, t) y = Mul(r, s) }",
        "(float[2,2] x) => (float[4] y) <float[2,2] w = {2,4,6,8}, int64[1] t = {4}>"
        " { a = MatMul(x, w) y = Reshape(a, t) }",
    )


def test_factors_of_the_last_axis_pass_a_reshape_that_keeps_it() -> None:
    assert_rewrites(
        PASS,
        "(float[2,N,2] x) => (float[M,2] y) <float[2] s = {2,4}, float[2,2] w = {1,2,3,4},"
        " int64[2] t = {-1,2}> { a = MatMul(x, w) r = Reshape(a, t) y = Mul(r, s) }",
        "(float[2,N,2] x) => (float[M,2] y) <float[2,2] w = {2,8,6,16}, int64[2] t = {-1,2}>"
        " { a = MatMul(x, w) y = Reshape(a, t) }",
    )


QK = "(float[N,2] x, float[2,2] k) => (float[N,2] y)"


@pytest.mark.parametrize("product", ["MatMul(a, k)", "MatMul(k, a)", "Mul(k, a)", "Div(a, k)"])
def test_one_factor_of_a_product_of_tensors_is_scaled(product: str) -> None:
    rows = QK.replace("[N,2]", "[2,2]")
    assert_rewrites(
        PASS,
        f"{rows} <float s = {{2}}, float[2,2] w = {{1,2,3,4}}>"
        f" {{ a = MatMul(x, w) b = {product} y = Mul(b, s) }}",
        f"{rows} <float[2,2] w = {{2,4,6,8}}> {{ a = MatMul(x, w) y = {product} }}",
    )


def test_a_scale_of_keys_may_go_into_the_queries() -> None:
    assert_rewrites(
        PASS,
        f"{QK} <float s = {{2}}, float[2,2] w = {{1,2,3,4}}>"
        " { q = MatMul(x, w) scaled = Mul(k, s) y = MatMul(q, scaled) }",
        f"{QK} <float[2,2] w = {{2,4,6,8}}> {{ q = MatMul(x, w) y = MatMul(q, k) }}",
    )


def test_all_consumers_of_a_value_may_want_its_scale() -> None:
    # Rotary embeddings read the queries twice, and their halves.
    inputs = "(float[N,2] x, float[N,2] cosines, float[N,2] sines) => (float[N,2] y)"
    turned = (
        "q = MatMul(x, w) first, second = Split<axis=1, num_outputs=2>(q) minus = Neg(second)"
        " half = Concat<axis=1>(minus, first) a = Mul(q, cosines) b = Mul(sines, half)"
    )
    assert_rewrites(
        PASS,
        f"{inputs} <float s = {{2}}, float[2,2] w = {{1,2,3,4}}>"
        f" {{ {turned} c = Add(a, b) y = Mul(c, s) }}",
        f"{inputs} <float[2,2] w = {{2,4,6,8}}> {{ {turned} y = Add(a, b) }}",
    )


@pytest.mark.parametrize(
    ("part", "weight"), [("y, b", "{2,2,6,4}"), ("b, y", "{1,4,3,8}")], ids=["first", "second"]
)
def test_the_other_parts_of_a_split_keep_their_scale(part: str, weight: str) -> None:
    inputs = "(float[N,2] x) => (float[N,1] y, float[N,1] b)"
    split = "Split<axis=-1, num_outputs=2>(p)"
    assert_rewrites(
        PASS,
        f"{inputs} <float s = {{2}}, float[2,2] w = {{1,2,3,4}}>"
        f" {{ p = MatMul(x, w) {part.replace('y', 'a')} = {split} y = Mul(a, s) }}",
        f"{inputs} <float[2,2] w = {weight}> {{ p = MatMul(x, w) {part} = {split} }}",
    )


@pytest.mark.parametrize("slot", ["a, k", "k, a"])
def test_a_constant_factor_stays(slot: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[2,2] x) => (float[2,2] y) <float s = {{2}}, float[2,2] w = {{1,2,3,4}},"
        f" float[2,2] k = {{5,6,7,8}}> {{ a = MatMul(x, w) b = Mul({slot}) y = Mul(b, s) }}",
        "(float[2,2] x) => (float[2,2] y) <float[2,2] w = {2,4,6,8}, float[2,2] k = {5,6,7,8}>"
        f" {{ a = MatMul(x, w) y = Mul({slot}) }}",
    )


def test_both_operands_of_a_sum_are_scaled() -> None:
    assert_rewrites(
        PASS,
        "(float[N,2] x) => (float[N,2] y) <float[2] s = {2,4}, float[2,2] w = {1,2,3,4},"
        " float[2] b = {1,1}> { a = MatMul(x, w) c = Add(a, b) y = Mul(c, s) }",
        "(float[N,2] x) => (float[N,2] y) <float[2,2] w = {2,8,6,16}, float[2] b = {2,4}>"
        " { a = MatMul(x, w) y = Add(a, b) }",
    )


def test_a_matrix_on_the_left_has_its_rows_scaled() -> None:
    assert_rewrites(
        PASS,
        "(float[2,2] x) => (float[2,2] y) <float[2,1] s = {2,4}, float[2,2] w = {1,2,3,4}>"
        " { a = MatMul(w, x) y = Mul(a, s) }",
        "(float[2,2] x) => (float[2,2] y) <float[2,2] w = {2,4,12,16}> { y = MatMul(w, x) }",
    )


@pytest.mark.parametrize(("trans", "scaled"), [(0, "2,8,6,16"), (1, "2,4,12,16")])
def test_gemm_scales_columns_and_bias(trans: int, scaled: str) -> None:
    assert_rewrites(
        PASS,
        "(float[3,2] x) => (float[3,2] y) <float[2] s = {2,4}, float[2,2] w = {1,2,3,4},"
        f" float[2] b = {{1,1}}> {{ a = Gemm<transB={trans}, beta=0.5>(x, w, b) y = Mul(a, s) }}",
        f"(float[3,2] x) => (float[3,2] y) <float[2,2] w = {{{scaled}}}, float[2] b = {{2,4}}>"
        f" {{ y = Gemm<transB={trans}, beta=0.5>(x, w, b) }}",
    )


def test_a_batch_norm_takes_factors() -> None:
    vectors = "float[2] m = {0,1}, float[2] v = {1,4}"
    assert_rewrites(
        PASS,
        f"{IMAGE} <float[2,1,1] s = {{2,4}}, float[2] k = {{1,2}}, float[2] b = {{3,4}}, {vectors}>"
        " { a = BatchNormalization(x, k, b, m, v) y = Mul(a, s) }",
        f"{IMAGE} <float[2] k = {{2,8}}, float[2] b = {{6,16}}, {vectors}>"
        " { y = BatchNormalization(x, k, b, m, v) }",
    )


def test_groups_of_a_transposed_convolution_share_out_the_factors() -> None:
    assert_rewrites(
        PASS,
        "(float[1,2,1,1] x) => (float[1,4,1,1] y) <float[4,1,1] s = {2,4,8,16},"
        " float[2,2,1,1] w = {1,1,1,1}> { a = ConvTranspose<group=2>(x, w) y = Mul(a, s) }",
        "(float[1,2,1,1] x) => (float[1,4,1,1] y) <float[2,2,1,1] w = {2,4,8,16}>"
        " { y = ConvTranspose<group=2>(x, w) }",
    )


def test_a_vector_on_the_left_leaves_the_columns_last() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[3,2] y) <float[2] s = {2,4},"
        " float[3,2,2] w = {1,2,3,4,5,6,7,8,9,10,11,12}> { a = MatMul(x, w) y = Mul(a, s) }",
        "(float[2] x) => (float[3,2] y)"
        " <float[3,2,2] w = {2,8,6,16,10,24,14,32,18,40,22,48}> { y = MatMul(x, w) }",
    )


@pytest.mark.parametrize(
    ("graph", "w", "product", "s"),
    [
        ("(float[4] x) => (float[3,3] y)", "3,3,4", "Mul", "float[3,1] s = {1,10,100}"),
        ("(float[4] x) => (float[2,3] y)", "2,3,4", "Mul", "float[2,1] s = {1,10}"),
        ("(float[3] x) => (float[3,1] y)", "3,1,3", "Div", "float[3,1] s = {3,4,3}"),
        ("(float[] x) => (float[2,2] y)", "2,2,2", "Mul", "float[2,2] m, float[2,1] s = {1,10}"),
    ],
)
def test_of_matrices_times_a_vector_the_last_axis_but_one_is_that_of_a_batch(
    graph: str, w: str, product: str, s: str
) -> None:
    numbers = ",".join(map(str, range(math.prod(map(int, w.split(","))))))
    assert_unchanged(
        PASS,
        f"{graph} <float[{w}] w = {{{numbers}}}, {s}> {{ m = MatMul(w, x) y = {product}(m, s) }}",
        because="the second factor may be a vector, and the axis one of batches",
    )


FITS = "w times the factors does not fit its dtype"
VANISHES = "w times the factors vanishes in its dtype"
FADES = "w times the factors becomes subnormal"


@pytest.mark.parametrize(
    ("dtype", "w", "s", "because"),
    [
        ("float", "1e-30", "1e-14", FADES),
        ("float", "1e-40", "0.3", FADES),
        ("double", "1e200", "1e200", FITS),
        ("double", "1e-200", "1e-110", FADES),
        ("double", "1e-200", "1e-200", VANISHES),
        # As bits: 3 / 1024 times 1 / 1024, times 2**-20; 4096 times 4096.
        ("float16", "6656", "5120", FADES),
        ("float16", "6656", "16", VANISHES),
        ("float16", "27648", "27648", FITS),
    ],
)
def test_weights_keep_their_digits(dtype: str, w: str, s: str, because: str) -> None:
    assert_unchanged(
        PASS,
        f"({dtype}[1,1] x) => ({dtype}[1,1] y) <{dtype}[1,1] w = {{{w}}}, {dtype} s = {{{s}}}>"
        " { a = MatMul(x, w) y = Mul(a, s) }",
        because=because,
    )


def test_weights_that_were_small_before_may_grow() -> None:
    assert_rewrites(
        PASS,
        "(float[1,1] x) => (float[1,1] y) <float[1,1] w = {1e-39}, float s = {4}>"
        " { a = MatMul(x, w) y = Mul(a, s) }",
        "(float[1,1] x) => (float[1,1] y) <float[1,1] w = {4.000001e-39}> { y = MatMul(x, w) }",
    )


W = "float[2,2,1,1] w = {1,2,3,4}"


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (f"{IMAGE} <{W}, float s = {{0}}> {{ a = Conv(x, w) y = Mul(a, s) }}", "a factor is 0"),
        (
            f"{IMAGE} <{W}, float[2,2,2] s = {{1,2,3,4,5,6,7,8}}>"
            " { a = Conv(x, w) y = Mul(a, s) }",
            "the constant does not vary along one axis alone",
        ),
        (
            f"{IMAGE} <{W}, float[1,2] s = {{1,2}}> {{ a = Conv(x, w) y = Mul(a, s) }}",
            "Conv does not absorb a scale",
        ),
        (
            f"(float[1,2,1,1] x) => (float[1,1,2,1,1] y) <{W}, float[1,1,1,1,1] s = {{2}}>"
            " { a = Conv(x, w) y = Mul(a, s) }",
            "the constant adds dims, or the rank is not known",
        ),
        (
            f"{IMAGE} <{W}, float[2,1,1] s = {{-2,4}}>"
            " { a = Conv(x, w) r = Relu(a) y = Mul(r, s) }",
            "does not commute with negative factors",
        ),
        (
            f"{IMAGE} <{W}, float s = {{2}}> {{ a = Conv(x, w) r = Sigmoid(a) y = Mul(r, s) }}",
            "Sigmoid does not absorb a scale",
        ),
        (
            f"{IMAGE} <{W}, float[1,1,1,2] s = {{2,4}}> {{ a = Conv(x, w)"
            " r = MaxPool<kernel_shape=[1,1]>(a) y = Mul(r, s) }",
            "MaxPool combines elements across the scaled axis",
        ),
        (
            "(float[2,2] x) => (float[1,4] y) <float[4] s = {2,4,2,4}, float[2,2] w = {1,2,3,4},"
            " int64[2] t = {1,4}> { a = MatMul(x, w) r = Reshape(a, t) y = Mul(r, s) }",
            "Reshape moves elements across the scaled axis",
        ),
        (
            "(float[2,2] x) => (float[1,2,2] y) <float[2] s = {2,4}, float[2,2] w = {1,2,3,4},"
            " int64[1] t = {0}> { a = MatMul(x, w) r = Unsqueeze(a, t) y = Mul(r, s) }",
            "Unsqueeze moves elements across the scaled axis",
        ),
        (
            "(float[2,2] x, int64[K] t) => (float[N,2] y) <float[N,2] r, float[2] s = {2,4},"
            " float[2,2] w = {1,2,3,4}> { c = MatMul(x, w) v = Reshape(c, t) q = Relu(v)"
            " r = Reshape(q, t) y = Mul(r, s) }",
            "a rank of Reshape is not known",
        ),
        (
            "(float[2,2] x) => (float[2,2] y) <float[2] s = {2,4}, float[2,2] w = {1,2,3,4}>"
            " { a = MatMul(x, w) t = Transpose(a) c = Add(a, t) y = Mul(c, s) }",
            "the consumers of a have different scales",
        ),
        (
            "(float[N,2] x) => (float[M,2] y, float[M,2] b) <float s = {2}, float[2,2] w = {1,2,3,4}>"
            " { c = MatMul(x, w) a, b = Split<axis=0, num_outputs=2>(c) y = Mul(a, s) }",
            "the sizes of the parts of Split are not known",
        ),
        (
            "(float[2,2] x, float[2,2] v) => (float[2,2] y) <float[2] s = {2,4}>"
            " { a = MatMul(x, v) y = Mul(a, s) }",
            "MatMul does not absorb a scale",
        ),
        (
            "(float[2,2] x, float[2,2] v) => (float[2,2] y) <float s = {2}>"
            " { a = MatMul(x, v) y = Mul(a, s) }",
            "x has no producer in this graph",
        ),
        (
            "(float[2,2] x) => (float[2,2] y) <float s = {2}, float[2,2] w = {1,2,3,4}>"
            " { a = MatMul(x, w) b = MatMul(a, a) y = Mul(b, s) }",
            "a has other consumers",
        ),
        (
            "(float[2,2] x) => (float[2,2] y) <float s = {2}, float[2,2] w = {1,2,3,4}>"
            " { a0 = MatMul(x, w) "
            + " ".join(f"a{at + 1} = Neg(a{at})" for at in range(64))
            + " y = Mul(a64, s) }",
            "the way to a weight has more than 64 nodes",
        ),
        (
            "(float[1,2,2,2] x) => (float[1,2,2,2] y, float[1,2,2,2] a)"
            f" <{W}, float s = {{2}}> {{ a = Conv(x, w) y = Mul(a, s) }}",
            "a has other consumers",
        ),
        (
            "(float[1,2,2,2] x) => (float[1,2,2,2] y, float[1,2,2,2] z)"
            f" <{W}, float s = {{2}}> {{ a = Conv(x, w) y = Mul(a, s) z = Conv(x, w) }}",
            "w has other consumers",
        ),
        (
            "(float[1,2,2,2] x, float[2] b) => (float[1,2,2,2] y)"
            f" <{W}, float s = {{2}}> {{ a = Conv(x, w, b) y = Mul(a, s) }}",
            "b is not a constant",
        ),
        (f"{IMAGE} <float s = {{2}}> {{ y = Mul(x, s) }}", "x has no producer in this graph"),
        (
            f"{IMAGE} <float[2,2,1,1] w = {{1,2,3,1e30}}, float s = {{1e30}}>"
            " { a = Conv(x, w) y = Mul(a, s) }",
            "does not fit its dtype",
        ),
        (
            f"{IMAGE} <float[2,2,1,1] w = {{1,2,3,1e-30}}, float s = {{1e-30}}>"
            " { a = Conv(x, w) y = Mul(a, s) }",
            "vanishes in its dtype",
        ),
        (
            "(float[2,2] x) => (float[2,2] y) <float[2] s = {2,4}, float[2,2] w = {1,2,3,4},"
            " float[1] b = {1}> { a = MatMul(x, w) c = Add(a, b) y = Mul(c, s) }",
            "b has no axis for the factors",
        ),
        (
            "(int32[2] x) => (int32[2] y) <int32 s = {2}> { a = Neg(x) y = Mul(a, s) }",
            "the dtype is not a float",
        ),
        (
            "(float[] x, float[2,2] v) => (float[] y) <float s = {2}, float[2,2] w = {1,2,3,4}>"
            " { a = MatMul(v, w) c = Add(a, x) y = Mul(c, s) }",
            "the rank of an operand is not known",
        ),
        (
            "(float[] x) => (float[N,2,H,W] y) <float[N,2,H,W] r, float[2,1,1] s = {2,4},"
            " float[2,2,1,1] w = {1,2,3,4}>"
            " { c = Conv(x, w) t = Transpose(c) r = Relu(t) y = Mul(r, s) }",
            "the rank before Transpose is not known",
        ),
        (
            "(float[1,2,2,2] x) => (float[1,2,2,2] y, int64[1,2,2,2] i) <float s = {2},"
            " float[2,2,1,1] w = {1,2,3,4}>"
            " { c = Conv(x, w) m, i = MaxPool<kernel_shape=[1,1]>(c) y = Mul(m, s) }",
            "MaxPool does not commute with a scale",
        ),
    ],
)
def test_it_declines(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_axes_that_a_call_brings_elsewhere_take_no_scale() -> None:
    assert_unchanged(
        PASS,
        """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
        g (float[2,2] x) => (float[2,2] y) { y = d.f<perm=[1,0]>(x) }
        <domain: "d", opset_import: ["" : 21]>
        f <perm> (z) => (y) <float[2,2] z, float[2,2] a, float[2,2] t, float[2,2] y> {
          w = Constant<value = float[2,2] {1,2,3,4}>() s = Constant<value = float[2] {2,3}>()
          a = MatMul(z, w) t = Transpose<perm: ints = @perm>(a) y = Mul(t, s) }""",
        because="Transpose: attribute 'perm' is a function parameter",
    )


def test_issue_40_a_negative_factor_stays_where_the_sign_of_zero_is_read() -> None:
    assert_unchanged(
        PASS,
        "(float[1,2,4,4] x) => (float[1,1,4,4] y) <float[1,2,1,1] w = {1,2}, float s = {-2}>"
        " { a = Conv(x, w) b = Mul(a, s) y = Reciprocal(b) }",
        because="a consumer reads the sign of a zero",
    )


def test_a_split_along_an_axis_that_a_call_brings_takes_no_scale() -> None:
    assert_unchanged(
        PASS,
        """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
        g (float[3,2] x) => (float[3,1] y, float[3,1] b) { y, b = d.f<axis=1>(x) }
        <domain: "d", opset_import: ["" : 21]>
        f <axis> (z) => (y, b) <float[3,2] z, float[3,2] p, float[3,1] a, float[3,1] b> {
          w = Constant<value = float[2,2] {1,2,3,4}>() s = Constant<value = float {2}>()
          p = MatMul(z, w) a, b = Split<axis: int = @axis, num_outputs=2>(p) y = Mul(a, s) }""",
        because="Split: attribute 'axis' is a function parameter",
    )


ALONG = "before opset 7, an attribute says along which axis operands broadcast"


@pytest.mark.parametrize(
    "nodes",
    [
        "a = MatMul(x, w) y = Mul<broadcast=1, axis=0>(a, s)",
        "a = MatMul(x, w) c = Add<broadcast=1, axis=0>(a, b) y = Mul<broadcast=1>(c, s)",
    ],
    ids=["the scale", "a sum before it"],
)
def test_old_opsets_broadcast_along_an_axis(nodes: str) -> None:
    stock = ("float[2] s = {2,4}", "float[2] b = {1,3}", "float[2,2] w = {1,2,3,4}")
    text = f"(float[2,2] x) => (float[2,2] y) {spoken_of(nodes, *stock)} {{ {nodes} }}"
    assert_unchanged(PASS, text, because=ALONG, opset=6)


def test_an_old_batch_norm_may_have_numbers_for_each_element() -> None:
    vectors = ", ".join(f"float[2,2] {name} = {{1,2,3,4}}" for name in "kbmv")
    graph = f"(float[1,2,2] x) => (float[1,2,2] y) <float[2,1] s = {{2,3}}, {vectors}>"
    norm = "BatchNormalization<spatial=0>(x, k, b, m, v)"
    assert_unchanged(
        PASS,
        f"{graph} {{ a = {norm} y = Mul(a, s) }}",
        because="BatchNormalization does not absorb a scale",
        opset=7,
    )


SUM_OF_HALVES = """(float16[2,2] x, float16[2,2] z) => (float16[2,2] y)
    <float16[2,2] w = {15360,16384,15360,16384},
    float16[2,2] v = {15360,16384,16384,15360}, float16 s = SCALE> {
    a = MatMul(x, w)  b = MatMul(z, v)  c = OP(a, b)  y = Mul(c, s) }"""


@pytest.mark.parametrize("op", ["Add", "Sub"])
def test_scaled_terms_of_halves_may_overflow(op: str) -> None:
    """40,000 - 39,999 times 4 is 4; 4 times either term is infinite."""
    text = SUM_OF_HALVES.replace("OP", op)
    larger = text.replace("SCALE", "{17408}")
    assert_unchanged(PASS, larger, because="scaled terms of a float16 sum may overflow")
    smaller = parse(text.replace("SCALE", "{13312}"))
    assert get_pass(PASS).apply(smaller) != smaller
