import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_same_operands"


@pytest.mark.parametrize(
    ("f", "dtype"),
    [("And", "bool"), ("Or", "bool"), ("Max", "float"), ("Min", "float"), ("Max", "int64"),
     ("BitwiseAnd", "int32"), ("BitwiseOr", "uint8")],
)  # fmt: skip
def test_an_operator_of_a_value_and_itself_is_the_value(f: str, dtype: str) -> None:
    assert_rewrites(
        PASS,
        f"({dtype}[2] x) => ({dtype}[2] y) {{ h = Concat<axis=0>(x)  y = {f}(h, h) }}",
        f"({dtype}[2] x) => ({dtype}[2] y) {{ y = Concat<axis=0>(x) }}",
    )


@pytest.mark.parametrize(
    ("f", "dtype"), [("And", "bool"), ("Or", "bool"), ("Max", "float"), ("Min", "int64")]
)
def test_a_value_beside_its_repeats_adds_nothing(f: str, dtype: str) -> None:
    for operands in ("g, h", "h, g"):
        assert_rewrites(
            PASS,
            f"({dtype}[3] x, int64[2] s) => ({dtype}[N,3] y)"
            f" {{ g = Concat<axis=0>(x)  h = Expand(g, s)  y = {f}({operands}) }}",
            f"({dtype}[3] x, int64[2] s) => ({dtype}[N,3] y)"
            " { g = Concat<axis=0>(x)  y = Expand(g, s) }",
        )


def test_a_where_of_equal_branches_does_not_read_the_condition() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x, bool[3] c) => (float[2,3] y) { h = Relu(x)  y = Where(c, h, h) }",
        "(float[2,3] x, bool[3] c) => (float[2,3] y) { y = Relu(x) }",
        runtime="reference",
    )


def test_a_larger_condition_expands_the_value() -> None:
    assert_rewrites(
        PASS,
        "(float[3] x, bool[2,3] c) => (float[2,3] y) { h = Relu(x)  y = Where(c, h, h) }",
        "(float[3] x, bool[2,3] c) => (float[2,3] y) <int64[2] s = {2,3}>"
        " { h = Relu(x)  y = Expand(h, s) }",
        runtime="reference",
    )


def test_a_condition_of_unknown_size_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[3] x, bool[N,3] c) => (float[N,3] y) { h = Relu(x)  y = Where(c, h, h) }",
        because="the condition may make the result larger",
    )


def test_others_stay() -> None:
    for f in ("Xor", "Equal"):
        assert_unchanged(PASS, f"(bool[2] x) => (bool[2] y) {{ y = {f}(x, x) }}")
    assert_unchanged(PASS, "(float[2] x, float[2] z) => (float[2] y) { y = Max(x, z) }")
    assert_unchanged(PASS, "(float[2] x) => (float[2] y) { y = Max(x, x, x) }")
