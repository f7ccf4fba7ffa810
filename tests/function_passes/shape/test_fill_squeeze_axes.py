import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fill_squeeze_axes"


def test_axes_of_size_one_are_named() -> None:
    assert_rewrites(
        PASS,
        "(float[1,3,1,2] x) => (float[3,2] y) { y = Squeeze(x) }",
        "(float[1,3,1,2] x) => (float[3,2] y) <int64[2] a = {0,2}> { y = Squeeze(x, a) }",
    )


@pytest.mark.parametrize(
    ("x", "y", "because"),
    [
        ("float[1,N]", "float[M]", "a dim of x may be 1"),
        ("float[2,3]", "float[2,3]", "no dim of x is 1"),
    ],
)
def test_it_declines(x: str, y: str, because: str) -> None:
    assert_unchanged(PASS, f"({x} x) => ({y} y) {{ y = Squeeze(x) }}", because=because)


def test_old_opsets_have_axes_as_an_attribute() -> None:
    assert_rewrites(
        PASS,
        "(float[1,3] x) => (float[3] y) { y = Squeeze(x) }",
        "(float[1,3] x) => (float[3] y) { y = Squeeze<axes = [0]>(x) }",
        opset=11,
    )
