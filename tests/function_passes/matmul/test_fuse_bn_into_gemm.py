import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_bn_into_gemm"
VECTORS = "float[2] s = {2,0.5}, float[2] b = {1,-1}, float[2] m = {0.5,0.25}, float[2] v = {4,1}"
NORM = "y = BatchNormalization<epsilon=0.0>(t, s, b, m, v)"
MATRIX = "(float[N,2] x) => (float[N,2] y)"
WEIGHT = "float[2,2] w = {1,2,3,4}"


def test_the_columns_are_scaled_and_shifted() -> None:
    assert_rewrites(
        PASS,
        f"{MATRIX} <{WEIGHT}, float[2] c = {{0,1}}, {VECTORS}> {{ t = Gemm(x, w, c) {NORM} }}",
        f"{MATRIX} <float[2,2] w = {{1,1,3,2}}, float[2] c = {{0.5,-0.625}}>"
        " { y = Gemm(x, w, c) }",
    )


def test_a_matmul_becomes_a_gemm() -> None:
    assert_rewrites(
        PASS,
        f"{MATRIX} <{WEIGHT}, {VECTORS}> {{ t = MatMul(x, w) {NORM} }}",
        f"{MATRIX} <float[2,2] w = {{1,1,3,2}}, float[2] c = {{0.5,-1.125}}>"
        " { y = Gemm(x, w, c) }",
    )


def test_alpha_stays_and_beta_is_multiplied_in() -> None:
    assert_rewrites(
        PASS,
        f"{MATRIX} <{WEIGHT}, float[1,2] c = {{1,2}}, {VECTORS}>"
        f" {{ t = Gemm<transB=1, alpha=3.0, beta=0.5>(x, w, c) {NORM} }}",
        f"{MATRIX} <float[2,2] w = {{1,2,1.5,2}}, float[2] c = {{1,-0.625}}>"
        " { y = Gemm<transB=1, alpha=3.0>(x, w, c) }",
    )


def test_more_dims_have_their_channels_elsewhere() -> None:
    assert_unchanged(
        PASS,
        f"(float[3,2,2] x) => (float[3,2,2] y) <{WEIGHT}, {VECTORS}> {{ t = MatMul(x, w) {NORM} }}",
        because="the second factor is not a constant matrix",
    )


@pytest.mark.parametrize(
    ("was", "has", "because"),
    [
        ("{4,1}", "{4,0}", "var + epsilon is not positive"),
        (
            "float[2] s = {2,0.5}",
            "float[1] s = {2}",
            "the parameters of the batch norm are not one",
        ),
        ("{1,2,3,4}", "{3e38,2,3e38,4}", "the fused weights are not finite"),
    ],
)
def test_what_cannot_be_absorbed_stays(was: str, has: str, because: str) -> None:
    text = f"{MATRIX} <{WEIGHT}, {VECTORS}> {{ t = MatMul(x, w) {NORM} }}".replace(was, has)
    scaled = text.replace("s = {2,0.5}", "s = {9,0.5}") if "3e38" in has else text
    assert_unchanged(PASS, scaled, because=because)


def test_channels_and_columns_are_as_many() -> None:
    one = "float[1] s = {2}, float[1] b = {1}, float[1] m = {0.5}, float[1] v = {4}"
    assert_unchanged(
        PASS,
        f"{MATRIX} <{WEIGHT}, {one}> {{ t = MatMul(x, w) {NORM} }}",
        because="the batch norm has another number of channels",
    )


@pytest.mark.parametrize("c", ["float[N,2] c", "float[2] c = {1,2}"])
def test_what_is_added_must_be_constant(c: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[N,2] x, {c}) => (float[N,2] y) <{WEIGHT}, {VECTORS}>"
        f" {{ t = Gemm(x, w, c) {NORM} }}",
        because="the addend is not constant per column",
    )


def test_a_weight_that_others_read_stays() -> None:
    assert_unchanged(
        PASS,
        f"(float[N,2] x) => (float[N,2] y, float[N,2] z) <{WEIGHT}, {VECTORS}>"
        f" {{ t = MatMul(x, w) {NORM} z = MatMul(x, w) }}",
        because="the weight has other consumers",
    )


def test_parameters_that_callers_feed_are_no_constants() -> None:
    assert_unchanged(
        PASS,
        f"(float[N,2] x, float[2] m) => (float[N,2] y)"
        f" <{WEIGHT}, {VECTORS.replace('float[2] m = {0.5,0.25}, ', '')}>"
        f" {{ t = MatMul(x, w) {NORM} }}",
        because="a parameter of the batch norm is not a constant",
    )


def test_further_outputs_mean_training() -> None:
    assert_unchanged(
        PASS,
        f"{MATRIX} <{WEIGHT}, {VECTORS}>"
        " { t = MatMul(x, w) y, nm, nv = BatchNormalization(t, s, b, m, v) }",
        opset=15,
        because="further outputs mean training mode",
    )


def test_weights_that_become_too_small_for_their_dtype_stay() -> None:
    """1e-20 times 2e-20 is no normal number; a factor of 0 makes zeros that are exact."""
    small = "float[2] s = {1e-20,0}, float[2] b = {1,-1}, float[2] m = {0,0}, float[2] v = {1,1}"
    text = f"{MATRIX} <{WEIGHT}, {small}> {{ t = MatMul(x, w) {NORM} }}"
    assert_unchanged(
        PASS,
        text.replace("w = {1,", "w = {1e-20,"),
        because="the fused weights lose precision by underflow",
    )
    assert_rewrites(
        PASS,
        text.replace("s = {1e-20,", "s = {1,"),
        f"{MATRIX} <float[2,2] w = {{1,0,3,0}}, float[2] c = {{1,-1}}> {{ y = Gemm(x, w, c) }}",
    )
