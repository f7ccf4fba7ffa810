import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_reshape_around_matmul"


@pytest.mark.parametrize(
    ("x", "inner", "outer", "y"),
    [
        ("[1,3,4]", "Reshape(x, {3,4})", "Reshape(m, {1,3,5})", "[1,3,5]"),
        ("[3,4]", "Reshape(x, {1,3,4})", "Reshape(m, {3,5})", "[3,5]"),
        ("[1,1,4]", "Reshape(x, {1,4})", "Reshape(m, {1,1,5})", "[1,1,5]"),
        ("[2,3,4]", "Reshape(x, {1,2,3,4})", "Reshape(m, {2,3,5})", "[2,3,5]"),
        ("[2,1,3,4]", "Reshape(x, {2,3,4})", "Reshape(m, {2,1,3,5})", "[2,1,3,5]"),
        ("[N,4]", "Unsqueeze(x, {0})", "Squeeze(m, {0})", "[N,5]"),
        ("[1,N,4]", "Squeeze(x, {0})", "Unsqueeze(m, {0})", "[1,N,5]"),
        ("[1,N,4]", "Flatten<axis=2>(x)", "Reshape(m, {1,-1,5})", "[1,N,5]"),
        ("[1,N,4]", "Reshape(x, {-1,4})", "Reshape(m, {1,-1,5})", "[1,N,5]"),
    ],
)
def test_dims_of_1_do_not_matter(x: str, inner: str, outer: str, y: str) -> None:
    constants = [
        f"int64[{text.count(',')}] {name} = {text[text.index('{') :].rstrip(')')}"
        for name, text in (("s", inner), ("t", outer))
        if "{" in text
    ]
    inner, outer = (
        text if "{" not in text else f"{text[: text.index('{')]}{name})"
        for name, text in (("s", inner), ("t", outer))
    )
    assert_rewrites(
        PASS,
        f"(float{x} x, float[4,5] w) => (float{y} y) <{', '.join(constants)}>"
        f" {{ a = {inner} m = MatMul(a, w) y = {outer} }}",
        f"(float{x} x, float[4,5] w) => (float{y} y) {{ y = MatMul(x, w) }}",
    )


def test_both_operands_may_be_reshaped() -> None:
    head = "(float[B,3,4] x, float[B,4,5] w) => (float[B,3,5] y)"
    assert_rewrites(
        PASS,
        f"{head} <int64[1] z = {{0}}> {{ a = Unsqueeze(x, z) b = Unsqueeze(w, z)"
        " m = MatMul(a, b) y = Squeeze(m, z) }",
        f"{head} {{ y = MatMul(x, w) }}",
    )


def test_so_may_the_right_one_alone() -> None:
    head = "(float[3,4] x, float[1,4,N] w) => (float[1,3,N] y)"
    assert_rewrites(
        PASS,
        f"{head} <int64[1] z = {{0}}> {{ b = Squeeze(w, z) m = MatMul(x, b) y = Unsqueeze(m, z) }}",
        f"{head} {{ y = MatMul(x, w) }}",
    )


def test_a_reshape_that_others_read_stays_for_them() -> None:
    head = "(float[1,3,4] x, float[4,5] w) => (float[1,3,5] y, float[3,4] a)"
    assert_rewrites(
        PASS,
        f"{head} <int64[1] z = {{0}}> {{ a = Squeeze(x, z) m = MatMul(a, w) y = Unsqueeze(m, z) }}",
        f"{head} <int64[1] z = {{0}}> {{ a = Squeeze(x, z) y = MatMul(x, w) }}",
    )


def test_a_product_without_reshapes_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[3,4] x, float[4,5] w) => (float[1,3,5] y) <int64[1] z = {0}>"
        " { m = MatMul(x, w) y = Unsqueeze(m, z) }",
        because="no operand is reshaped",
    )
    # A constant is folded, or packed by the kernel.
    assert_unchanged(
        PASS,
        "(float[3,2] x) => (float[1,3,1] y) <float[1,2,1] w = {1,2}, int64[1] z = {0}>"
        " { b = Squeeze(w, z) m = MatMul(x, b) y = Unsqueeze(m, z) }",
        because="no operand is reshaped",
    )


