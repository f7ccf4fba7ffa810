"""Which weights matter most for the outputs."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tiered.extensions.debug.weight_effects import sensitivity
from tiered.testing import parse

DENSE = np.array([[0, 5, 0], [0, 0, 7]], np.float32)
INPUTS = [{"x": np.ones((2, 3), np.float32)}]


@pytest.mark.parametrize("places", [[1, 5], [[0, 1], [1, 2]]], ids=["linear", "coordinates"])
def test_a_sparse_weight_has_the_effect_of_the_dense_one(places: list[int]) -> None:
    dense = parse("(float[2,3] x) => (float[2,3] y) { y = Add(x, w) }")
    sparse = onnx.ModelProto()
    sparse.CopyFrom(dense)
    dense.graph.initializer.append(numpy_helper.from_array(DENSE, "w"))
    values = numpy_helper.from_array(np.array([5, 7], np.float32), "w")
    indices = numpy_helper.from_array(np.array(places), "w_indices")
    sparse.graph.sparse_initializer.append(
        helper.make_sparse_tensor(values, indices, [*DENSE.shape])
    )
    assert sensitivity(sparse, INPUTS) == sensitivity(dense, INPUTS)
    assert sensitivity(dense, INPUTS)[0].effect > 0
