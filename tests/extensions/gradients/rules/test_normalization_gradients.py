"""Gradients of normalizations."""

import numpy as np
import pytest

from tests.extensions.gradients.differences import (
    OnnxRuntime,
    Reference,
    check,
    in_double,
    with_gradients,
)
from tiered.testing import parse

NORMALIZATIONS = [
    "(double[2,3,4] x, double[3] s, double[3] b, double[3] m, double[3] v) => (double[2,3,4] y) "
    "{ y = BatchNormalization(x, s, b, m, v) }",
    "(double[2,3,4] x, double[3] s, double[3] b) => (double[2,3,4] y) "
    "{ y = InstanceNormalization(x, s, b) }",
    "(double[2,3,4] x, double[4] s, double[4] b) => (double[2,3,4] y) "
    "{ y = LayerNormalization(x, s, b) }",
    "(double[2,3,4] x, double[3,1] s, double[4] b) => (double[2,3,4] y) "
    "{ y = LayerNormalization <axis = 1> (x, s, b) }",
    "(double[2,N,4] x, double[4] s) => (double[2,3,4] y) "
    "{ y = LayerNormalization <axis = -2, epsilon = 0.1> (x, s) }",
    "(double[2,4] x) => (double[2,4] y) { y = LpNormalization(x) }",
    "(double[2,4] x) => (double[2,4] y) { y = LpNormalization <p = 1> (x) }",
]


@pytest.mark.parametrize("text", NORMALIZATIONS)
def test_normalizations(text: str) -> None:
    check(text, low=0.2, high=2)


def test_the_mean_and_the_inverse_deviation_have_gradients() -> None:
    check(
        "(double[2,3,4] x, double[4] s, double[4] b) => "
        "(double[2,3,4] y, double[2,3,1] m, double[2,3,1] i) "
        "{ y, m, i = LayerNormalization(x, s, b) }",
        in_float=True,
    )


def test_half_floats_are_normalized_in_float() -> None:
    """Squares beyond 65,504 would be Inf in float16."""
    proto = parse(
        "(float16[2,4] x, float16[4] s, float16[4] b) => (float16[2,4] y) "
        "{ y = LayerNormalization(x, s, b) }"
    )
    made = with_gradients(proto)
    random = np.random.default_rng(0)
    feeds = {
        "x": (random.standard_normal((2, 4)) * 1000).astype(np.float16),
        "s": np.full(4, 30, np.float16),
        "b": np.zeros(4, np.float16),
        "seed/y": random.standard_normal((2, 4)).astype(np.float16),
    }
    found = OnnxRuntime(made)(feeds)
    text = "(float[2,4] x, float[4] s, float[4] b) => (float[2,4] y) " \
        "{ y = LayerNormalization(x, s, b) }"  # fmt: skip
    wide = Reference(in_double(with_gradients(parse(text))))
    expected = wide({name: each.astype(np.float64) for name, each in feeds.items()})
    for name in ("grad/x", "grad/s", "grad/b"):
        assert found[name].dtype == np.float16
        np.testing.assert_allclose(found[name], expected[name], rtol=2e-3, atol=1e-3)
