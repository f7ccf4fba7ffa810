import pytest

from tiered import get_pass
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_silu"
IMAGE = "(float[N,4] x) => (float[N,4] y)"


@pytest.mark.parametrize("operands", ["x, s", "s, x"])
def test_a_sigmoid_gates_its_own_operand(operands: str) -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} {{ s = Sigmoid(x) y = Mul({operands}) }}",
        f"{IMAGE} {{ y = Swish(x) }}",
        opset=24,
    )


def test_alpha_scales_what_the_sigmoid_sees() -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} <float a = {{1.702}}> {{ t = Mul(x, a) s = Sigmoid(t) y = Mul(x, s) }}",
        f"{IMAGE} {{ y = Swish<alpha=1.702>(x) }}",
        opset=24,
    )


def test_alpha_is_one_number() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[2] y) <float[2] a = {1,2}>"
        " { t = Mul(x, a) s = Sigmoid(t) y = Mul(x, s) }",
        opset=24,
        because="alpha is not one number",
    )


def test_alpha_may_not_add_dims() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[1,2] y) <float[1,1] a = {3}>"
        " { t = Mul(x, a) s = Sigmoid(t) y = Mul(x, s) }",
        opset=24,
        because="a constant may give x more dims",
    )


def test_another_operand_is_gated_by_a_multiplication() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, float[2] z) => (float[2] y) { s = Sigmoid(z) y = Mul(x, s) }",
        opset=24,
    )


def test_before_opset_24_there_is_no_swish() -> None:
    assert_unchanged(
        PASS, f"{IMAGE} {{ s = Sigmoid(x) y = Mul(x, s) }}", opset=23, because="has no Swish"
    )


def test_it_is_slower_on_onnxruntime_and_so_opt_in() -> None:
    assert get_pass(PASS).info.opt_level is None
