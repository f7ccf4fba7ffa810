import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_layernorm"
INTERFACE = "(float[N,2,4] x) => (float[N,2,4] y)"
AFFINE = "float[4] s = {1,2,3,4}, float[4] b = {4,3,2,1}"
NUMBERS = "int64[1] a = {-1}, float p = {2}, float e = {0.001}"
CENTRED = "m = ReduceMean(x, a) d = Sub(x, m)"
VARIANCE = "q = Pow(d, p) v = ReduceMean(q, a) w = Add(v, e)"
DIVIDED = f"{CENTRED} {VARIANCE} r = Sqrt(w) n = Div(d, r)"
NORMED = f"{INTERFACE} <{AFFINE}> {{ y = LayerNormalization<epsilon=0.001>(x, s, b) }}"


@pytest.mark.parametrize("affine", ["t = Mul(n, s) y = Add(t, b)", "t = Mul(s, n) y = Add(b, t)"])
@pytest.mark.parametrize(
    "variance",
    [
        "q = Pow(d, p) v = ReduceMean(q, a) w = Add(v, e) r = Sqrt(w) n = Div(d, r)",
        "q = Pow(d, p) v = ReduceMean(q, a) w = Add(e, v) r = Sqrt(w) i = Reciprocal(r) n = Mul(i, d)",
    ],
)
def test_the_chain_with_scale_and_bias(variance: str, affine: str) -> None:
    assert_rewrites(
        PASS,
        f"{INTERFACE} <{NUMBERS}, {AFFINE}> {{ {CENTRED} {variance} {affine} }}",
        NORMED,
    )


@pytest.mark.parametrize(
    ("numbers", "chain"),
    [
        ("", "q = Mul(d, d) v = ReduceMean(q, a) w = Add(v, e) r = Sqrt(w) n = Div(d, r)"),
        (
            ", float o = {1}",
            "q = Mul(d, d) v = ReduceMean(q, a) w = Add(v, e) r = Sqrt(w) i = Div(o, r)"
            " n = Mul(d, i)",
        ),
        (
            ", float h = {-0.5}",
            "q = Mul(d, d) v = ReduceMean(q, a) w = Add(v, e) i = Pow(w, h) n = Mul(d, i)",
        ),
    ],
)
def test_other_ways_to_square_and_to_divide(numbers: str, chain: str) -> None:
    constants = NUMBERS.replace("float p = {2}, ", "") + numbers
    assert_rewrites(
        PASS,
        f"{INTERFACE} <{constants}, {AFFINE}> {{ {CENTRED} {chain} t = Mul(n, s) y = Add(t, b) }}",
        NORMED,
    )


def test_without_scale_and_bias_the_scale_is_one() -> None:
    assert_rewrites(
        PASS,
        f"{INTERFACE} <{NUMBERS}> {{ {DIVIDED[: -len('n = Div(d, r)')]} y = Div(d, r) }}",
        f"{INTERFACE} <float[4] s = {{1,1,1,1}}> {{ y = LayerNormalization<epsilon=0.001>(x, s) }}",
    )


def test_several_last_dims() -> None:
    eight = "{1,2,3,4,5,6,7,8}"
    constants = NUMBERS.replace("int64[1] a = {-1}", "int64[2] a = {-2,-1}")
    assert_rewrites(
        PASS,
        f"{INTERFACE} <{constants}, float[2,4] s = {eight}> {{ {DIVIDED} y = Mul(n, s) }}",
        f"{INTERFACE} <float[2,4] s = {eight}>"
        " { y = LayerNormalization<axis=-2, epsilon=0.001>(x, s) }",
    )


def test_old_opsets_have_axes_as_attributes() -> None:
    assert_rewrites(
        PASS,
        f"{INTERFACE} <float p = {{2}}, float e = {{0.001}}, {AFFINE}>"
        f" {{ {DIVIDED.replace(', a)', ')').replace('ReduceMean', 'ReduceMean<axes=[-1]>')}"
        " t = Mul(n, s) y = Add(t, b) }",
        NORMED,
        opset=17,
    )


