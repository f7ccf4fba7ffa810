import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_consecutive_scale"


def _model(nodes: str, constants: str, dtype: str = "float") -> str:
    held = constants.replace("D ", f"{dtype} ")
    return f"({dtype}[N] x) => ({dtype}[N] y) <{held}> {{ {nodes} }}"


@pytest.mark.parametrize("dtype", ["float", "double"])
@pytest.mark.parametrize(
    ("inner", "outer", "number", "after"),
    [
        ("Mul(x, a)", "Mul(h, b)", 20, "Mul(x, c)"),
        ("Mul(a, x)", "Mul(b, h)", 20, "Mul(x, c)"),
        ("Mul(x, a)", "Div(h, b)", 0.2, "Mul(x, c)"),
        ("Div(x, a)", "Mul(h, b)", 5, "Mul(x, c)"),
        ("Div(x, a)", "Div(h, b)", 0.05, "Mul(x, c)"),
        ("Div(a, x)", "Mul(h, b)", 20, "Div(c, x)"),
        ("Div(a, x)", "Div(h, b)", 0.2, "Div(c, x)"),
        ("Mul(x, a)", "Div(b, h)", 5, "Div(c, x)"),
        ("Div(x, a)", "Div(b, h)", 20, "Div(c, x)"),
        ("Div(a, x)", "Div(b, h)", 5, "Mul(x, c)"),
        ("Div(x, a)", "Reciprocal(h)", 2, "Div(c, x)"),
        ("Mul(x, a)", "Reciprocal(h)", 0.5, "Div(c, x)"),
        ("Div(a, x)", "Reciprocal(h)", 0.5, "Mul(x, c)"),
    ],
)
def test_two_factors_are_one(inner: str, outer: str, number: float, after: str, dtype: str) -> None:
    used = "D a = {2}" if "Reciprocal" in outer else "D a = {2}, D b = {10}"
    assert_rewrites(
        PASS,
        _model(f"h = {inner}  y = {outer}", used, dtype),
        _model(f"y = {after}", f"D c = {{{number}}}", dtype),
    )


def test_factors_that_cancel_leave_nothing() -> None:
    assert_rewrites(
        PASS,
        _model("h = Div(x, a)  i = Mul(h, a)  y = Relu(i)", "D a = {3}"),
        _model("y = Relu(x)", ""),
    )


def test_a_factor_of_one_that_adds_dims_stays() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x) => (float[1,N] y) <float[1,1] a = {3}> { h = Div(x, a)  y = Mul(h, a) }",
        "(float[N] x) => (float[1,N] y) <float[1,1] c = {1}> { y = Mul(x, c) }",
    )


def test_factors_of_several_numbers_are_multiplied_one_by_one() -> None:
    assert_rewrites(
        PASS,
        "(float[N,2] x) => (float[N,2] y) <float[2] a = {1,2}, float b = {3}>"
        " { h = Mul(x, a)  y = Mul(h, b) }",
        "(float[N,2] x) => (float[N,2] y) <float[2] c = {3,6}> { y = Mul(x, c) }",
    )


@pytest.mark.parametrize("number", ["0", "inf", "nan", "1e30", "1e-30"])
def test_a_factor_far_from_one_stays(number: str) -> None:
    for a, b in ((number, "2"), ("2", number)):
        assert_unchanged(
            PASS,
            _model("h = Mul(x, a)  y = Div(h, b)", f"D a = {{{a}}}, D b = {{{b}}}"),
            because="a factor is 0, not finite or far from 1",
        )


def test_factors_that_are_far_from_one_together_stay() -> None:
    assert_unchanged(
        PASS,
        _model("h = Mul(x, a)  y = Mul(h, a)", "D a = {1e6}"),
        because="together the factors are far from 1",
    )


def _of_sizes(size: int) -> str:
    ones = ",".join(["1"] * size)
    return (
        f"(float[2,{size}] x) => (float[2,{size}] y) <float[2,1] a = {{1,2}},"
        f" float[{size}] b = {{{ones}}}> {{ h = Mul(x, a)  y = Mul(h, b) }}"
    )


def test_together_they_are_not_larger() -> None:
    assert_unchanged(PASS, _of_sizes(3), because="together the constants are larger")


def test_large_constants_are_left_alone() -> None:
    assert_unchanged(PASS, _of_sizes(1025), because="a constant is large")


def test_constants_that_do_not_broadcast_stay() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x) => (float[M] y) <float[2] a = {1,2}, float[3] b = {1,2,3}>"
        " { h = Mul(x, a)  y = Mul(h, b) }",
        because="the constants do not broadcast",
    )


def test_integers_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        _model("h = Div(x, a)  y = Mul(h, a)", "D a = {2}", "int64"),
        because="constants of the dtype are not multiplied",
    )


def test_a_product_with_other_consumers_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x) => (float[N] y, float[N] h) <float a = {3}> { h = Mul(x, a)  y = Mul(h, a) }",
        because="an inner value is a graph output",
    )
