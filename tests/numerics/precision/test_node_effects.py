"""Effects of nodes on the outputs, by gradients, and the order of a budget that they decide."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tiered import (
    DataType,
    Model,
    Node,
    PassContext,
    QuantizationSettings,
    get_pass,
    quantize_model,
)
from tiered.numerics.precision.budget import budget_of
from tiered.numerics.precision.node_effects import Order, effects_for, output_effects
from tiered.support.errors import RuntimeFailure, UsageError
from tiered.testing import parse

pytestmark = pytest.mark.usefixtures("exact_products")

TWO_ARMS = """
(float[N,8] x, float[N,8] z) => (float[N,8] y) <float small = {0.001}>
{ [faint] a = MatMul(x, v) b = Mul(a, small) [strong] c = MatMul(z, w) y = Add(b, c) }
"""


def _weight(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (8, 8)).astype(np.float32)


def _arms() -> onnx.ModelProto:
    """Return a model with a product of a large error and a small effect, and another one."""
    proto = parse(TWO_ARMS, opset=17)
    coarse = _weight(0)
    proto.graph.initializer.append(numpy_helper.from_array(coarse, "v"))
    proto.graph.initializer.append(numpy_helper.from_array(_weight(1), "w"))
    return proto


def _samples(count: int = 8) -> list[dict[str, np.ndarray]]:
    """Return samples: x has outliers, so that the scale of its data is coarse."""
    random = np.random.default_rng(2)
    found = []
    for _ in range(count):
        x, z = random.standard_normal((2, 16, 8)).astype(np.float32)
        x[0, 0] = 60
        found.append({"x": x, "z": z})
    return found


def _effects(text: str, feeds: list[dict[str, np.ndarray]]) -> dict[str, float]:
    model = Model.from_proto(parse(text, opset=17))
    model.refresh_types()
    before = model.to_proto()
    found = output_effects(model, model.main.topological_order(), feeds)
    assert model.to_proto() == before
    assert found == output_effects(model, model.main.topological_order(), feeds)
    return {node.output.name: effect for node, effect in found.items()}


def test_an_effect_is_proportional_to_what_the_outputs_do_with_a_value() -> None:
    found = _effects(
        "(float[2,3] x) => (float[2,3] y) <float k = {1000}> "
        "{ a = Relu(x) b = Relu(x) c = Mul(a, k) y = Add(c, b) }",
        [{"x": np.linspace(-1, 2, 6, dtype=np.float32).reshape(2, 3)}],
    )
    assert found["a"] == pytest.approx(1000 * found["b"], rel=1e-4)
    assert found["c"] == pytest.approx(found["a"], rel=1e-4)


def test_the_names_of_sums_of_gradients_do_not_collide() -> None:
    found = _effects(
        "(float[2] x) => (float[2] y) "
        "{ [n] n_output_0 = Relu(x) b = Tanh(n_output_0) c = Sin(n_output_0) y = Add(b, c) }",
        [{"x": np.ones(2, np.float32)}],
    )
    assert list(found) == ["n_output_0", "b", "c", "y"]
    assert all(effect > 0 for effect in found.values())


def test_masks_do_not_count() -> None:
    found = _effects(
        "(float[2,4] x) => (float[2,4] y) <float lowest = {-3.4e38}, bool[4] keep = {1,1,0,1}> "
        "{ s = Identity(x) m = Where(keep, s, lowest) y = Softmax(m) }",
        [{"x": np.ones((2, 4), np.float32)}],
    )
    assert all(np.isfinite(effect) and effect < 10 for effect in found.values())


def test_a_model_without_outputs_of_floats_has_no_effects() -> None:
    text = "(float[2] x) => (int64[1] y) { a = Relu(x) y = ArgMax(a) }"
    assert _effects(text, [{"x": np.ones(2, np.float32)}]) == {}


def test_an_operator_without_a_gradient_is_an_error() -> None:
    text = "(float[2] x) => (float[2] y) { a = Relu(x) y = com.zeta.Gate(a) }"
    with pytest.raises(UsageError, match=r"no order by sensitivity: .*Gate.*; use order=error"):
        _effects(text, [{"x": np.ones(2, np.float32)}])


@pytest.mark.parametrize(("order", "first"), [("error", "faint"), ("sensitivity", "strong")])
def test_a_budget_of_quantisation_returns_products_in_its_order(order: str, first: str) -> None:
    model = Model.from_proto(_arms())
    settings = QuantizationSettings(
        inputs=_samples(),
        budget=budget_of("sqnr>=55dB"),
        order=order,  # type: ignore[arg-type]  # a Literal
    )
    found = quantize_model(model, settings)
    assert found.returned[0][0].label == first
    assert len(found.returned) == (2 if order == "error" else 1)
    assert found.sqnr is not None
    assert found.sqnr > 55


def test_a_budget_of_mixed_precision_returns_nodes_in_its_order() -> None:
    text = """
    (float[64,4] x) => (float[64,4] y) <float k = {64}, float small = {0.00001}>
    { a = Add(x, k) b = Sub(a, k) f = Mul(b, small) c = Sin(x) d = Cos(c) y = Add(f, d) }
    """
    kept = {}
    for order in ("error", "sensitivity"):
        model = Model.from_proto(parse(text))
        options = {"budget": "relative<=1.5e-4", "max_error": 1.0, "order": order}
        get_pass("float_to_mixed").with_options(**options).apply(model, PassContext.isolated())
        nodes = [node for node in model.main.topological_order() if not node.is_op("Cast")]
        kept[order] = [node.op_type for node in nodes if node.output.dtype == DataType.FLOAT]
    # Sub has the largest error of its own, which the small factor takes away again.
    assert kept["sensitivity"] == ["Cos", "Add"]
    assert set(kept["sensitivity"]) < set(kept["error"])


RESIZED = """
(float[B,2,4,4] x, float[B,2,8,8] z) => (float[B,2,8,8] y)
<int64[1] zero = {0}, int64[1] two = {2}, int64 row = {2}, int64 column = {3}>
{ s = Shape(x) n = Slice(s, zero, two, zero) u = Shape(z) v = Shape(z) a = Gather(u, row)
  b = Gather(v, column) d = Unsqueeze(a, zero) e = Unsqueeze(b, zero) h = Concat<axis = 0>(d, e)
  i = Cast<to = 7>(h) c = Concat<axis = 0>(n, i) [up] r = Resize<mode = "linear">(x, , , c)
  y = Mul(r, z) }
"""


def test_effects_past_a_resize_by_computed_sizes() -> None:
    model = Model.from_proto(parse(RESIZED, opset=13))
    model.refresh_types()
    random = np.random.default_rng(0)
    feeds = {
        "x": random.uniform(-1, 1, (3, 2, 4, 4)).astype(np.float32),
        "z": random.uniform(-1, 1, (3, 2, 8, 8)).astype(np.float32),
    }
    (node,) = model.main.nodes_of("Resize")
    assert output_effects(model, [node], [feeds])[node] > 0


@pytest.mark.parametrize("order", ["auto", "sensitivity"])
def test_gradients_that_onnxruntime_does_not_run(
    monkeypatch: pytest.MonkeyPatch, order: Order
) -> None:
    """The error alone decides then, unless the order is by sensitivity."""

    def fail(*given: object) -> dict[Node, float]:
        raise RuntimeFailure("no kernel")

    monkeypatch.setattr("tiered.numerics.precision.node_effects.output_effects", fail)
    model = Model.from_proto(_arms())
    if order == "auto":
        assert effects_for(order, model, [], []) is None
    else:
        with pytest.raises(RuntimeFailure, match="no kernel"):
            effects_for(order, model, [], [])
