import math

import numpy as np

from tiered import optimize
from tiered.runtime import run
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "replace_gelu_with_tanh"
TEXT = "(float[N] x) => (float[N] y) { y = Gelu(x) }"


def test_the_tangent_takes_the_place_of_the_error_function() -> None:
    assert_rewrites(
        PASS,
        TEXT,
        '(float[N] x) => (float[N] y) { y = Gelu<approximate="tanh">(x) }',
        runtime="none",
    )


def test_its_error_is_as_documented() -> None:
    x = np.linspace(-8, 8, 100_001, dtype=np.float32)
    y = run(optimize(parse(TEXT), passes=PASS), {"x": x})["y"]
    exact = np.array([0.5 * number * (1 + math.erf(number / math.sqrt(2))) for number in x])
    assert 1e-4 < np.abs(y - exact).max() <= 4.8e-4


def test_what_is_a_tangent_already_stays() -> None:
    assert_unchanged(PASS, TEXT.replace("Gelu", 'Gelu<approximate="tanh">'))
