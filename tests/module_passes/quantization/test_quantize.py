"""quantize: what gets Q/DQ, with which scales, and what stays float."""

from typing import NamedTuple

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tiered import DataType, Model, PassContext, Value, get_pass
from tiered.runtime import run
from tiered.support.errors import UsageError
from tiered.testing import parse

pytestmark = pytest.mark.usefixtures("exact_products")

CONVS = """
(float[1,4,6,6] x) => (float[1,8,4,4] y)
{ a = Conv(x, w, b) r = Relu(a) y = Conv<pads = [0,0,0,0]>(r, v) }
"""


def model_of(text: str, opset: int = 17, **weights: np.ndarray) -> onnx.ModelProto:
    """Return a model with weights by name."""
    proto = parse(text, opset=opset)
    proto.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in weights.items()
    )
    return proto


def random(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def convs() -> onnx.ModelProto:
    return model_of(
        CONVS,
        w=random(8, 4, 3, 3) * (2.0 ** np.arange(-4, 4, dtype=np.float32)).reshape(8, 1, 1, 1),
        b=random(8, seed=1),
        v=random(8, 8, 1, 1, seed=2),
    )


def quantized(
    proto: onnx.ModelProto, *, backend: str | None = None, **options: object
) -> tuple[Model, list[str]]:
    """Return the quantised model, valid and at rest, and the findings."""
    model = Model.from_proto(proto)
    ctx = PassContext.isolated(backend=backend)
    pass_ = get_pass("quantize").with_options(samples=2, **options)
    pass_.apply(model, ctx)
    model.check_view(types=True)
    made = model.to_proto()
    onnx.checker.check_model(made, full_check=True)
    again = Model.from_proto(made)
    pass_.apply(again, PassContext.isolated(backend=backend))
    assert again.to_proto() == made
    for scale in scales(model):
        assert np.isfinite(scale).all()
        assert (scale > 0).all()
    return model, [str(remark).removeprefix("quantize: ") for remark in ctx.remarks]


def scales(model: Model) -> list[np.ndarray]:
    nodes = [
        node
        for graph in model.graphs()
        for node in graph.topological_order()
        if node.op_type in ("QuantizeLinear", "DequantizeLinear")
    ]
    values = [node.inputs[1] for node in nodes]
    return [value.const for value in values if value is not None and value.const is not None]


class Unit(NamedTuple):
    """What a DequantizeLinear reads."""

    dtype: int | None
    scale: np.ndarray


def _unit(value: Value | None) -> Unit:
    assert value is not None
    assert value.producer is not None
    q, scale = value.producer.inputs[:2]
    assert q is not None
    assert scale is not None
    assert scale.const is not None
    return Unit(q.dtype, scale.const)


def ratio(before: onnx.ModelProto, after: Model, feeds: dict[str, np.ndarray]) -> float:
    """Return the signal to noise ratio of the output y in dB."""
    exact, found = (run(each, feeds)["y"] for each in (before, after.to_proto()))
    return float(20 * np.log10(np.linalg.norm(exact) / np.linalg.norm(exact - found)))


def test_a_convolution_is_quantised_with_its_activation_and_bias() -> None:
    model, _ = quantized(convs())
    order = [node.op_type for node in model.main.topological_order()]
    assert order.count("QuantizeLinear") == 2
    first = model.main.nodes_of("Conv")[0]
    assert [value is not None and value.producer is not None for value in first.inputs] == [
        True
    ] * 3
    x, w, b = (_unit(value) for value in first.inputs)
    assert b.dtype == DataType.INT32
    np.testing.assert_array_equal(b.scale, x.scale * w.scale)
    assert w.scale.shape == (8,)
    (relu,) = model.main.nodes_of("Relu")
    assert [node.op_type for node in relu.output.readers] == ["QuantizeLinear"]
    assert first.output.readers == [relu]


def test_the_outputs_are_close() -> None:
    proto = convs()
    model, _ = quantized(proto)
    assert ratio(proto, model, {"x": random(1, 4, 6, 6, seed=9)}) > 35


@pytest.mark.parametrize("method", ["minmax", "percentile", "mse", "entropy"])
def test_every_method_works(method: str) -> None:
    proto = convs()
    model, _ = quantized(proto, method=method)
    assert ratio(proto, model, {"x": random(1, 4, 6, 6, seed=9)}) > 15


@pytest.mark.parametrize(
    ("text", "shape", "axis"),
    [
        ("(float[N,8] x) => (float[N,4] y) { y = MatMul(x, w) }", (8, 4), 1),
        ("(float[N,8] x) => (float[N,4] y) { y = Gemm(x, w) }", (8, 4), 1),
        ("(float[N,8] x) => (float[N,4] y) { y = Gemm<transB = 1>(x, w) }", (4, 8), 0),
        ("(float[1,8,5,5] x) => (float[1,4,3,3] y) { y = Conv(x, w) }", (4, 8, 3, 3), 0),
        ("(float[1,8,5,5] x) => (float[1,4,7,7] y) { y = ConvTranspose(x, w) }", (8, 4, 3, 3), 1),
        (
            "(float[1,8,5,5] x) => (float[1,8,7,7] y) { y = ConvTranspose<group = 2>(x, w) }",
            (8, 4, 3, 3),
            None,
        ),
        ("(float[8,4] x) => (float[4,4] y) { y = MatMul(w, x) }", (4, 8), None),
        ("(float[2,N,8] x) => (float[2,N,4] y) { y = MatMul(x, w) }", (2, 8, 4), None),
        ("(float[N,8] x) => (float[N] y) { y = MatMul(x, w) }", (8,), None),
    ],
)
@pytest.mark.parametrize("opset", [12, 13, 21])
def test_the_axis_of_a_weight(
    text: str, shape: tuple[int, ...], axis: int | None, opset: int
) -> None:
    proto = model_of(text, opset, w=random(*shape))
    model, _ = quantized(proto)
    (unit,) = [
        node for node in model.main.nodes_of("DequantizeLinear") if node.const(0) is not None
    ]
    scale = unit.inputs[1]
    assert scale is not None
    if axis is None or opset < 13:
        assert scale.shape == ()
    else:
        assert scale.shape == (shape[axis],)
        assert unit.attr("axis") == axis
    assert unit.input(2) is not None, "an absent zero point means uint8"


def test_values_that_only_move_share_a_scale() -> None:
    text = """
    (float[1,4,6,6] x) => (float[1,8,3,3] y)
    { a = Conv(x, w) c = Conv(x, v) d = Concat<axis = 1>(a, c) p = MaxPool<kernel_shape = [2,2], strides = [2,2]>(d)
      y = Conv(p, u) }
    """
    proto = model_of(
        text, w=random(4, 4, 1, 1), v=random(4, 4, 1, 1, seed=1, scale=9), u=random(8, 8, 1, 1)
    )
    model, _ = quantized(proto)
    found = {}
    for node in model.main.nodes_of("QuantizeLinear"):
        source, scale = node.inputs[0], node.inputs[1]
        assert source is not None
        assert scale is not None
        found[source.name] = float(scale.const)  # type: ignore[arg-type]  # one number
    assert found["a"] == found["c"] == found["d"] == found["p"] != found["x"]
    assert [node.op_type for node in model.main.nodes_of("Concat")[0].predecessors] == [
        "DequantizeLinear"
    ] * 2


def test_a_sum_of_quantised_values_is_quantised() -> None:
    text = """
    (float[1,4,6,6] x) => (float[1,4,6,6] y)
    { a = Conv(x, w) r = Relu(a) b = Conv(r, w) s = Add(r, b) q = Relu(s) c = Conv(q, w) y = Abs(c) }
    """
    model, _ = quantized(model_of(text, w=random(4, 4, 1, 1)))
    (add,) = model.main.nodes_of("Add")
    assert [node.op_type for node in add.predecessors] == ["DequantizeLinear"] * 2
    shared = {node.inputs[1] for node in model.main.nodes_of("Conv")}
    assert len(shared) == 1, "a shared weight is quantised once"


def test_softmax_and_its_products() -> None:
    text = """
    (float[2,4,8] q, float[2,8,4] k, bool[4,4] keep) => (float[2,4,8] y) <float lowest = {-3.4e38}>
    { s = MatMul(q, k) m = Where(keep, s, lowest) p = Softmax(m) y = MatMul(p, q) }
    """
    proto = parse(text)
    model, found = quantized(proto)
    (softmax,) = model.main.nodes_of("Softmax")
    assert [node.op_type for node in softmax.predecessors] == ["Where"]
    assert "2 of 2 products are quantised" in found
    assert max(float(np.max(scale)) for scale in scales(model)) < 1


def test_zeros_have_a_scale_of_one() -> None:
    proto = model_of(
        "(float[N,4] x) => (float[N,2] y) { z = Sub(x, x) y = MatMul(z, w) }",
        w=np.zeros((4, 2), np.float32),
    )
    model, _ = quantized(proto)
    (scale,) = {float(scale.max()) for scale in scales(model)[:1]}
    assert scale == 1.0


def test_a_channel_of_zeros_takes_the_scale_of_the_tensor() -> None:
    weight = random(4, 2)
    weight[:, 1] = 0
    model, _ = quantized(
        model_of("(float[N,4] x) => (float[N,2] y) { y = MatMul(x, w) }", w=weight)
    )
    (scale,) = [scale for scale in scales(model) if scale.shape == (2,)]
    assert 0.5 < scale[1] / (np.abs(weight).max() / 127) < 1.1


def test_a_large_bias_raises_the_scale_of_its_channel() -> None:
    weight = random(2, 4, 1, 1)
    weight[1] *= np.float32(1e-9)
    proto = model_of(
        "(float[1,4,3,3] x) => (float[1,2,3,3] y) { y = Conv(x, w, b) }",
        w=weight,
        b=np.array([1, 1000], np.float32),
    )
    model, _ = quantized(proto)
    y = run(model.to_proto(), {"x": random(1, 4, 3, 3)})["y"]
    np.testing.assert_allclose(y[0, 1], 1000, rtol=1e-3)


BODIES = """
(bool c, float[2,4] x) => (float[2,4] y)
{ y = If(c) <then_branch = g () => (float[2,4] a) { a = MatMul(x, w) },
             else_branch = h () => (float[2,4] b) { n = Exp(x) b = MatMul(n, w) }> }
"""


def test_bodies_read_quantised_values_of_the_graph_around() -> None:
    proto = model_of(BODIES, w=random(4, 4))
    model, found = quantized(proto)
    assert "1 of 2 products are quantised" in found
    assert any("a value inside a body is not measured" in each for each in found)
    feeds = {"c": np.array(True), "x": random(2, 4)}
    assert ratio(proto, model, feeds) > 30


@pytest.mark.parametrize(
    ("text", "weights", "reason"),
    [
        ("(double[N,2] x) => (double[N,2] y) <double[2,2] w = {1,2,3,4}> { y = MatMul(x, w) }", {}, "operands are of double, not of float"),
        ("(float[N,2] x) => (float[N,2] y) { y = MatMul(x, w) }", {"w": np.array([[1, np.inf], [1, 1]], np.float32)}, "the weight has NaN or Inf"),
        ("(float[N,0] x) => (float[N,2] y) { y = MatMul(x, w) }", {"w": np.zeros((0, 2), np.float32)}, "the weight is empty"),
        ("(float[2,2] x, float[4] v) => (float[1] y) { s = MatMul(x, x) i = Cast<to = 7>(s) j = Clip(i, lo, hi) k = Reshape(j, f) g = Gather(v, k) y = Slice(g, z, f1) }", {"lo": np.array(0), "hi": np.array(3), "f": np.array([-1]), "z": np.array([0]), "f1": np.array([1])}, "index or shape: it decides where elements are"),
        ("(float[2,2] x) => (float[2,2] y) { n = Log(z) e = Add(x, n) y = MatMul(e, x) }", {"z": np.array(np.nan, np.float32)}, "no finite number was seen"),
    ],
)  # fmt: skip
def test_a_product_that_stays_float_has_its_reason(
    text: str, weights: dict[str, np.ndarray], reason: str
) -> None:
    model, found = quantized(model_of(text, 17, **weights))
    assert any(reason in each for each in found), found
    assert not model.main.nodes_of("QuantizeLinear")


def test_an_operand_with_masks_stays_float() -> None:
    text = """
    (float[2,4] x, bool[4] keep) => (float[2,4] y) <float lowest = {-3.4e38}>
    { m = Where(keep, x, lowest) p = Softmax(m) z = MatMul(m, w) y = Add(p, z) }
    """
    _, found = quantized(model_of(text, w=random(4, 4)))
    assert any("an operand has masks" in each for each in found)


def test_the_user_keeps_operators_and_nodes() -> None:
    proto = convs()
    proto.graph.node[2].name = "last"
    model, found = quantized(proto, skip_op_types=["Conv"])
    assert any("Conv is skipped" in each for each in found)
    assert not model.main.nodes_of("QuantizeLinear")
    _, found = quantized(proto, skip_nodes=["la*"])
    assert any("the node is skipped" in each for each in found)


def test_an_old_opset_has_no_quantize_linear() -> None:
    proto = model_of("(float[2,2] x) => (float[2,2] y) { y = MatMul(x, w) }", 9, w=random(2, 2))
    _, found = quantized(proto)
    assert any("uint8 needs opset 10, the model has 9" in each for each in found)


def test_a_quantised_model_stays_as_it_is() -> None:
    model, _ = quantized(convs())
    _, found = quantized(model.to_proto())
    assert any("the model is quantised already" in each for each in found)


@pytest.mark.parametrize(
    ("backend", "activations", "weights", "zero"),
    [
        ("onnxruntime_cpu", DataType.UINT8, DataType.INT8, None),
        ("qnn_htp", DataType.UINT8, DataType.INT8, None),
        ("tensorrt", DataType.INT8, DataType.INT8, 0),
        ("nhwc_edge", DataType.INT8, DataType.INT8, None),
        ("int8_npu", DataType.INT8, DataType.INT8, None),
    ],
)
def test_the_table_of_a_backend_decides(
    backend: str, activations: DataType, weights: DataType, zero: int | None
) -> None:
    model, _ = quantized(convs(), backend=backend)
    for node in model.main.nodes_of("QuantizeLinear"):
        assert node.output.dtype == activations
        point = node.inputs[2]
        assert point is not None
        if zero is not None:
            assert point.number == zero
    kernel = model.main.nodes_of("Conv")[0].inputs[1]
    assert kernel is not None
    assert kernel.producer is not None
    codes = kernel.producer.inputs[0]
    assert codes is not None
    assert codes.dtype == weights
    assert codes.const is not None
    assert np.abs(codes.const.astype(int)).max() == (63 if backend == "onnxruntime_cpu" else 127)


def test_weights_of_seven_bits_are_an_option() -> None:
    model, _ = quantized(convs(), backend="onnxruntime_cpu", reduce_range=False)
    assert any(np.abs(v.const.astype(int)).max() == 127 for v in model.main.initializers if v.dtype == DataType.INT8 and v.const is not None)  # fmt: skip


def test_an_operator_that_the_target_lacks_stays_float() -> None:
    text = "(float[1,8,5,5] x) => (float[1,4,7,7] y) { y = ConvTranspose(x, w) }"
    proto = model_of(text, w=random(8, 4, 3, 3))
    _, found = quantized(proto, backend="onnxruntime_cpu")
    assert any("the target has no integer ConvTranspose" in each for each in found)


def test_unsigned_weights() -> None:
    text = "(float[2,4] x) => (float[2,4] y) { y = MatMul(x, w) }"
    proto = model_of(text, w=random(4, 4))
    model, _ = quantized(proto, backend="qnn_htp")
    assert ratio(proto, model, {"x": random(2, 4, seed=4)}) > 18
    assert {node.inputs[0].dtype for node in model.main.nodes_of("DequantizeLinear")} == {DataType.UINT8}  # type: ignore[union-attr]  # fmt: skip  # it has one


def test_a_budget_returns_the_worst_products_to_float() -> None:
    text = """
    (float[4,16] x) => (float[4,16] y)
    { a = MatMul(x, w) b = Mul(x, big) c = MatMul(b, w) d = Add(b, c) y = Add(a, d) }
    """
    spread = (10.0 ** np.linspace(-3, 3, 16)).astype(np.float32)
    proto = model_of(text, w=random(16, 16), big=spread)
    loose, found = quantized(proto, budget="sqnr>=1dB")
    assert not any("returned" in each for each in found)
    assert len(loose.main.nodes_of("QuantizeLinear")) == 2
    strict, found = quantized(proto, budget="sqnr>=60 dB")
    assert any("returned to float" in each for each in found)
    assert any("the budget sqnr>=60" in each for each in found)
    assert len(strict.main.nodes_of("QuantizeLinear")) < 2
    assert ratio(proto, strict, {"x": random(4, 16, seed=3)}) > 55


def test_a_budget_that_is_none_is_an_error() -> None:
    with pytest.raises(UsageError, match="no budget"):
        get_pass("quantize").with_options(budget="20").apply(Model.from_proto(convs()))


def test_samples_are_read(tmp_path: object) -> None:
    folder = str(tmp_path)
    for number in range(2):
        np.savez(f"{folder}/{number}.npz", x=np.full((1, 4, 6, 6), 3 * (number + 1), np.float32))
    model, found = quantized(convs(), inputs=[folder], method="minmax")
    assert not any("generated inputs" in each for each in found)
    (scale,) = {
        node.inputs[1].const.item()  # type: ignore[union-attr]  # it has one
        for node in model.main.nodes_of("QuantizeLinear")
        if node.inputs[0] is model.main.inputs[0]
    }
    assert scale == pytest.approx(6 / 255)
    _, found = quantized(convs())
    assert any("ranges are those of generated inputs" in each for each in found)


# --- scales that the target prescribes ------------------------------------------------------------

ATTENTION = """
(float[2,4,8] x, float[2,8,4] v) => (float[2,4,4] y)
{ p = OP(x) y = MatMul(p, v) }
"""


@pytest.mark.parametrize(
    ("op_type", "scale", "zero"),
    [("Softmax", 1 / 256, -128), ("Sigmoid", 1 / 256, -128), ("Tanh", 1 / 128, 0), ("LogSoftmax", 1 / 16, 127)],
)  # fmt: skip
def test_a_result_has_the_scale_that_its_target_prescribes(
    op_type: str, scale: float, zero: int
) -> None:
    proto = model_of(ATTENTION.replace("OP", op_type))
    model, _ = quantized(proto, backend="int8_npu")
    data = model.main.nodes_of("MatMul")[0].inputs[0]
    assert data is not None
    assert data.producer is not None
    found, middle = data.producer.inputs[1:]
    assert found is not None
    assert middle is not None
    assert found.const == np.float32(scale)
    assert middle.const == zero
    free, _ = quantized(proto)
    assert all(np.float32(scale) != each for each in scales(free))


@pytest.mark.parametrize(
    ("attributes", "is_float"),
    [
        ("pads=[1,1,1,1], ceil_mode=1, count_include_pad=1", True),
        ("ceil_mode=1, count_include_pad=1", True),
        ("dilations=[2,2]", True),
        ("pads=[1,1,1,1], ceil_mode=1", False),
        ("pads=[1,1,1,1], count_include_pad=1", False),
    ],
)
def test_an_average_that_kernels_of_integers_compute_otherwise(
    attributes: str, is_float: bool
) -> None:
    proto = model_of(
        "(float[1,3,8,8] x) => (float[1,3,N,M] y) { a = Conv(x, w) "
        f"p = AveragePool<kernel_shape=[2,2], strides=[2,2], {attributes}>(a) y = Conv(p, w) }}",
        opset=19,
        w=random(3, 3, 1, 1),
    )
    model, _ = quantized(proto)
    (pool,) = [node for node in model.main.nodes if node.op_type == "AveragePool"]
    read, (reader,) = pool.inputs[0], pool.output.readers
    assert read is not None
    assert read.producer is not None
    assert (read.producer.op_type, reader.op_type) == (
        "Conv" if is_float else "DequantizeLinear", "QuantizeLinear"
    )  # fmt: skip
