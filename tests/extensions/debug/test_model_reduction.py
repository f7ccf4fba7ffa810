import numpy as np
import onnx
import pytest

from tiered.extensions.debug import reduce_model
from tiered.runtime import make_inputs, shared_worker
from tiered.support.errors import TieredError, UsageError
from tiered.testing import parse

LONG = """(float[4,64] x) => (float[4,64] y, float[4,64] z) <float[64,64] w> {
    a = Neg(x)  b = MatMul(a, w)  c = Relu(b)  d = Abs(c)  e = Exp(d)  y = Neg(e)
    f = Abs(x)  z = Neg(f) }"""


def long() -> onnx.ModelProto:
    proto = parse(LONG)
    weight = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    del proto.graph.initializer[:]
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    kept = [info for info in proto.graph.value_info if info.name != "w"]
    del proto.graph.value_info[:]
    proto.graph.value_info.extend(kept)
    return proto


def ops(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def test_only_the_nodes_that_fail_are_left() -> None:
    def fails(model: onnx.ModelProto) -> bool:
        reads = {name for node in model.graph.node if node.op_type == "Abs" for name in node.input}
        return any(n.op_type == "Relu" and n.output[0] in reads for n in model.graph.node)

    said: list[str] = []
    made = reduce_model(long(), fails, said.append)
    assert ops(made) == ["Relu", "Abs"]
    onnx.checker.check_model(made, full_check=True)
    assert [info.name for info in made.graph.input] == ["b"]
    assert not made.graph.initializer
    assert said


def test_weights_become_ones_where_values_do_not_matter() -> None:
    def fails(model: onnx.ModelProto) -> bool:
        return "MatMul" in ops(model) and 64 in model.graph.initializer[0].dims

    made = reduce_model(long(), fails)
    assert ops(made) == ["MatMul"]
    assert np.all(onnx.numpy_helper.to_array(made.graph.initializer[0]) == 1)


def test_a_model_that_does_not_fail_cannot_be_reduced() -> None:
    with pytest.raises(UsageError, match="does not fail to begin with"):
        reduce_model(long(), lambda model: False)


def test_the_given_model_is_not_changed() -> None:
    given = long()
    before = given.SerializeToString(deterministic=True)
    reduce_model(given, lambda model: "Exp" in ops(model))
    assert given.SerializeToString(deterministic=True) == before


def runs(model: onnx.ModelProto) -> bool:
    try:
        shared_worker().run(model, make_inputs(model).feeds)
    except TieredError:
        return False
    return True


def test_dims_get_smaller_as_long_as_it_fails() -> None:
    def fails(model: onnx.ModelProto) -> bool:
        """Fail where a MatMul runs whose weight has at least three columns."""
        if "MatMul" not in ops(model):
            return False
        return model.graph.initializer[0].dims[1] >= 3 and runs(model)

    made = reduce_model(long(), fails)
    (tensor,) = made.graph.initializer
    shape = [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim]
    assert (list(tensor.dims), shape) == ([4, 4], [4, 4])


def test_numbers_of_shapes_follow_the_dims() -> None:
    text = """(float[2,12,64] x) => (float[2,768] y) <int64[2] s = {2,768}> {
        a = Reshape(x, s)  y = Relu(a) }"""

    def fails(model: onnx.ModelProto) -> bool:
        return ops(model) == ["Reshape", "Relu"] and runs(model)

    made = reduce_model(parse(text), fails)
    shape = [dim.dim_value for dim in made.graph.input[0].type.tensor_type.shape.dim]
    assert shape == [1, 1, 1]
    assert fails(made)
