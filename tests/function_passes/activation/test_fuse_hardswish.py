import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_hardswish"
IMAGE = "(float[N,4] x) => (float[N,4] y)"
NUMBERS = "float t = {3}, float z = {0}, float s = {6}"


@pytest.mark.parametrize(
    "nodes",
    [
        "a = Add(x, t) c = Clip(a, z, s) m = Mul(x, c) y = Div(m, s)",
        "a = Add(t, x) c = Clip(a, z, s) m = Mul(c, x) y = Mul(r, m)",
        "a = Add(x, t) c = Clip(a, z, s) d = Div(c, s) y = Mul(x, d)",
        "a = Add(x, t) c = Clip(a, z, s) d = Mul(c, r) y = Mul(d, x)",
        "a = Add(x, t) c = Clip(a, z, s) d = Div(x, s) y = Mul(d, c)",
    ],
)
def test_every_association_of_the_clip(nodes: str) -> None:
    sixth = ", float r = {0.16666667}" if "r" in nodes.split("Clip")[1] else ""
    assert_rewrites(
        PASS,
        f"{IMAGE} <{NUMBERS}{sixth}> {{ {nodes} }}",
        f"{IMAGE} {{ y = HardSwish(x) }}",
    )


def test_a_hard_sigmoid_gates_its_own_operand() -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} {{ s = HardSigmoid<alpha=0.16666667, beta=0.5>(x) y = Mul(x, s) }}",
        f"{IMAGE} {{ y = HardSwish(x) }}",
    )


@pytest.mark.parametrize("settings", ["", "<alpha=0.2>", "<alpha=0.16666667, beta=0.25>"])
def test_another_slope_is_another_function(settings: str) -> None:
    assert_unchanged(PASS, f"{IMAGE} {{ s = HardSigmoid{settings}(x) y = Mul(x, s) }}")


def test_a_constant_may_not_add_dims() -> None:
    assert_unchanged(
        PASS,
        f"(float[4] x) => (float[1,4] y) <{NUMBERS.replace('float t', 'float[1,1] t')}>"
        " { a = Add(x, t) c = Clip(a, z, s) m = Mul(x, c) y = Div(m, s) }",
        because="a constant may give x more dims",
    )


def test_before_opset_14_there_is_no_hard_swish() -> None:
    assert_unchanged(
        PASS,
        f"{IMAGE} <{NUMBERS}> {{ a = Add(x, t) c = Clip(a, z, s) m = Mul(x, c) y = Div(m, s) }}",
        opset=13,
        because="has no HardSwish",
    )


@pytest.mark.parametrize("dtype", ["double", "int32"])
def test_doubles_and_integers_stay_as_there_is_no_kernel_for_them(dtype: str) -> None:
    assert_unchanged(
        PASS,
        f"({dtype}[N,4] x) => ({dtype}[N,4] y) <{dtype} t = {{3}}, {dtype} z = {{0}}, "
        f"{dtype} s = {{6}}> {{ a = Add(x, t) c = Clip(a, z, s) m = Mul(x, c) y = Div(m, s) }}",
        because="HardSwish has no kernel for the dtype",
    )
