"""The judge of whole models: in double, where differences are fine enough."""

import numpy as np
import onnx

from tests.conformance.gradients import DOUBLE_LIMIT, FLOAT_LIMIT, errors_of_weights
from tests.extensions.gradients.differences import Reference, in_double, random_feeds
from tiered import Model, add_gradients
from tiered.testing import parse

NET = """(float[2,3,6,6] x) => (float[2,4] y) <
    float[4,3,3,3] w = {WEIGHTS}, float[4,4] v = {1,2,3,4,-1,2,-3,1,0.5,1,2,-2,1,0,1,0}> {
        c = Conv(x, w)  r = Relu(c)  k = Cast<to = 1>(r)  g = GlobalAveragePool(k)
        f = Flatten(g)  h = MatMul(f, v)  e = Erf(h)  y = Add(e, h) }""".replace(
    "WEIGHTS", ",".join(f"{number:.3f}" for number in np.sin(np.arange(108)))
)


def judged(error: float) -> tuple[float, float]:
    """Return the errors of the gradients of a small network, made wrong by a factor."""
    proto = parse(NET)
    model = Model.from_proto(proto)
    weights = [model.main.values[name] for name in ("w", "v")]
    add_gradients(model, [model.main.outputs[0]], weights, seed="input")
    made = model.to_proto()
    last = next(node for node in made.graph.node if node.output[0] == "grad/w")
    last.op_type = "Mul"
    last.input.append("factor")
    made.graph.initializer.append(
        onnx.numpy_helper.from_array(np.array(1 + error, np.float32), "factor")
    )
    feeds = random_feeds(proto)
    return errors_of_weights(proto, made, feeds, ["w", "v"], "y")


def test_right_gradients_are_right_to_many_digits() -> None:
    errors = judged(0.0)
    assert errors[0] < DOUBLE_LIMIT
    assert errors[1] < 1e-5 < FLOAT_LIMIT


def test_a_gradient_that_is_off_by_a_thousandth_is_wrong() -> None:
    assert judged(1e-3)[0] > 100 * DOUBLE_LIMIT


def test_a_model_in_double_computes_in_double() -> None:
    proto = parse(NET)
    wide = in_double(proto)
    infos = [*wide.graph.input, *wide.graph.output]
    assert {info.type.tensor_type.elem_type for info in infos} == {onnx.TensorProto.DOUBLE}
    assert {tensor.data_type for tensor in wide.graph.initializer} == {onnx.TensorProto.DOUBLE}
    x = random_feeds(proto)["x"].astype(np.float64)
    low, high = (Reference(wide)({"x": x + step})["y"] for step in (-1e-9, 1e-9))
    # In float a step of 1e-9 would be lost.
    assert 1e-12 < np.abs(high - low).max() < 1e-6
