import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "lazy_gradient_init"


@pytest.mark.parametrize(("operator", "filling"), [("Add", 0), ("Mul", 1)], ids=["zeros", "ones"])
@pytest.mark.parametrize("operands", ["f, g", "g, f"])
def test_a_filled_neutral_operand_is_dropped(operator: str, filling: int, operands: str) -> None:
    assert_rewrites(
        PASS,
        f"""(float[N,3] g) => (float[N,3] y) {{
            s = Shape(g)
            f = ConstantOfShape <value = float[1] {{{filling}}}> (s)
            h = {operator}({operands})
            y = Tanh(h) }}""",
        "(float[N,3] g) => (float[N,3] y) { y = Tanh(g) }",
    )


def test_the_default_filling_is_zero() -> None:
    assert_rewrites(
        PASS,
        """(float[N,3] g) => (float[N,3] y) {
            s = Shape(g)  f = ConstantOfShape(s)  h = Add(f, g)  y = Tanh(h) }""",
        "(float[N,3] g) => (float[N,3] y) { y = Tanh(g) }",
    )


def test_zeros_that_may_make_the_result_larger_stay() -> None:
    assert_unchanged(
        PASS,
        """(float[1,3] g, int64[2] s) => (float[N,3] y) {
            f = ConstantOfShape(s)  y = Add(f, g) }""",
        because="the neutral operand may make the result larger",
    )


def test_another_number_stays() -> None:
    assert_unchanged(
        PASS,
        """(float[N,3] g) => (float[N,3] y) {
            s = Shape(g)  f = ConstantOfShape <value = float[1] {1}> (s)  y = Add(f, g) }""",
        because="no operand is a filled 0",
    )


def test_zeros_times_a_gradient_stay_as_it_may_be_nan() -> None:
    assert_unchanged(
        PASS,
        "(float[N,3] g) => (float[N,3] y) { s = Shape(g)  f = ConstantOfShape(s)  y = Mul(f, g) }",
        because="no operand is a filled 1",
    )


def test_a_filling_of_several_numbers_is_none() -> None:
    assert_unchanged(
        PASS,
        """(float[N,3] g) => (float[N,3] y) {
            s = Shape(g)  f = ConstantOfShape <value = float[2] {0, 0}> (s)  y = Add(f, g) }""",
        because="no operand is a filled 0",
    )
