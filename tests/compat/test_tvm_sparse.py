"""TVM's names for sparse weights and transposed ones."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tiered import Model, UsageError
from tiered.compat import tvm
from tiered.rewriter.idioms.sparsity import block_sparsity
from tiered.runtime import Session
from tiered.testing import parse


def _model() -> onnx.ModelProto:
    model = parse(
        "(float[4,64] x) => (float[4,32] y, float[4,32] z) { y = MatMul(x, w) z = Gemm(x, v) }"
    )
    dense = np.arange(1, 64 * 32 + 1, dtype=np.float32).reshape(64, 32)
    sparse = np.zeros((64, 32), np.float32)
    sparse[:16, :4], sparse[20, 9] = 0.5, -0.0
    model.graph.initializer.append(numpy_helper.from_array(sparse, "w"))
    model.graph.initializer.append(numpy_helper.from_array(dense, "v"))
    return model


def test_weights_of_mostly_zeros_are_found_with_their_bsr_shapes() -> None:
    found = tvm.relay.analysis.sparse_dense.process_params(_model(), None, (16, 1), 0.8)
    # Four full blocks, and the one of -0.0; 64 / 16 rows of blocks.
    assert found.weight_name == ["w"]
    assert found.weight_shape == [[5, 16, 1, 5, 5]]
    model = Model.from_proto(_model())
    assert tvm.relay.analysis.sparse_dense.process_params(model, {"v": 0}, (16, 1), 0.8) == ([], [])
    assert tvm.process_params(model, None, (5, 1), 0.8) == ([], [])
    with pytest.raises(UsageError, match="no weight 'u'"):
        tvm.process_params(model, {"u": 0}, (16, 1), 0.8)


def test_found_weights_are_stored_sparse_with_the_same_bits() -> None:
    model = _model()
    params = {"w": None, "v": None}
    made, after = tvm.relay.data_dep_optimization.bsr_dense.convert(model, params, (16, 1), 0.8)
    assert after is params
    assert [each.values.name for each in made.graph.sparse_initializer] == ["w"]
    assert [each.name for each in made.graph.initializer] == ["v"]
    feeds = {"x": np.full((4, 64), -1, np.float32)}
    for name, array in Session(model).run(feeds).items():
        np.testing.assert_array_equal(Session(made).run(feeds)[name], array)
    convert = tvm.relay.data_dep_optimization.bsr_dense.convert
    assert convert(model, None, (16, 1), 0.99)[0] is model
    assert convert(model, None, (16, 1), 0.8, lambda _: False)[0] is model


def test_named_weights_are_stored_sparse_whatever_their_zeros() -> None:
    made = tvm.transform.DenseToSparse(["w"], [[5, 16, 1, 5, 5]])(_model())
    assert len(made.graph.sparse_initializer) == 1
    assert len(tvm.DenseToSparse(["v"])(_model()).graph.sparse_initializer) == 1
    with pytest.raises(UsageError, match="has the BSR shape"):
        tvm.DenseToSparse(["w"], [[4, 16, 1, 4, 5]])(_model())
    with pytest.raises(UsageError, match="1 name and 2 shapes"):
        tvm.DenseToSparse(["w"], [[1], [2]])
    with pytest.raises(UsageError, match="dense_to_sparse"):
        tvm.DenseToSparse(["u"], [[4, 16, 1, 4, 5]])(_model())


def test_transposed_weights_are_computed() -> None:
    model = parse(
        """(float[2,3] x) => (float[2,2] y) <float[2,3] w = {1,2,3,4,5,6}> {
        t = Transpose(w) y = MatMul(x, t) }"""
    )
    convert = tvm.relay.data_dep_optimization.simplify_fc_transpose.convert
    made, params = convert(model)
    assert params is None
    assert [node.op_type for node in made.graph.node] == ["MatMul"]
    assert convert(made)[0] is made


def test_blocks_have_to_divide_a_matrix() -> None:
    for shape, block in (((4, 4), (3, 1)), ((4,), (1, 1)), ((4, 4), (0, 1))):
        with pytest.raises(UsageError, match="blocks of"):
            block_sparsity(np.zeros(shape, np.float32), block)
    assert block_sparsity(np.zeros((0, 4), np.float32), (2, 2)).bsr_shape == [0, 2, 2, 0, 1]