@pytest.mark.parametrize(
    ("x", "inner", "outer", "y"),
    [
        # Other matrices.
        ("[2,6]", "3,4", "3,5", "[3,5]"),
        # Other dims than those of 1.
        ("[2,3,4]", "6,4", "2,3,5", "[2,3,5]"),
        # Another result.
        ("[1,3,4]", "3,4", "3,1,5", "[3,1,5]"),
        ("[3,1,4]", "1,3,4", "1,3,5", "[1,3,5]"),
        # A vector that was no row, and a result that is one.
        ("[12]", "3,4", "3,5", "[3,5]"),
        ("[4]", "1,4", "5,1", "[5,1]"),
    ],
)
def test_other_reshapes_matter(x: str, inner: str, outer: str, y: str) -> None:
    s, t = (f"int64[{sizes.count(',') + 1}]" for sizes in (inner, outer))
    assert_unchanged(
        PASS,
        f"(float{x} x, float[4,5] w) => (float{y} y) <{s} s = {{{inner}}}, {t} t = {{{outer}}}>"
        " { a = Reshape(x, s) m = MatMul(a, w) y = Reshape(m, t) }",
        because="the result would have another shape",
    )


@pytest.mark.parametrize(
    ("x", "w", "inner", "outer", "y"),
    [
        ("[4]", "[4,5]", "a = Reshape(x, {1,4}) m = MatMul(a, w)", "{5}", "[5]"),
        ("[4]", "[2,4,5]", "a = Reshape(x, {1,4}) m = MatMul(a, w)", "{2,5}", "[2,5]"),
    ],
)
def test_a_vector_is_a_row(x: str, w: str, inner: str, outer: str, y: str) -> None:
    target = inner[inner.index("{") : inner.index("}") + 1]
    assert_rewrites(
        PASS,
        f"(float{x} x, float{w} w) => (float{y} y) <int64[{target.count(',') + 1}] s = {target},"
        f" int64[{outer.count(',') + 1}] t = {outer}>"
        f" {{ {inner.replace(target, 's')} y = Reshape(m, t) }}",
        f"(float{x} x, float{w} w) => (float{y} y) {{ y = MatMul(x, w) }}",
    )


def test_a_column_is_no_vector() -> None:
    # onnxruntime multiplies a matrix and a vector by another kernel.
    assert_unchanged(
        PASS,
        "(float[3,4] x, float[4] w) => (float[3] y) <int64[2] s = {4,1}, int64[1] t = {3}>"
        " { a = Reshape(w, s) m = MatMul(x, a) y = Reshape(m, t) }",
        because="the result would have another shape",
    )


def test_each_with_each_is_not_each_with_its_own() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3,4] x, float[2,4,5] w) => (float[2,2,3,5] y)"
        " <int64[4] s = {2,1,3,4}, int64[4] t = {1,2,4,5}, int64[4] u = {2,2,3,5}>"
        " { a = Reshape(x, s) b = Reshape(w, t) m = MatMul(a, b) y = Reshape(m, u) }",
        because="the result would have another shape",
    )


def test_a_stack_of_rows_is_not_one_tall_matrix() -> None:
    assert_unchanged(
        PASS,
        "(float[2,1,4] x, float[4,5] w) => (float[2,1,5] y)"
        " <int64[1] z = {0}, int64[3] u = {2,1,5}>"
        " { b = Unsqueeze(w, z) m = MatMul(x, b) y = Reshape(m, u) }",
        because="the result would have another shape",
    )


def test_an_unknown_rank_may_have_other_dims() -> None:
    assert_unchanged(
        PASS,
        "(float[6] q, int64[R] p, float[4,5] w) => (float[3,5] y)"
        " <int64[2] s = {3,4}, int64[2] t = {3,5}>"
        " { x = Reshape(q, p) a = Reshape(x, s) m = MatMul(a, w) y = Reshape(m, t) }",
        because="the result would have another shape",
    )
