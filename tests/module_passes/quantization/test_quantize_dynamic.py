"""quantize_dynamic: one DynamicQuantizeLinear for each activation; what stays float, and why."""

from itertools import product

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.saturation import products_that
from tiered import Model, PassContext, get_pass
from tiered.numerics.precision.few_bits.returning import OutputBudget
from tiered.numerics.quantization.deployed import SATURATION
from tiered.numerics.quantization.dynamic import quantize_dynamically
from tiered.runtime import run_reference
from tiered.runtime.byte_products import ByteProducts
from tiered.testing import parse


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def model_of(text: str, opset: int = 17, **weights: np.ndarray) -> onnx.ModelProto:
    proto = parse(text, opset=opset)
    proto.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in weights.items()
    )
    return proto


def quantized(proto: onnx.ModelProto, **options: object) -> tuple[Model, list[str]]:
    """Return the quantised model, valid and at rest, and the findings."""
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    pass_ = get_pass("quantize_dynamic").with_options(**options)
    pass_.apply(model, ctx)
    model.check_view(types=True)
    made = model.to_proto()
    onnx.checker.check_model(made, full_check=True)
    again = Model.from_proto(made)
    pass_.apply(again, PassContext.isolated())
    assert again.to_proto() == made
    return model, [str(remark).removeprefix("quantize_dynamic: ") for remark in ctx.remarks]


def ratio(before: onnx.ModelProto, after: Model, feeds: dict[str, np.ndarray]) -> float:
    """Return the signal to noise ratio of the output y in dB, with exact sums of integers."""
    exact, found = (run_reference(each, feeds)["y"] for each in (before, after.to_proto()))
    return float(20 * np.log10(np.linalg.norm(exact) / np.linalg.norm(exact - found)))


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("(float[N,16] x) => (float[N,8] y) { y = MatMul(x, w) }", (16, 8)),
        ("(float[3,N,16] x) => (float[3,N,8] y) { y = MatMul(x, w) }", (16, 8)),
        ("(float[N,16] x, float[8] b) => (float[N,8] y) { y = Gemm(x, w, b) }", (16, 8)),
        (
            "(float[N,16] x, float[N,1] b) => (float[N,8] y) "
            "{ y = Gemm<transB = 1, alpha = 0.5, beta = 2.0>(x, w, b) }",
            (8, 16),
        ),
        ("(float[N,16] x, float b) => (float[N,8] y) { y = Gemm<beta = 0.0>(x, w, b) }", (16, 8)),
    ],
)
@pytest.mark.parametrize("opset", [11, 17, 21])
def test_products_with_constant_matrices(text: str, shape: tuple[int, ...], opset: int) -> None:
    proto = model_of(text, opset, w=random(*shape))
    model, _ = quantized(proto)
    assert len(model.main.nodes_of("MatMulInteger")) == 1
    feeds = {"x": random(4, 16, seed=1), "b": random(8, seed=2)}
    shapes = {value.name: value.rank for value in model.main.inputs}
    if shapes["x"] == 3:
        feeds["x"] = random(3, 4, 16, seed=1)
    if shapes.get("b") == 2:
        feeds["b"] = random(4, 1)
    if shapes.get("b") == 0:
        feeds["b"] = random(1)[0]
    assert ratio(proto, model, {name: feeds[name] for name in shapes}) > 35


@pytest.mark.parametrize(
    ("answer", "options", "warns"),
    [
        ("exact", {}, False),
        ("unknown", {}, False),
        ("saturate", {}, False),
        ("saturate", {"processor": "vnni"}, True),
        ("saturate", {"processor": "any"}, False),
        ("saturate", {"reduce_range": False}, True),
        ("saturate", {"reduce_range": True}, False),
        ("saturate", {"processor": "vnni", "skip_op_types": ["MatMul"]}, False),
    ],
)
def test_products_that_saturate_here_are_a_finding(
    answer: ByteProducts, options: dict[str, object], warns: bool
) -> None:
    proto = model_of("(float[N,16] x) => (float[N,8] y) { y = MatMul(x, w) }", w=random(16, 8))
    with products_that(answer):
        _, found = quantized(proto, **options)
    assert (SATURATION in found) == warns


