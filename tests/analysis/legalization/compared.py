"""Run a model before and after a pass, for passes whose results depend on many attributes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from tiered import Model, get_pass
from tiered.runtime import run
from tiered.testing import parse

Arrays = Mapping[str, NDArray[Any]]


def run_both(
    name: str, text: str, inputs: Arrays, *, opset: int = 21, **options: Any
) -> tuple[Arrays, Arrays, list[str]]:
    """Return the outputs before and after a pass, and the operators that remain.

    The pass must change the model, and the result satisfy onnx.checker.
    """
    source = parse(text, opset=opset)
    model = Model.from_proto(source)
    mark = model.mark()
    get_pass(name, **options).apply(model)
    assert model.changed_since(mark), f"{name} did nothing"
    result = model.to_proto()
    onnx.checker.check_model(result, full_check=True)
    return run(source, inputs), run(result, inputs), [node.op_type for node in result.graph.node]


def assert_close(name: str, text: str, inputs: Arrays, **options: Any) -> list[str]:
    """Assert that outputs stay within float tolerance; return the operators that remain."""
    before, after, operators = run_both(name, text, inputs, **options)
    for output, expected in before.items():
        actual = after[output]
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        rtol = 2e-3 if expected.dtype == np.float16 else 2e-6
        np.testing.assert_allclose(actual, expected, rtol=rtol, atol=2e-6)
    return operators


def assert_equal(name: str, text: str, inputs: Arrays, **options: Any) -> list[str]:
    """Assert that outputs are the same, NaN included; return the operators that remain."""
    before, after, operators = run_both(name, text, inputs, **options)
    for output, expected in before.items():
        assert after[output].dtype == expected.dtype
        np.testing.assert_array_equal(after[output], expected)
    return operators


def floats(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    """Return standard normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