def test_before_opset_17_there_is_no_layer_norm() -> None:
    assert_unchanged(
        PASS,
        f"{INTERFACE} <float p = {{2}}, float e = {{0.001}}>"
        f" {{ {DIVIDED.replace(', a)', ')').replace('ReduceMean', 'ReduceMean<axes=[-1]>')}"
        " y = Abs(n) }",
        opset=16,
        because="ONNX has LayerNormalization from opset 17 on",
    )


@pytest.mark.parametrize(
    ("was", "has", "because"),
    [
        ("a = {-1}", "a = {1}", "the axes are not the last dims"),
        ("{0.001}", "{0}", "epsilon is not one positive number"),
        ("float e = {0.001}", "float[4] e = {1,2,3,4}", "epsilon is not one positive number"),
        (
            "float e = {0.001}",
            "float[1,1,1,1] e = {1}",
            "the rank of x is not known, or grows",
        ),
    ],
)
def test_other_norms_stay(was: str, has: str, because: str) -> None:
    interface = "(float[N,2,4] x) => (y)"
    assert_unchanged(
        PASS,
        f"{interface} <{NUMBERS.replace(was, has)}> {{ {DIVIDED} y = Abs(n) }}",
        because=because,
    )


def test_mean_and_variance_are_over_the_same_axes() -> None:
    assert_unchanged(
        PASS,
        f"{INTERFACE} <{NUMBERS}, int64[1] c = {{1}}>"
        f" {{ {DIVIDED.replace('ReduceMean(q, a)', 'ReduceMean(q, c)')} y = Abs(n) }}",
        because="mean and variance are over other axes",
    )


def test_axes_that_callers_feed_are_no_constants() -> None:
    assert_unchanged(
        PASS,
        "(float[N,2,4] x, int64[1] a) => (float[N,2,4] y)"
        f" <float p = {{2}}, float e = {{0.001}}> {{ {DIVIDED} y = Abs(n) }}",
        because="the axes are not constant",
    )


def test_axes_of_the_variance_that_callers_feed_are_no_constants_either() -> None:
    assert_unchanged(
        PASS,
        f"(float[N,2,4] x, int64[1] c) => (float[N,2,4] n) <{NUMBERS}>"
        f" {{ {DIVIDED.replace('ReduceMean(q, a)', 'ReduceMean(q, c)')} }}",
        because="the axes are not constant",
    )


def test_the_scale_needs_a_known_size() -> None:
    assert_unchanged(
        PASS,
        f"(float[2,C] x) => (float[2,C] y) <{NUMBERS}> {{ {DIVIDED} y = Abs(n) }}",
        because="the size of the normalised dims is not known",
    )


def test_without_a_dtype_nothing_is_known() -> None:
    assert_unchanged(
        PASS,
        f"(int32[2,4] x) => (int32[2,4] y) <{NUMBERS.replace('float e', 'int32 e').replace('0.001', '1')}>"
        f" {{ {CENTRED} q = Mul(d, d) v = ReduceMean(q, a) w = Add(v, e) r = Sqrt(w) n = Div(d, r)"
        " y = Abs(n) }",
        because="x is no float",
    )


def test_means_without_their_dim_are_subtracted_along_another_axis() -> None:
    mean = "ReduceMean<keepdims=0>"
    assert_unchanged(
        PASS,
        f"(float[4,4] x) => (float[4,4] y) <{NUMBERS}>"
        f" {{ {DIVIDED.replace('ReduceMean', mean)} y = Abs(n) }}",
    )


def test_an_empty_tensor_is_not_normalised() -> None:
    text = f"{INTERFACE} <{NUMBERS}> {{ {CENTRED} {VARIANCE} r = Sqrt(w) y = Div(d, r) }}"
    assert_unchanged(PASS, text.replace("2,4]", "2,0]"), because="there is nothing to normalise")


def test_a_reader_of_the_sign_of_a_zero_keeps_the_chain() -> None:
    text = f"{INTERFACE} <{NUMBERS}> {{ {CENTRED} {VARIANCE} r = Sqrt(w) n = Div(d, r) "
    assert_unchanged(
        PASS, f"{text} y = Reciprocal(n) }}", because="a consumer reads the sign of a zero"
    )
