import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_transpose_with_reshape"


@pytest.mark.parametrize(
    ("shape", "perm", "after"),
    [("1,3,2", "1,0,2", "3,1,2"), ("2,1,3,1", "3,0,2,1", "1,2,3,1"), ("1,1", "1,0", "1,1")],
)
def test_dims_of_1_move_no_element(shape: str, perm: str, after: str) -> None:
    rank = after.count(",") + 1
    assert_rewrites(
        PASS,
        f"(float[{shape}] x) => (float[{after}] y) {{ y = Transpose<perm=[{perm}]>(x) }}",
        f"(float[{shape}] x) => (float[{after}] y) <int64[{rank}] s = {{{after}}}>"
        " { y = Reshape(x, s) }",
    )


def test_one_dim_may_have_no_size() -> None:
    assert_rewrites(
        PASS,
        "(float[1,N] x) => (float[N,1] y) { y = Transpose(x) }",
        "(float[1,N] x) => (float[N,1] y) <int64[2] s = {-1,1}> { y = Reshape(x, s) }",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("(float[] x) => (float[] y) { y = Transpose<perm=[1,0]>(x) }",
         "the shape of x is not known"),
        ("(float[2,3] x) => (float[3,2] y) { y = Transpose(x) }",
         "it changes the order of elements"),
        ("(float[1,N,M] x) => (float[N,1,M] y) { y = Transpose<perm=[1,0,2]>(x) }",
         "several dims have no size"),
        ("(float[1,0,3] x) => (float[0,1,3] y) { y = Transpose<perm=[1,0,2]>(x) }",
         "a 0 in shape copies a dim of x"),
        ("(float[2,3] x) => (float[2] y) { y = Transpose<perm=[2,0,1]>(x) }",
         "perm is no permutation of the axes of x"),
        ("(float[2,3,4] x) => (float[?,?,?] y) { y = Transpose<perm=[0,0,5]>(x) }",
         "perm is no permutation of the axes of x"),
    ],
)  # fmt: skip
def test_others_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_elements_smaller_than_a_byte_keep_their_transpose() -> None:
    assert_unchanged(
        PASS,
        "(int4[1,3] x) => (int4[3,1] y) { y = Transpose(x) }",
        because="onnxruntime reshapes no elements smaller than a byte",
    )
