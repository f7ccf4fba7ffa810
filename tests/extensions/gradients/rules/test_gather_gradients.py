"""Gradients of operators that read at indices."""

import numpy as np
import pytest

from tests.extensions.gradients.differences import (
    OnnxRuntime,
    check,
    gradients_of,
    with_gradients,
)
from tiered.testing import parse

INDICES = [
    "(double[5,3] x) => (double[2,2,3] y) <int64[2,2] i = {0,4,-1,0}> { y = Gather(x, i) }",
    "(double[2,5,3] x) => (double[2,2,2,3] y) <int64[2,2] i = {0,4,-1,0}> "
    "{ y = Gather <axis = 1> (x, i) }",
    "(double[2,5,3] x) => (double[2,3] y) <int64 i = {1}> { y = Gather <axis = 1> (x, i) }",
    "(double[3,3] x) => (double[2,3] y) <int64[2,3] i = {0,1,2,0,-1,2}> "
    "{ y = GatherElements(x, i) }",
    "(double[3,3] x) => (double[2] y) <int64[2,2] i = {0,1,0,1}> { y = GatherND(x, i) }",
    "(double[2,3] x) => (double[2] y) <int64[2,1] i = {0,2}> "
    "{ y = GatherND <batch_dims = 1> (x, i) }",
    "(double[2] v) => (double[2,3] y) <int64[2] i = {0,2}, int64 d = {3}> { y = OneHot(i, d, v) }",
]


@pytest.mark.parametrize("text", INDICES)
def test_indices(text: str) -> None:
    check(text)


@pytest.mark.parametrize(
    ("settings", "y"), [("sorted = 1", "N"), ("axis = 0", "N,3"), ("axis = -1", "4,N")]
)
@pytest.mark.parametrize("outputs", ["y", "y, i, j"])
def test_unique(settings: str, y: str, outputs: str) -> None:
    check(f"(double[4,3] x) => (double[{y}] y) {{ {outputs} = Unique <{settings}> (x) }}")


def test_unique_in_the_order_of_x() -> None:
    check("(double[5] x) => (double[N] y) { y = Unique <sorted = 0> (x) }", in_float=True)


def test_features_of_the_classical_domain() -> None:
    text = """<ir_version: 10, opset_import: ["" : 13, "ai.onnx.ml" : 3]>
        g (float[3,4] x) => (float[3,2] y) <int64[2] i = {2,0}> {
            y = ai.onnx.ml.ArrayFeatureExtractor(x, i) }"""
    x, seed = np.zeros((3, 4), np.float32), np.ones((3, 2), np.float32)
    found = OnnxRuntime(with_gradients(parse(text)))({"x": x, "seed/y": seed})
    np.testing.assert_array_equal(found["grad/x"], [[1, 0, 1, 0]] * 3)


def test_features_of_a_vector() -> None:
    text = """<ir_version: 10, opset_import: ["" : 13, "ai.onnx.ml" : 3]>
        g (float[4] x) => (float[1,2] y) <int64[2] i = {3,3}> {
            y = ai.onnx.ml.ArrayFeatureExtractor(x, i) }"""
    x, seed = np.zeros(4, np.float32), np.array([[1, 2]], np.float32)
    found = OnnxRuntime(with_gradients(parse(text)))({"x": x, "seed/y": seed})
    np.testing.assert_array_equal(found["grad/x"], [0, 0, 0, 3])


def test_an_element_that_is_read_twice_gets_both_gradients() -> None:
    text = "(double[3] x) => (double[4] y) <int64[4] i = {0,2,-1,0}> { y = Gather(x, i) }"
    found = gradients_of(text, x=[0, 0, 0], seed=[1, 10, 100, 1000])["x"]
    np.testing.assert_array_equal(found, [1001, 0, 110])


@pytest.mark.parametrize("indices", ["int64 i = {1}", "int64[2,1] i = {1,0}", "int64[2] i = {0,1}"])
def test_rows_without_elements(indices: str) -> None:
    result = {"int64 ": "0", "int64[2,1]": "2,1,0", "int64[2] ": "2,0"}
    dims = next(dims for start, dims in result.items() if indices.startswith(start))
    text = f"(double[3,0] x) => (double[{dims}] y) <{indices}> {{ y = Gather(x, i) }}"
    found = gradients_of(text, x=np.zeros((3, 0)), in_float=True)["x"]
    assert found.shape == (3, 0)


def test_the_values_of_a_one_hot_get_their_elements() -> None:
    text = """(double[2] v) => (double[3,2] y) <int64[2] i = {0,2}, int64 d = {3}>
        { y = OneHot <axis = 0> (i, d, v) }"""
    found = gradients_of(text, v=[0, 0], seed=[[1, 2], [4, 8], [16, 32]])["v"]
    # Off: all but (0, 0) and (2, 1); on: those.
    np.testing.assert_array_equal(found, [2 + 4 + 8 + 16, 1 + 32])
