import numpy as np
import pytest

from tiered import get_pass
from tiered.runtime import run
from tiered.testing import assert_rewrites, assert_unchanged, parse

HEAD = "(float[N,3] x) => (float[N,3] y)"


def test_an_alpha_scales_x_and_the_result() -> None:
    assert_rewrites(
        "replace_celu",
        f"{HEAD} {{ y = Celu<alpha=2.0>(x) }}",
        f"{HEAD} <float a = {{2}}, float o = {{0}}> {{"
        " d = Div(x, a) e = Elu(d) m = Mul(e, a) p = Greater(x, o) y = Where(p, x, m) }",
    )


@pytest.mark.parametrize("alpha", [0.5, 1e-3, 3.0])
def test_the_largest_numbers_stay_finite(alpha: float) -> None:
    proto = parse(f"(float[6] x) => (float[6] y) {{ y = Celu<alpha={alpha}>(x) }}")
    x = np.array([2e38, -2e38, 3.4028235e38, -3.4028235e38, np.inf, -np.inf], np.float32)
    made = run(get_pass("replace_celu").apply(proto), {"x": x})["y"]
    assert made.tolist() == pytest.approx(run(proto, {"x": x})["y"].tolist(), rel=1e-6)
    assert made[0] == x[0]


def test_an_alpha_of_one_is_an_elu() -> None:
    assert_rewrites("replace_celu", f"{HEAD} {{ y = Celu(x) }}", f"{HEAD} {{ y = Elu(x) }}")


def test_an_alpha_that_is_not_positive_stays() -> None:
    text = f"{HEAD} {{ y = Celu<alpha=0.0>(x) }}"
    assert_unchanged("replace_celu", text, because="alpha is 0.0")
    text = f"{HEAD} {{ y = Celu<alpha=-0.5>(x) }}"
    assert_unchanged("replace_celu", text, because="alpha is -0.5")


def test_an_unknown_dtype_stays() -> None:
    assert_unchanged(
        "replace_celu",
        '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> '
        f"g {HEAD} {{ a = own.Any(x) y = Celu(a) }}",
        because="the dtype of x is not known",
    )
