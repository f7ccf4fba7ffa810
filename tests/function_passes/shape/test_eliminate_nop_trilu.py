import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_nop_trilu"


@pytest.mark.parametrize(
    ("shape", "k", "upper"),
    [("1,3", 0, 1), ("2,1,3", -1, 1), ("4,3", -3, 1), ("3,1", 0, 0), ("3,4", 3, 0)],
)
def test_a_triangle_of_all_elements_is_the_tensor(shape: str, k: int, upper: int) -> None:
    assert_rewrites(
        PASS,
        f"(float[{shape}] x) => (float[{shape}] y) <int64 k = {{{k}}}>"
        f" {{ h = Relu(x)  y = Trilu<upper={upper}>(h, k) }}",
        f"(float[{shape}] x) => (float[{shape}] y) {{ y = Relu(x) }}",
    )


def test_without_k_it_is_the_main_diagonal() -> None:
    assert_rewrites(
        PASS,
        "(float[1,N] x) => (float[1,N] y) { h = Relu(x)  y = Trilu(h) }",
        "(float[1,N] x) => (float[1,N] y) { y = Relu(x) }",
    )


def test_the_same_triangle_again_is_nothing() -> None:
    assert_rewrites(
        PASS,
        "(float[N,N] x) => (float[N,N] y) <int64 k = {0}>"
        " { h = Trilu<upper=0>(x)  y = Trilu<upper=0>(h, k) }",
        "(float[N,N] x) => (float[N,N] y) { y = Trilu<upper=0>(x) }",
    )


def test_another_triangle_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[3,3] x, int64 k) => (float[3,3] y) { h = Trilu(x, k)  y = Trilu<upper=0>(h) }",
        because="it sets elements above the diagonal to 0",
    )


@pytest.mark.parametrize(
    ("shape", "upper", "because"),
    [("N,3", 1, "the number of rows is not known"), ("3,N", 0, "the number of columns is not known"),
     ("2,3", 1, "it sets elements below the diagonal to 0")],
)  # fmt: skip
def test_what_may_cut_stays(shape: str, upper: int, because: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[{shape}] x) => (float[{shape}] y) {{ y = Trilu<upper={upper}>(x) }}",
        because=because,
    )
