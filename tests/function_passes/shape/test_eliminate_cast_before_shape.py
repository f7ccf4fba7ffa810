from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_cast_before_shape"


def test_a_shape_is_read_before_the_cast() -> None:
    assert_rewrites(
        PASS,
        "(int32[N,3] x) => (int64[2] y) { h = Cast<to=1>(x)  y = Shape(h) }",
        "(int32[N,3] x) => (int64[2] y) { y = Shape(x) }",
    )


def test_a_size_is_read_at_the_start_of_the_chain() -> None:
    assert_rewrites(
        PASS,
        "(float[N,3] x, float[3] s) => (int64 n, float[N,3] y) { a = Relu(x)"
        " b = LayerNormalization(a, s)  y = Softmax(b)  n = Size(y) }",
        "(float[N,3] x, float[3] s) => (int64 n, float[N,3] y) { a = Relu(x)"
        " b = LayerNormalization(a, s)  y = Softmax(b)  n = Size(x) }",
    )


def test_start_and_end_stay() -> None:
    assert_rewrites(
        PASS,
        "(float[N,3] x) => (int64[1] y) { h = Exp(x)  y = Shape<start=-1>(h) }",
        "(float[N,3] x) => (int64[1] y) { y = Shape<start=-1>(x) }",
    )


def test_a_body_reads_the_value_outside() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x, bool c) => (int64[1] y, float[N] h) { h = Exp(x)"
        " y = If(c) <then_branch = t () => (int64[1] a) { a = Shape(h) },"
        " else_branch = e () => (int64[1] b) { b = Constant<value=int64[1]{0}>() }> }",
        "(float[N] x, bool c) => (int64[1] y, float[N] h) { h = Exp(x)"
        " y = If(c) <then_branch = t () => (int64[1] a) { a = Shape(x) },"
        " else_branch = e () => (int64[1] b) { b = Constant<value=int64[1]{0}>() }> }",
    )


def test_another_output_has_another_shape() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3] x, float[3] s, float[3] b) => (int64[2] n, float[2,3] y)"
        " { y, m = LayerNormalization(x, s, b)  n = Shape(m) }",
    )


def test_a_broadcast_result_may_be_larger() -> None:
    assert_unchanged(
        PASS, "(float[N] x, float[M] z) => (int64[1] y) { h = Add(x, z)  y = Shape(h) }"
    )


def test_a_small_dtype_is_not_read() -> None:
    assert_unchanged(
        PASS,
        "(int4[4] x) => (int64[1] y) <float s = {1}> { h = DequantizeLinear(x, s)  y = Shape(h) }",
        because="Shape may not support the dtype of x",
    )


def test_a_more_exact_shape_stays() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "l" : 1]>'
        " g (float[2] x) => (int64[2] y) <float[2,3] h> { a = l.f(x)  h = Relu(a)  y = Shape(h) }",
        because="Shape may not support the dtype of x",
    )
    assert_unchanged(
        PASS,
        "(float[N] x, int64[K] s) => (int64[2] y) <float[2,3] h>"
        " { a = Reshape(x, s)  h = Relu(a)  y = Shape(h) }",
        because="the input has a more exact shape",
    )
