import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_quick_gelu"
ORT = "onnxruntime_cpu"
IMAGE = "(float[N,4] x) => (float[N,4] y)"
SCALED = "t = Mul(x, a) s = Sigmoid(t) y = Mul(s, x)"


@pytest.mark.parametrize("operands", ["x, s", "s, x"])
def test_a_swish_has_alpha_one(operands: str) -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} {{ s = Sigmoid(x) y = Mul({operands}) }}",
        f"{IMAGE} {{ y = com.microsoft.QuickGelu<alpha=1.0>(x) }}",
        opset=17,
        backend=ORT,
    )


def test_alpha_scales_what_the_sigmoid_sees() -> None:
    assert_rewrites(
        PASS,
        f"{IMAGE} <float a = {{1.702}}> {{ {SCALED} }}",
        f"{IMAGE} {{ y = com.microsoft.QuickGelu<alpha=1.702>(x) }}",
        backend=ORT,
    )


@pytest.mark.parametrize(
    ("constant", "because"),
    [
        ("float[4] a = {1,2,3,4}", "alpha is not one number"),
        ("float[1,1,1] a = {2}", "a constant may give x more dims"),
    ],
)
def test_alpha_is_one_number(constant: str, because: str) -> None:
    image = IMAGE if "[4]" in constant else IMAGE.replace("[N,4] y", "[1,N,4] y")
    assert_unchanged(PASS, f"{image} <{constant}> {{ {SCALED} }}", backend=ORT, because=because)


def test_other_targets_keep_the_chain() -> None:
    assert_unchanged(PASS, f"{IMAGE} {{ s = Sigmoid(x) y = Mul(x, s) }}")


def test_a_double_that_32_bits_do_not_hold_stays_a_constant() -> None:
    assert_unchanged(
        PASS,
        f"(double[N,4] x) => (double[N,4] y) <double a = {{1.702}}> {{ {SCALED} }}",
        backend=ORT,
        because="alpha is a double that no attribute holds",
    )


def test_alpha_that_callers_feed_is_no_constant() -> None:
    assert_unchanged(PASS, f"(float[N,4] x, float a) => (float[N,4] y) {{ {SCALED} }}", backend=ORT)
