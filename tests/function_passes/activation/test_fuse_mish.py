import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_mish"
IMAGE = "(float[N,4] x) => (float[N,4] y)"


@pytest.mark.parametrize("softplus", ["s = Softplus(x)", "e = Exp(x) a = Add(e, o) s = Log(a)"])
@pytest.mark.parametrize("operands", ["x, t", "t, x"])
def test_a_softplus_and_a_tanh_gate_their_own_operand(softplus: str, operands: str) -> None:
    constants = "<float o = {1}>" if "o)" in softplus else ""
    assert_rewrites(
        PASS,
        f"{IMAGE} {constants} {{ {softplus} t = Tanh(s) y = Mul({operands}) }}",
        f"{IMAGE} {{ y = Mish(x) }}",
    )


def test_another_operand_is_gated_by_a_multiplication() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, float[2] z) => (float[2] y) { s = Softplus(z) t = Tanh(s) y = Mul(x, t) }",
    )


def test_before_opset_18_there_is_no_mish() -> None:
    assert_unchanged(
        PASS,
        f"{IMAGE} {{ s = Softplus(x) t = Tanh(s) y = Mul(x, t) }}",
        opset=17,
        because="has no Mish",
    )


def test_doubles_stay_as_runtimes_have_no_kernel_for_them() -> None:
    assert_unchanged(
        PASS,
        "(double[2] x) => (double[2] y) { s = Softplus(x) t = Tanh(s) y = Mul(x, t) }",
        because="Mish has no kernel for doubles",
    )
