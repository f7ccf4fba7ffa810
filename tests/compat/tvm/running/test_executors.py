"""What runs a module."""

import numpy as np

from tests.recorded import assert_values
from tests.small import parsed
from tiered.compat.tvm.running.executors import Executor, create_executor, optimize


def test_an_executor_runs_the_built_model() -> None:
    one = parsed("(float[2] x, float[2] z) => (float[2] y) { a = Identity(x) y = Sub(a, z) }")
    two = parsed(
        "(float[2] x) => (float[2] y, float[2] z) <float[2] w = {1,2}> { y = Neg(x) z = Add(x, w) }"
    )
    names = {
        "one": one,
        "two": two,
        "a": np.array([3, 4], np.float32),
        "b": np.array([1, 1], np.float32),
        "make": create_executor,
        "Executor": Executor,
        "optimize": optimize,
    }
    assert_values(__file__, names)
