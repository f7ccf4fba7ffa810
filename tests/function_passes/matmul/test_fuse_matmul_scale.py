import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_matmul_scale"
ORT = "onnxruntime_cpu"


def test_a_transpose_and_a_scale_go_into_the_product() -> None:
    image = "(float[2,3] a, float[4,3] b) => (float[2,4] y)"
    assert_rewrites(
        PASS,
        f"{image} <float[1,1] s = {{0.5}}> {{ t = Transpose<perm=[1,0]>(b) m = MatMul(a, t)"
        " y = Mul(m, s) }",
        f"{image} {{ y = com.microsoft.FusedMatMul<transB=1, alpha=0.5>(a, b) }}",
        backend=ORT,
    )


def test_batches_and_a_division() -> None:
    image = "(float[N,2,4,3] a, float[N,2,5,3] b) => (float[N,2,4,5] y)"
    assert_rewrites(
        PASS,
        f"{image} <float[1] s = {{8}}> {{ t = Transpose<perm=[0,1,3,2]>(b) m = MatMul(a, t)"
        " y = Div(m, s) }",
        f"{image} {{ y = com.microsoft.FusedMatMul<transB=1, alpha=0.125>(a, b) }}",
        backend=ORT,
    )


def test_a_first_factor_that_is_read_the_other_way_round_is_read_as_it_is() -> None:
    image = "(float[N,3,4] a, float[N,3,5] b) => (float[N,4,5] y)"
    assert_rewrites(
        PASS,
        "(float[N,4,3] a, float[N,3,5] b) => (float[N,4,5] y) { t = Transpose<perm=[0,2,1]>(a)"
        " y = com.microsoft.FusedMatMul<transA=1>(t, b) }",
        "(float[N,4,3] a, float[N,3,5] b) => (float[N,4,5] y)"
        " { y = com.microsoft.FusedMatMul(a, b) }",
        backend=ORT,
    )
    assert_unchanged(
        PASS,
        f"{image} {{ t = Transpose<perm=[0,2,1]>(a) y = MatMul(t, b) }}",
        backend=ORT,
        because="a transposed first factor is not faster",
    )


@pytest.mark.parametrize(
    ("scaled", "alpha"),
    [("s = Mul(a, c) y = MatMul(s, b)", 0.5), ("s = Div(b, c) y = MatMul(a, s)", 2.0)],
)
def test_a_factor_may_be_scaled(scaled: str, alpha: float) -> None:
    head = "(float[N,2,3] a, float[N,3,4] b) => (float[N,2,4] y)"
    assert_rewrites(
        PASS,
        f"{head} <float c = {{0.5}}> {{ {scaled} }}",
        f"{head} {{ y = com.microsoft.FusedMatMul<alpha={alpha}>(a, b) }}",
        backend=ORT,
    )


def test_of_two_factors_the_second_one_is_read_the_other_way_round() -> None:
    image = "(float[3,4] a, float[5,3] b) => (float[4,5] y)"
    first = "s = Transpose<perm=[1,0]>(a)"
    assert_rewrites(
        PASS,
        f"{image} {{ {first} t = Transpose<perm=[1,0]>(b) y = MatMul(s, t) }}",
        f"{image} {{ {first} y = com.microsoft.FusedMatMul<transB=1>(s, b) }}",
        backend=ORT,
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            "(float[2,3] a, float[3,2] b) => (float[2,2] y) <float[2] s = {1,2}>"
            " { m = MatMul(a, b) y = Mul(m, s) }",
            "the scale is not one number",
        ),
        (
            "(float[2,3] a, float[3,2] b) => (float[2,2] y) <float s = {0}>"
            " { m = MatMul(a, b) y = Mul(m, s) }",
            "the scale is 0 or not finite",
        ),
        (
            "(float[3] a, float[3,2] b) => (float[2] y) <float s = {2}>"
            " { m = MatMul(a, b) y = Mul(m, s) }",
            "a factor is not known to have matrices",
        ),
        (
            "(float[2,4,3] a, float[3,1,5] b) => (float[2,4,5] y) {"
            " t = Transpose<perm=[1,0,2]>(b) y = MatMul(a, t) }",
            "a batch dim that moves is broadcast",
        ),
        (
            "(float[2,4,3] a, float[5,3,2] b) => (float[2,4,5] y) {"
            " t = Transpose<perm=[2,1,0]>(b) y = MatMul(a, t) }",
            "the product cannot read this axis order",
        ),
    ],
)
def test_what_the_product_does_not_say_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, backend=ORT, because=because)


