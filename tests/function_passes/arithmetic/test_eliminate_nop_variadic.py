from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_nop_variadic"


def test_one_operand_is_the_result() -> None:
    for op in ("Sum", "Mean", "Max", "Min"):
        for opset in (7, 21):
            assert_rewrites(
                PASS,
                f"(float[N] x) => (float[N] y) {{ h = {op}(x)  y = Exp(h) }}",
                "(float[N] x) => (float[N] y) { y = Exp(x) }",
                opset=opset,
            )


def test_several_operands_are_left_alone() -> None:
    assert_unchanged(PASS, "(float[N] x) => (float[N] y) { y = Max(x, x) }")