def test_integer_convolutions_never_saturate() -> None:
    with products_that("saturate"):
        _, found = quantized(model_of(CONV, w=random(8, 4, 3, 3), b=random(8)), convolutions=True)
    assert "1 of 1 products are integer; 1 activation" in found
    assert SATURATION not in found


def test_a_budget_is_that_of_the_products_of_this_processor() -> None:
    # Neighbours along K are all large, so that each of their pairs saturates.
    weight = np.where(np.arange(8) % 2, np.ones((16, 8), np.float32), np.float32(-1))
    proto = model_of("(float[N,16] x) => (float[N,8] y) { y = MatMul(x, w) }", w=weight)
    samples = ({"x": np.linspace(1, 2, 64, dtype=np.float32).reshape(4, 16)},)
    counts = {}
    answers: tuple[ByteProducts, ...] = ("exact", "saturate")
    for answer, bits in product(answers, (8, 7)):
        with products_that(answer):
            model = Model.from_proto(proto)
            found: list[str] = []
            budget = OutputBudget(limit="sqnr>=30dB", inputs=samples)
            quantize_dynamically(
                model, found.append, lambda *skip: None, reduce_range=bits == 7, budget=budget
            )
        counts[answer, bits] = len(model.main.nodes_of("MatMulInteger"))
    assert counts == {("exact", 8): 1, ("exact", 7): 1, ("saturate", 8): 0, ("saturate", 7): 1}


@pytest.mark.parametrize(
    ("data", "weight", "result"),
    [
        ("4,5,16", (4, 16, 8), "4,5,8"),
        ("5,16", (4, 16, 8), "4,5,8"),
        ("2,1,5,16", (3, 16, 8), "2,3,5,8"),
    ],
)
def test_weights_of_several_matrices(data: str, weight: tuple[int, ...], result: str) -> None:
    text = f"(float[{data}] x) => (float[{result}] y) {{ y = MatMul(x, w) }}"
    proto = model_of(text, w=random(*weight))
    model, found = quantized(proto)
    assert "1 of 1 products are integer; 1 activation" in found
    assert ratio(proto, model, {"x": random(*map(int, data.split(",")), seed=2)}) > 35


def test_an_activation_is_quantised_once() -> None:
    text = """
    (float[N,16] x) => (float[N,8] y)
    { a = MatMul(x, w) b = MatMul(x, v) c = Add(a, b) d = MatMul(x, w) y = Add(c, d) }
    """
    model, found = quantized(model_of(text, w=random(16, 8), v=random(16, 8, seed=1)))
    assert len(model.main.nodes_of("DynamicQuantizeLinear")) == 1
    assert "3 of 3 products are integer; 1 activation" in found
    weights = {node.inputs[1] for node in model.main.nodes_of("MatMulInteger")}
    assert len(weights) == 2


CONV = "(float[1,4,6,6] x) => (float[1,8,3,3] y) { y = Conv<strides = [2,2], pads = [1,1,0,0]>(x, w, b) }"  # fmt: skip


def test_a_convolution_is_quantised_on_request() -> None:
    proto = model_of(CONV, w=random(8, 4, 3, 3), b=random(8, seed=1))
    model, found = quantized(proto)
    assert any("a Conv is quantised on request only" in each for each in found)
    assert not model.main.nodes_of("DynamicQuantizeLinear")
    model, _ = quantized(proto, convolutions=True)
    assert len(model.main.nodes_of("ConvInteger")) == 1
    assert ratio(proto, model, {"x": random(1, 4, 6, 6, seed=2)}) > 30