@pytest.mark.parametrize(
    ("shapes", "perm", "attributes"),
    [
        ("float[4,2,3] a, float[2,3,5] b) => (float[2,4,5] y)", "1,0,2", "transBatchA=1"),
        (
            "float[4,2,7,3] a, float[2,7,3,5] b) => (float[2,7,4,5] y)",
            *("1,2,0,3", "transBatchA=1"),
        ),
        ("float[3,2,4] a, float[2,3,5] b) => (float[2,4,5] y)", "1,2,0", "transA=1, transBatchA=1"),
        ("float[2,4,3] a, float[3,2,5] b) => (float[2,4,5] y)", "1,0,2", "transBatchB=1"),
        ("float[2,4,3] a, float[5,2,3] b) => (float[2,4,5] y)", "1,2,0", "transBatchB=1, transB=1"),
        (
            "float[N,7,4,3] a, float[5,N,7,3] b) => (float[N,7,4,5] y)",
            *("1,2,3,0", "transBatchB=1, transB=1"),
        ),
    ],
)
def test_batch_dims_that_move_are_read_where_they_are(
    shapes: str, perm: str, attributes: str
) -> None:
    moved, product = ("a", "MatMul(t, b)") if "A=" in attributes else ("b", "MatMul(a, t)")
    assert_rewrites(
        PASS,
        f"({shapes} {{ t = Transpose<perm=[{perm}]>({moved}) y = {product} }}",
        f"({shapes} {{ y = com.microsoft.FusedMatMul<{attributes}>(a, b) }}",
        backend=ORT,
    )


def test_batch_dims_of_both_factors_move() -> None:
    head = "(float[4,2,3] a, float[3,2,5] b) => (float[2,4,5] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ s = Transpose<perm=[1,0,2]>(a) t = Transpose<perm=[1,0,2]>(b) y = MatMul(s, t) }}",
        f"{head} {{ y = com.microsoft.FusedMatMul<transBatchA=1, transBatchB=1>(a, b) }}",
        backend=ORT,
    )


def test_a_product_that_is_scaled_by_zero_stays_zero() -> None:
    head = "(float[2,3] a, float[4,3] b) => (float[2,4] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ t = Transpose<perm=[1,0]>(b) y = com.microsoft.FusedMatMul<alpha=0.0>(a, t) }}",
        f"{head} {{ y = com.microsoft.FusedMatMul<alpha=0.0, transB=1>(a, b) }}",
        backend=ORT,
    )


def test_moves_of_the_product_and_of_a_transpose_are_one() -> None:
    head = "(float[2,4,3] a, float[2,3,5] b) => (float[2,4,5] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ t = Transpose<perm=[1,0,2]>(b)"
        " y = com.microsoft.FusedMatMul<transBatchB=1>(a, t) }",
        f"{head} {{ y = com.microsoft.FusedMatMul(a, b) }}",
        backend=ORT,
    )


@pytest.mark.parametrize("dtype", ["float16", "int32"])
def test_a_factor_that_is_cast_is_read_the_other_way_round(dtype: str) -> None:
    head = f"(float[2,3] a, {dtype}[4,3] b) => (float[2,4] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ t = Transpose<perm=[1,0]>(b) c = Cast<to=1>(t) y = MatMul(a, c) }}",
        f"{head} {{ c = Cast<to=1>(b) y = com.microsoft.FusedMatMul<transB=1>(a, c) }}",
        backend=ORT,
    )


def test_a_first_factor_that_is_cast_moves_its_batch_dim() -> None:
    head = "(int32[4,2,3] a, float[2,3,5] b) => (float[2,4,5] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ t = Transpose<perm=[1,0,2]>(a) c = Cast<to=1>(t) y = MatMul(c, b) }}",
        f"{head} {{ c = Cast<to=1>(a) y = com.microsoft.FusedMatMul<transBatchA=1>(c, b) }}",
        backend=ORT,
    )


def test_an_order_that_a_call_decides_stays() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "local": 1]>
      g (float[2,2] x) => (float[2,2] y) { y = local.f<order=[1,0]>(x) }
      <domain: "local", opset_import: ["": 21]>
      f <order> (x) => (y) {
        c = Constant<value = float[2,2] {1,2,3,4}>()
        t = Transpose<perm: ints = @order>(c) y = MatMul(c, t) }"""
    assert_unchanged(PASS, text, backend=ORT, because="the order of axes is not known")


def test_other_targets_keep_the_scale() -> None:
    text = "(float[2,2] a) => (float[2,2] y) <float s = {2}> { m = MatMul(a, a) y = Mul(m, s) }"
    assert_unchanged(PASS, text)


def test_a_double_that_32_bits_do_not_hold_stays_a_constant() -> None:
    image = "(double[2,3] a, double[3,2] b) => (double[2,2] y)"
    text = f"{image} <double s = {{0.1}}> {{ m = MatMul(a, b) y = Mul(m, s) }}"
    assert_unchanged(PASS, text, backend=ORT, because="the scale does not fit a float attribute")
    assert_rewrites(
        PASS,
        text.replace("0.1", "0.25"),
        f"{image} {{ y = com.microsoft.FusedMatMul<alpha=0.25>(a, b) }}",
        backend=ORT,
    )
