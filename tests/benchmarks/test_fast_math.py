"""The polynomials of the benchmark compute what the operators compute."""

import numpy as np
import onnx
import pytest

from benchmarks import fast_math
from tiered.runtime import run


@pytest.mark.parametrize("name", fast_math.FAST)
def test_a_polynomial_is_the_function(name: str) -> None:
    own, fast = fast_math.Chain(), fast_math.Chain()
    models = own.model(own.op(name, "x")), fast.model(fast_math.FAST[name](fast, "x"))
    x = np.linspace(-8, 8, 2 * fast_math.COLUMNS, dtype=np.float32).reshape(2, -1)
    expected, actual = (next(iter(run(model, {"x": x}).values())) for model in models)
    onnx.checker.check_model(models[1], full_check=True)
    np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-6)


def test_each_is_measured() -> None:
    rows = list(fast_math.measured(1, 1))
    assert [row.name for row in rows] == ["Exp", "Tanh", "Erf", "Softmax"]
    assert all(row.kernel > 0 < row.polynomial and row.difference < 1e-5 for row in rows)
