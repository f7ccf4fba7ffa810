import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_transpose_into_gather"


@pytest.mark.parametrize(
    ("perm", "axis", "place"), [("1,0,2", 0, 1), ("2,0,1", 0, 2), ("0,2,1", 1, 2), ("1,2,0", -1, 0)]
)
def test_an_index_of_an_axis_that_was_moved_alone(perm: str, axis: int, place: int) -> None:
    assert_rewrites(
        PASS,
        "(float[2,2,2] x, int64 i) => (float[2,2] y)"
        f" {{ h = Transpose<perm=[{perm}]>(x)  y = Gather<axis={axis}>(h, i) }}",
        f"(float[2,2,2] x, int64 i) => (float[2,2] y) {{ y = Gather<axis={place}>(x, i) }}",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("(float[2,3] x, int64[1] i) => (float[1,2] y) { h = Transpose(x)  y = Gather(h, i) }",
         "the index is no single number"),
        ("(float[] x, int64 i) => (float[] y) { h = Transpose(x)  y = Gather(h, i) }",
         "the rank of x is not known"),
        ("(float[2,3,4] x, int64 i) => (float[3,2] y)"
         " { h = Transpose<perm=[2,1,0]>(x)  y = Gather(h, i) }",
         "the other axes change their order"),
        ("(float[2,3] x, int64 i) => (float[2] y) { h = Transpose<perm=[2,0,1]>(x)  y = Gather(h, i) }",
         "perm does not have the rank of x"),
    ],
)  # fmt: skip
def test_others_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