@pytest.mark.parametrize(
    ("text", "weights", "reason"),
    [
        ("(float[2,2] x) => (float[2,2] y) { y = MatMul(x, x) }", {}, "the second operand is not a constant weight"),
        ("(float[2,2] x) => (float[2,2] y) { y = MatMul(x, w) }", {"w": np.array([[1, np.nan], [0, 0]], np.float32)}, "the weight has NaN or Inf"),
        ("(float[2,2] x) => (float[2] y) { y = MatMul(x, w) }", {"w": random(2)}, "the weight is a vector"),
        ("(float[2] x) => (float[3,2] y) { y = MatMul(x, w) }", {"w": random(3, 2, 2)}, "data of several matrices is not known to have two axes"),
        ("(float[2] x) => (float[2] y) { y = MatMul(w, x) }", {"w": random(2, 2)}, "one of the operands is not known to be a matrix"),
        ("(float[2,2] x) => (float[2,2] y) { y = Gemm<transA = 1>(x, w) }", {"w": random(2, 2)}, "data is transposed"),
        ("(float[0,2] x) => (float[0,2] y) { y = MatMul(x, w) }", {"w": random(2, 2)}, "an empty operand"),
        ("(double[2,2] x) => (double[2,2] y) <double[2,2] w = {1,2,3,4}> { y = MatMul(x, w) }", {}, "operands are of double, not of float"),
        ("(float[1,2,3,3] x) => (float[1,2,3,3] y) { y = ConvTranspose(x, w) }", {"w": random(2, 2, 1, 1)}, "there is no integer ConvTranspose"),
        ("(float[2,2] x, bool[2] k) => (float[2,2] y) <float l = {-3.4e38}> { m = Where(k, x, l) p = Softmax(m) z = MatMul(m, w) y = Add(p, z) }", {"w": random(2, 2)}, "an operand has masks"),
        ("(float[2,2] x, float[8] v) => (float[2,2] y) { m = MatMul(x, w) i = Cast<to = 7>(m) y = Gather(v, i) }", {"w": np.zeros((2, 2), np.float32)}, "index or shape: it decides where elements are"),
    ],
)  # fmt: skip
def test_a_product_that_stays_float_has_its_reason(
    text: str, weights: dict[str, np.ndarray], reason: str
) -> None:
    model, found = quantized(model_of(text, 17, **weights))
    assert any(reason in each for each in found), found
    assert not model.main.nodes_of("DynamicQuantizeLinear")


def test_an_old_opset() -> None:
    text = "(float[2,2] x) => (float[2,2] y) { y = MatMul(x, w) }"
    _, found = quantized(model_of(text, 10, w=random(2, 2)))
    assert any("needs opset 11, the model has 10" in each for each in found)


def test_the_user_keeps_nodes() -> None:
    text = "(float[2,2] x) => (float[2,2] y) { y = MatMul(x, w) }"
    for options in ({"skip_op_types": ["MatMul"]}, {"skip_nodes": ["*"]}):
        _, found = quantized(model_of(text, w=random(2, 2)), **options)
        assert any("the node is skipped" in each for each in found)


def test_bodies_use_the_activation_of_the_graph_around() -> None:
    text = """
    (bool c, float[2,4] x) => (float[2,4] y)
    { y = If(c) <then_branch = g () => (float[2,4] a) { a = MatMul(x, w) },
                 else_branch = h () => (float[2,4] b) { n = Exp(x) b = MatMul(n, w) }> }
    """
    proto = model_of(text, w=random(4, 4))
    model, _ = quantized(proto)
    for c in (True, False):
        assert ratio(proto, model, {"c": np.array(c), "x": random(2, 4, seed=1)}) > 28


def test_data_that_is_quantised_is_not_quantised_again() -> None:
    text = """
    (float[2,16] x) => (float[2,8] y) <float s = {0.1}, uint8 z = {128}>
    { q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) y = MatMul(d, w) }
    """
    proto = model_of(text, w=random(16, 8))
    model, found = quantized(proto)
    assert model.to_proto() == proto
    assert any("data is quantised already" in each for each in found)


@pytest.mark.parametrize("name", ["quantize", "quantize_dynamic"])
def test_a_model_without_products_says_so(name: str) -> None:
    ctx = PassContext.isolated()
    proto = parse("(float[2] x) => (float[2] y) { y = Relu(x) }")
    model = Model.from_proto(proto)
    get_pass(name).apply(model, ctx)
    assert model.to_proto() == proto
    assert [str(each) for each in ctx.remarks] == [
        f"{name}: unchanged: no Conv, ConvTranspose, Gemm or MatMul"
    ]


@pytest.mark.parametrize("name", ["weights_to_int8", "weights_to_int4"])
def test_a_model_without_weights_says_so(name: str) -> None:
    ctx = PassContext.isolated()
    model = Model.from_proto(parse("(float[2,2] x) => (float[2,2] y) { y = MatMul(x, x) }"))
    get_pass(name).apply(model, ctx)
    assert [str(each) for each in ctx.remarks] == [
        f"{name}: unchanged: no constant weight of Conv, Gather, Gemm or MatMul"
    ]
