"""Tied tables and constants on the left, in static and in dynamic quantisation."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from tests.small import parsed
from tiered import Model, PassContext, get_pass, optimize_model
from tiered.numerics.quantization.untied import tie_again, untie
from tiered.runtime import run
from tiered.testing import parse

Array = np.ndarray[Any, Any]
PASSES = ["quantize", "quantize_dynamic"]


def drawn(*shape: int, seed: int = 0) -> Array:
    numbers: Array = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return numbers


def model_of(text: str, **weights: Array) -> onnx.ModelProto:
    proto = parse(text, opset=17)
    proto.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in weights.items()
    )
    return proto


def quantized(proto: onnx.ModelProto, name: str, **options: object) -> onnx.ModelProto:
    model = Model.from_proto(proto)
    settings = {"samples": 2, **options} if name == "quantize" else options
    get_pass(name).with_options(**settings).apply(model, PassContext.isolated())
    made = model.to_proto()
    onnx.checker.check_model(made, full_check=True)
    return made


def error(before: onnx.ModelProto, after: onnx.ModelProto, feeds: dict[str, Array]) -> float:
    exact, found = (run(each, feeds)["y"] for each in (before, after))
    assert exact.shape == found.shape
    return float(np.linalg.norm(exact - found) / np.linalg.norm(exact))


def default_session(proto: onnx.ModelProto) -> onnxruntime.InferenceSession:
    """Return a session with the optimisations that onnxruntime has by default."""
    return onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )


TIED = (
    "(int64[N] p) => (float[N,V] y) {{ h = Gather(t, p) a = MatMul(h, w) b = Relu(a) "
    "s = Transpose{perm}(t) y = {product} }}"
)
TABLE, FEEDS = drawn(400, 64), {"p": np.arange(50) * 7}


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("product", ["MatMul(b, s)", "Gemm(b, s)"])
@pytest.mark.parametrize("perm", ["<perm = [1, 0]>", ""])
def test_a_tied_table_is_a_weight(name: str, product: str, perm: str) -> None:
    """Beyond the growth that constant folding allows, too."""
    proto = model_of(TIED.format(product=product, perm=perm), t=TABLE, w=drawn(64, 64))
    made = quantized(proto, name)
    types = [node.op_type for node in made.graph.node]
    assert "Transpose" not in types
    assert types.count("MatMulInteger") == (2 if name == "quantize_dynamic" else 0)
    shapes = {each.name: (each.data_type, tuple(each.dims)) for each in made.graph.initializer}
    assert shapes["t"] == (onnx.TensorProto.FLOAT, (400, 64))
    assert (onnx.TensorProto.INT8, (64, 400)) in shapes.values()
    assert not any(kind == (1, (64, 400)) for kind in shapes.values())
    assert error(proto, made, FEEDS) < 0.1


@pytest.mark.parametrize("name", PASSES)
def test_a_product_that_stays_float_reads_the_table(name: str) -> None:
    text = TIED.format(product="Gemm(b, s)", perm="").replace("N,V", "N,400")
    proto = model_of(text, t=TABLE, w=drawn(64, 64))
    made = quantized(proto, name, skip_op_types=("Gemm",))
    assert [node.op_type for node in made.graph.node].count("Transpose") == 1
    assert {tuple(each.dims) for each in made.graph.initializer} >= {(400, 64)}
    assert not any(tuple(each.dims) == (64, 400) for each in made.graph.initializer)
    assert error(proto, made, FEEDS) < 0.1


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize(
    ("text", "weights", "shape"),
    [
        ("(float[64,N] x) => (float[16,N] y) { y = MatMul(w, x) }", {"w": (16, 64)}, (64, 9)),
        (
            "(float[B,64,N] x) => (float[B,16,N] y) { y = MatMul(w, x) }",
            {"w": (16, 64)},
            (2, 64, 9),
        ),
        (
            "(float[64,N] x) => (float[16,N] y) { y = Gemm<alpha = 0.5, beta = 2.0>(w, x, b) }",
            {"w": (16, 64), "b": (16, 1)},
            (64, 9),
        ),
        (
            "(float[64,N] x) => (float[16,N] y) { y = Gemm<transA = 1>(w, x) }",
            {"w": (64, 16)},
            (64, 9),
        ),
        (
            "(float[64,N] x) => (float[64,N] y) { a = Transpose(w) b = MatMul(a, x) "
            "y = MatMul(w, b) }",
            {"w": (64, 64)},
            (64, 9),
        ),
    ],
)
def test_a_constant_on_the_left(
    name: str, text: str, weights: dict[str, tuple[int, ...]], shape: tuple[int, ...]
) -> None:
    proto = model_of(text, **{key: drawn(*dims) for key, dims in weights.items()})
    made = quantized(proto, name)
    types = {node.op_type for node in made.graph.node}
    assert ("MatMulInteger" if name == "quantize_dynamic" else "QuantizeLinear") in types
    feeds = {"x": drawn(*shape, seed=1)}
    assert error(proto, made, feeds) < 0.06
    for model in (made, optimize_model(Model.from_proto(made), opt_level=3).model.to_proto()):
        (exact, found) = (default_session(each).run(None, feeds)[0] for each in (proto, model))
        assert np.linalg.norm(exact - found) < 0.06 * np.linalg.norm(exact)


@pytest.mark.parametrize(
    ("text", "shape", "reason"),
    [
        (
            "(float[N] x) => (float[M] y) { y = MatMul(w, x) }", (16, 64),
            "one of the operands is not known to be a matrix",
        ),
        (
            "(float[B,64,N] x) => (float[B,16,N] y) { y = MatMul(w, x) }", (2, 16, 64),
            "one of the operands is not known to be a matrix",
        ),
        (
            "(float[N,64] x) => (float[16,N] y) { y = Gemm<transB = 1>(w, x) }", (16, 64),
            "data is transposed",
        ),
        ("(float[64,0] x) => (float[16,0] y) { y = MatMul(w, x) }", (16, 64), "an empty operand"),
    ],
)  # fmt: skip
def test_other_constants_on_the_left_stay_float(
    text: str, shape: tuple[int, ...], reason: str
) -> None:
    proto = model_of(text, w=drawn(*shape))
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass("quantize_dynamic").apply(model, ctx)
    assert model.to_proto() == proto
    assert any(reason in str(remark) for remark in ctx.remarks)


def test_weights_on_the_left_have_all_their_bits() -> None:
    """Their kernels are exact without VNNI too, so that no pair is limited."""
    proto = model_of("(float[64,N] x) => (float[16,N] y) { y = MatMul(w, x) }", w=drawn(16, 64))
    made = [quantized(proto, "quantize_dynamic", processor=each) for each in ("avx2", "vnni")]
    assert made[0].graph == made[1].graph


@pytest.mark.parametrize(
    ("nodes", "count"),
    [
        ("s = Transpose(t)  y = MatMul(x, s)", 1),
        ("s = Transpose<perm = [1,0]>(t)  y = MatMul(x, s)", 1),
        ("s = Transpose(t)  a = MatMul(x, s)  b = Gemm(x, s)  y = Add(a, b)", 1),
        (
            "s = Transpose(t)  r = Transpose(t)  a = MatMul(x, s)  b = MatMul(x, r)  y = Add(a, b)",
            2,
        ),
        ("s = Transpose(t)  y = MatMul(s, x)", 1),
        ("s = Transpose(t)  a = Gemm(x, z, s)  y = Add(a, z)", 0),
        (
            "s = Transpose(t)  y = If(c) <then_branch = g () => (float[2,2] p) { p = MatMul(x, s) }"
            ", else_branch = h () => (float[2,2] q) { q = Neg(x) }>",
            0,
        ),
        ("s = Transpose<perm = [0,1]>(t)  y = MatMul(x, s)", 0),
        ("s = Transpose<perm = [1,0,2]>(cube)  y = MatMul(x, s)", 0),
        ("s = Transpose(line)  y = MatMul(x, s)", 0),
        ("s = Transpose(z)  y = MatMul(x, s)", 0),
        ("s = Identity(t)  y = MatMul(x, s)", 0),
        ("s = Transpose(t)  y = vendor.MatMul(x, s)", 0),
        ("s = Transpose(t)  y = Add(x, s)", 0),
        ("e = Cast<to = 11>(x)  s = Transpose(double)  d = MatMul(e, s)  y = Cast<to = 1>(d)", 0),
        ("s = Transpose(none)  y = MatMul(x, s)", 0),
    ],
)
def test_the_transpose_of_a_matrix_of_floats_is_a_weight_for_its_products(
    nodes: str, count: int
) -> None:
    model = parsed(
        f"""<ir_version: 10, opset_import: ["": 21, "vendor": 1]> g
        (float[2,2] x, float[2,2] z, bool c) => (float[2,2] y) <float[2,2] t = {{1,2,3,4}},
        float[1,2,2] cube = {{1,2,3,4}}, float[2] line = {{1,2}}, double[2,2] double = {{1,2,3,4}},
        float[0,2] none = {{}}> {{ {nodes} }}"""
    )
    before = model.to_proto().SerializeToString()
    made = untie(model)
    assert [weight.tensor.numpy().tolist() for weight in made if weight.tensor is not None] == [
        [[1, 3], [2, 4]]
    ] * count
    assert len(made) == count
    tie_again(made)
    assert model.to_proto().SerializeToString() == before


def test_a_sparse_table_is_no_weight() -> None:
    proto = parse("(float[2,2] x) => (float[2,2] y) { s = Transpose(t)  y = MatMul(x, s) }")
    values, indices = (numpy_helper.from_array(each, "t") for each in (TABLE[0, :1], np.array([1])))
    proto.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, indices, [2, 2]))
    assert not untie(Model.from_proto(proto))
