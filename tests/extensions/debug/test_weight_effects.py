"""Which weights matter most for the outputs."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tiered import Model, UsageError
from tiered.extensions.debug.weight_effects import _norms, _ordered, sensitivity
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


def test_weights_are_ordered_by_their_effect_and_named_by_their_first_reader() -> None:
    model = Model.from_proto(parse(
        "(float[2] x) => (float[2] y) <float[2] a = {1,2}, float[2] b = {3,4}, float[2] c = {5,6},"
        " float d = {7}> { [one] h = Mul(x, a)  [two] i = Add(h, a)  [three] y = Add(i, b) }"
    ))  # fmt: skip
    weights = [model.main.values[name] for name in "abcd"]
    rows = _ordered(weights, [(1, 2), (3, 5), (4, 1), (0, 2)])
    assert [tuple(vars(row).values()) for row in rows] == [
        ("b", "three", "Add", (2,), 3.0, 5.0, 0.5),
        ("a", "one", "Mul", (2,), 1.0, 2.0, 0.2),
        ("d", "", "", (), 0.0, 2.0, 0.2),
        ("c", "", "", (2,), 4.0, 1.0, 0.1),
    ]
    assert [row.share for row in _ordered(weights[:1], [(1, 0)])] == [0.0]
    free = model.main.values["x"]
    assert _norms(np.array([3, 4], np.float32), weights[0]).tolist() == [5, np.hypot(3, 8)]
    assert _norms(np.array([3, 4], np.float32), free).tolist() == [5, 5]


def test_a_model_without_weights_or_float_outputs_is_an_error() -> None:
    for text, outputs, weights in (
        ("(float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Add(x, w) }",
         "1 float output", "0 float weights"),
        ("(float[2,2] x) => (int64 y) <float[2,2] w = {1,2,3,4}> { a = Add(x, w)  y = Size(a) }",
         "0 float outputs", "1 float weight"),
        ("(float[2,2] x) => (float[2,2] y) <int64[2,2] w = {1,2,3,4}> { a = Cast<to=1>(w) "
         "y = Add(x, a) }", "1 float output", "0 float weights"),
    ):  # fmt: skip
        with pytest.raises(UsageError) as raised:
            sensitivity(parse(text))
        assert str(raised.value) == (
            f"sensitivity: the model has {outputs} and {weights} of two and more axes; expected at "
            "least one of each"
        )


def test_a_view_and_inputs_that_are_made() -> None:
    proto = parse(
        "(float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}, float[2] b = {5,6}> "
        "{ a = MatMul(x, w)  y = Add(a, b) }"
    )
    feeds = [{"x": np.array([[1, 0], [0, 1]], np.float32)}]
    of_proto, of_view = sensitivity(proto, feeds), sensitivity(Model.from_proto(proto), feeds)
    assert of_proto == of_view
    assert [(row.name, row.node, row.op_type, row.shape, row.share) for row in of_proto] == [
        ("w", "a", "MatMul", (2, 2), 1.0)
    ]
    made = sensitivity(proto)
    assert made == sensitivity(proto, seed=0)
    assert made != sensitivity(proto, seed=1)
