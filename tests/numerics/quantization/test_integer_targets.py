"""Targets without floats: every operator that they take in integers is quantised."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tiered import (
    Model,
    PassContext,
    QuantizationSettings,
    get_backend,
    get_pass,
    pipeline_for,
    quantize_model,
)
from tiered.numerics.quantization.quantization_report import report_of
from tiered.runtime import run
from tiered.testing import parse

NPU = get_backend("int8_npu")


def quantized(text: str, backend: str = "int8_npu", **weights: np.ndarray) -> tuple[Model, Model]:
    """Return a model, and the same quantised for a target; a second run changes nothing."""
    proto = parse(text, opset=18)
    proto.graph.initializer.extend(
        numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights.items()
    )
    model, pass_ = Model.from_proto(proto), get_pass("quantize").with_options(samples=2)
    pass_.apply(model, PassContext.isolated(backend=backend))
    found = model.to_proto()
    pass_.apply(model, PassContext.isolated(backend=backend))
    assert model.to_proto() == found
    model.check_view(types=True)
    onnx.checker.check_model(found, full_check=True)
    return Model.from_proto(proto), model


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def refused(model: Model) -> list[str]:
    return [str(gap) for gap in NPU.coverage(model).gaps]


def decibels(before: Model, after: Model, feeds: dict[str, np.ndarray]) -> float:
    exact, found = (run(each.to_proto(), feeds)["y"] for each in (before, after))
    return float(20 * np.log10(np.linalg.norm(exact) / np.linalg.norm(exact - found)))


@pytest.mark.parametrize(
    "nodes",
    [
        "y = Add(x, x)",
        "y = Sub(x, w)",
        "a = Mul(x, w) y = Tanh(a)",
        "a = Transpose(x) b = Sigmoid(a) y = Transpose(b)",
        "a = Softmax(x) y = MatMul(a, w)",
        "a = MatMul(x, x) y = Softmax(a)",
        "a = Max(x, w) y = Exp(a)",
        "a = ReduceMean<keepdims = 1>(x, axes) y = Sub(x, a)",
        "a = Concat<axis = 0>(x, w) b, c = Split<num_outputs = 2>(a) y = Add(b, c)",
        "a = Gather(x, axes) y = Add(w, a)",
    ],
)
def test_every_operator_of_the_table_is_quantised(nodes: str) -> None:
    text = f"(float[8,8] x) => (float[8,8] y) <int64[1] axes = {{1}}> {{ {nodes} }}"
    before, model = quantized(text, w=random(8, 8))
    assert [value.name for value in model.main.outputs] == ["y"]
    assert refused(model) == []
    assert decibels(before, model, {"x": random(8, 8, seed=1)}) > 15


def test_a_relu_stays_a_part_of_its_producer() -> None:
    _, model = quantized("(float[8,8] x) => (float[8,8] y) { a = Add(x, x) y = Relu(a) }")
    (added,) = model.main.nodes_of("Add")
    assert [node.op_type for node in added.output.readers] == ["Relu"]
    with PassContext(opt_level=2, backend=NPU):
        pipeline_for(NPU)(model)
    assert refused(model) == []


def test_an_input_that_is_an_output_is_as_it_was() -> None:
    text = "(float[4,8] x) => (float[4,8] x, float[4,8] y) { y = MatMul(x, w) }"
    before, model = quantized(text, w=random(8, 8))
    feeds = {"x": random(4, 8, seed=1)}
    assert [value.name for value in model.main.outputs] == ["x", "y"]
    np.testing.assert_array_equal(run(model.to_proto(), feeds)["x"], feeds["x"])
    assert refused(model) == []
    assert decibels(before, model, feeds) > 15


def test_movement_has_one_scale() -> None:
    _, model = quantized(
        "(float[2,4] x) => (float[4,4] y) { a = Exp(x) b = Concat<axis = 0>(a, x) y = Identity(b) }"
    )
    (concat,) = model.main.nodes_of("Concat")
    found = [value.producer for value in concat.inputs if value is not None]
    scales = [each.inputs[1].const for each in found if each is not None and each.inputs[1]]
    assert len(scales) == 2
    assert scales[0] == scales[1]


@pytest.mark.parametrize(
    "nodes",
    [
        "y = LayerNormalization(x, g)",
        "a = Erf(x) y = Mul(a, x)",
        "y = Mish(x)",
        "y = HardSigmoid(x)",
        "y = Sum(x, g)",
    ],
)
def test_operators_that_the_target_lacks_are_legalized_first(nodes: str) -> None:
    text = f"(float[6,8] x) => (float[6,8] y) {{ {nodes} }}"
    before, model = quantized(text, g=np.abs(random(8)) + 1)
    left = [text for text in refused(model) if not text.startswith("Clip")]
    assert left == [], "a Clip is a part of its producer"
    assert decibels(before, model, {"x": random(6, 8, seed=1)}) > 15


def test_an_operator_without_a_legalization_is_named() -> None:
    _, model = quantized("(float[4] x) => (float[4] y) { a = Abs(x) y = Cos(a) }")
    assert refused(model) == ["Cos: the target has no such operator"]


def test_masked_scores_stay_float() -> None:
    mask = np.where(np.tri(4), 0, -1e9)
    nodes = "a = Add(x, m) b = Softmax(a) y = MatMul(b, x)"
    before, model = quantized(f"(float[4,4] x) => (float[4,4] y) {{ {nodes} }}", m=mask)
    assert sorted(text.split(":")[0] for text in refused(model)) == ["Add", "Softmax"]
    assert decibels(before, model, {"x": random(4, 4, seed=1)}) > 15


def test_scores_that_are_masked_by_an_input_stay_float() -> None:
    text = """(float[4,4] x, float[4,4] m) => (float[4,4] y)
        { a = Add(x, m) b = Softmax(a) y = MatMul(b, x) }"""
    model = Model.from_proto(parse(text, opset=18))
    mask = np.where(np.tri(4), 0, -1e4).astype(np.float32)
    samples = [{"x": random(4, 4, seed=seed), "m": mask} for seed in range(4)]
    found = quantize_model(model, QuantizationSettings(inputs=samples), backend=NPU)
    assert "m" not in found.parameters
    assert max(each.scale for each in found.parameters.values()) < 0.1
    assert sorted(text.split(":")[0] for text in refused(model)) == ["Add", "Softmax"]


def test_a_target_with_floats_quantises_products_only() -> None:
    _, model = quantized("(float[8,8] x) => (float[8,8] y) { y = Tanh(x) }", backend="qnn_htp")
    assert [node.op_type for node in model.main.nodes] == ["Tanh"]


def test_floats_that_become_indices_stay() -> None:
    _, model = quantized(
        """(float[4,2] x, float[1] i) => (float[1,2] y) <float zero = {0}>
        { c = Mul(i, zero) e = Cast<to = 7>(c) y = Gather(x, e) }"""
    )
    (product,) = model.main.nodes_of("Mul")
    assert [node.op_type for node in product.output.readers] == ["Cast"]


def test_a_user_keeps_an_operator_in_float() -> None:
    model = Model.from_proto(parse("(float[4] x) => (float[4] y) { a = Abs(x) y = Tanh(a) }"))
    pass_ = get_pass("quantize").with_options(samples=2, skip_op_types=("Tanh",))
    pass_.apply(model, PassContext.isolated(backend="int8_npu"))
    assert [text.split(":")[0] for text in refused(model)] == ["Tanh"]


def test_the_report_names_products_by_their_results_before() -> None:
    proto = parse("(float[8,8] x) => (float[8,8] y) { a = MatMul(x, x) y = MatMul(a, x) }")
    settings = QuantizationSettings(samples=2, measures=True)
    found = quantize_model(Model.from_proto(proto), settings, backend=NPU)
    rows = report_of(found, found.shapes).rows
    assert [(row.output, row.macs, row.dtype) for row in rows] == [
        ("a", 512, "int8 x int8"),
        ("y", 512, "int8 x int8"),
    ]


def test_operators_without_products_are_measured_too() -> None:
    proto = parse("(float[8] x) => (float[8] y) { y = Tanh(x) }")
    model = Model.from_proto(proto)
    found = quantize_model(model, QuantizationSettings(samples=2, measures=True), backend=NPU)
    assert found.sqnr is not None
    assert found.sqnr > 20
    assert refused(model) == []
