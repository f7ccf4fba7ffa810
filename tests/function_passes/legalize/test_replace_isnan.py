from tiered.testing import assert_rewrites, assert_unchanged


def test_nan_alone_differs_from_itself() -> None:
    assert_rewrites(
        "replace_isnan",
        "(float[N,3] x) => (bool[N,3] y) { y = IsNaN(x) }",
        "(float[N,3] x) => (bool[N,3] y) { e = Equal(x, x) y = Not(e) }",
    )


def test_before_opset_11_it_stays() -> None:
    assert_unchanged(
        "replace_isnan",
        "(float[2] x) => (bool[2] y) { y = IsNaN(x) }",
        because="before opset 11",
        opset=10,
    )
