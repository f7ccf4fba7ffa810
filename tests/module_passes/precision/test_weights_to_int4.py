"""weights_to_int4: blocks of all readers, ragged ones too, and what declines."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.module_passes.precision.weights import apply, noise_of, with_weight
from tiered import Model, PassContext, get_backend, get_pass
from tiered.runtime import run
from tiered.testing import assert_rewrites, parse

MATMUL = "(float[N,70] x) => (float[N,16] y) { y = MatMul(x, w) }"


def test_a_weight_is_dequantized_where_it_is_read() -> None:
    model = "(float[N,2] x) => (float[N,2] y) <{}> {{ {} y = MatMul(x, w) }}"
    assert_rewrites(
        "weights_to_int4",
        model.format("float[2,2] w = {15,15,0,0}", ""),
        # Two numbers of four bits a byte: 15 and 15, 0 and 0; then the zero points 0 and 0.
        model.format(
            "uint4[2,2] q = {255,0}, float[1,2] s = {1,1}, uint4[1,2] z = {0}",
            "w = DequantizeLinear<axis=0, block_size=32>(q, s, z)",
        ),
        min_elements=1,
    )


@pytest.mark.parametrize(
    ("text", "shape", "axis"),
    [
        (MATMUL, (70, 16), 0),
        ("(float[N,70] x) => (float[N,16] y) { y = Gemm<transB = 1>(x, w) }", (16, 70), 1),
        ("(float[N,70] x) => (float[N,16] y) { y = Gemm(x, w) }", (70, 16), 0),
        ("(int64[N] x) => (float[N,70] y) { y = Gather(w, x) }", (40, 70), 1),
    ],
)
def test_blocks_are_along_the_summed_axis(text: str, shape: tuple[int, ...], axis: int) -> None:
    proto = with_weight(text, shape)
    model, _ = apply("weights_to_int4", proto, {"sensitive": "int4"})
    (node,) = model.main.nodes_of("DequantizeLinear")
    assert (node.attr("axis"), node.attr("block_size")) == (axis, 32)
    assert [value.dtype for value in node.inputs if value is not None] == [21, 1, 21]
    assert 0 < noise_of(proto, model) < 0.12


def test_a_kernel_is_flattened() -> None:
    text = "(float[1,8,5,5] x) => (float[1,16,3,3] y) { y = Conv(x, w) }"
    proto = with_weight(text, (16, 8, 3, 3))
    model, _ = apply("weights_to_int4", proto, {"sensitive": "int4"})
    assert len(model.main.nodes_of("Reshape")) == 1
    assert 0 < noise_of(proto, model) < 0.12


def test_a_tied_weight_is_stored_once() -> None:
    text = (
        "(int64[N] i, float[M,64] x) => (float[N,64] y, float[M,48] z) "
        "{ y = Gather(w, i) z = Gemm<transB = 1>(x, w) }"
    )
    model, _ = apply("weights_to_int4", with_weight(text, (48, 64)))
    assert len(model.main.nodes_of("DequantizeLinear")) == 1


def test_onnxruntime_gets_its_own_operator() -> None:
    """Where the target has MatMulNBits, a later pass makes it of the blocks."""
    proto = with_weight("(float[N,64] x) => (float[N,16] y) { y = MatMul(x, w) }", (64, 16))
    model, _ = apply("weights_to_int4", proto)
    before = run(model.to_proto(), {"x": np.ones((2, 64), np.float32)})["y"]
    ctx = PassContext.isolated(backend=get_backend("onnxruntime_cpu"))
    get_pass("fuse_blocks_into_matmul").apply(model, ctx)
    (node,) = model.main.nodes_of("MatMulNBits", "com.microsoft")
    after = run(model.to_proto(), {"x": np.ones((2, 64), np.float32)})["y"]
    assert (node.attr("bits"), node.attr("block_size")) == (4, 32)
    assert np.allclose(before, after, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("text", "shape", "options", "reason"),
    [
        (MATMUL, (70, 16), {"min_elements": 5000}, "a small weight"),
        (MATMUL, (70, 16), {"skip_op_types": ("MatMul",)}, "MatMul is skipped"),
        (MATMUL, (70, 16), {"block_size": 1}, "not smaller"),
        (
            "(float[N,70] x) => (float[N,16] y, float[70,16] v) { y = MatMul(x, w) v = Neg(w) }",
            (70, 16),
            {},
            "another node reads the weight as it is",
        ),
        (
            "(float[1,8,5,5] x) => (float[1,16,7,7] y) { y = ConvTranspose(x, w) }",
            (8, 16, 3, 3),
            {"sensitive": "int4"},
            "no blocks along the channels of a ConvTranspose",
        ),
    ],
)
def test_weights_that_stay(
    text: str, shape: tuple[int, ...], options: dict[str, object], reason: str
) -> None:
    proto = with_weight(text, shape)
    model, found = apply("weights_to_int4", proto, options)
    assert model.to_proto() == Model.from_proto(proto).to_proto()
    assert any(reason in each for each in found), found


def test_errors_cancel_on_inputs_of_the_model() -> None:
    """The operand has most of its energy in one direction, as its numbers are positive."""
    text = "(float[N,64] x) => (float[N,16] y) { s = Sigmoid(x) y = MatMul(s, w) }"
    proto = with_weight(text, (64, 16))
    model, found = apply("weights_to_int4", proto)
    assert any(
        "1 of 1 are rounded for 8 generated inputs, others to nearest" in each for each in found
    )
    nearest, found = apply("weights_to_int4", proto, {"rounding": "nearest"})
    assert not any("rounded" in each for each in found)
    assert noise_of(proto, model) < 0.8 * noise_of(proto, nearest)
    assert len(model.to_proto().SerializeToString()) == len(nearest.to_proto().SerializeToString())
    again, _ = apply("weights_to_int4", proto)
    assert again.to_proto() == model.to_proto()


def test_inputs_decide_how_weights_are_rounded(tmp_path: Path) -> None:
    numbers = np.abs(np.random.default_rng(2).standard_normal((64, 70))).astype(np.float32)
    np.save(tmp_path / "x.npy", numbers)
    options: dict[str, object] = {"inputs": (str(tmp_path / "x.npy"),)}
    _, found = apply("weights_to_int4", with_weight(MATMUL, (70, 16)), options)
    assert any("1 of 1 are rounded for 1 given input" in each for each in found)


def test_a_model_that_does_not_run_is_rounded_to_nearest() -> None:
    text = "(float[N,64] x) => (float[N,16] y) { s = other.Strange(x) y = MatMul(s, w) }"
    proto = with_weight(text, (64, 16))
    proto.opset_import.add(domain="other", version=1)
    model, found = apply("weights_to_int4", proto)
    assert model.main.nodes_of("DequantizeLinear")
    assert any("rounded to nearest: " in each and "Strange" in each for each in found)


def test_an_older_opset_has_no_blocks() -> None:
    proto = with_weight(MATMUL, (70, 16), opset=20)
    _, found = apply("weights_to_int4", proto)
    assert any("uint4 needs opset 21, the model has 20" in each for each in found)


def test_weights_that_are_not_finite_stay() -> None:
    proto = with_weight(MATMUL, (70, 16))
    weight = onnx.numpy_helper.to_array(proto.graph.initializer[0]).copy()
    weight[3, 4] = np.inf
    proto.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weight, "w"))
    _, found = apply("weights_to_int4", proto)
    assert any("the weight has NaN or Inf" in each for each in found)


def test_an_overridable_weight_stays() -> None:
    proto = with_weight(MATMUL, (70, 16))
    proto.graph.input.append(onnx.helper.make_tensor_value_info("w", 1, (70, 16)))
    model, _ = apply("weights_to_int4", proto)
    assert not model.main.nodes_of("DequantizeLinear")


def test_a_weight_that_a_body_reads() -> None:
    text = (
        "(bool c, float[2,70] x) => (float[2,16] y) { y = If(c) <then_branch = t () => "
        "(float[2,16] p) { p = MatMul(x, w) }, else_branch = e () => (float[2,16] q) "
        "{ m = MatMul(x, w) q = Neg(m) }> }"
    )
    model, _ = apply("weights_to_int4", with_weight(text, (70, 16)))
    assert len(model.main.nodes_of("DequantizeLinear")) == 1


# --- weights whose rounding costs most ------------------------------------------------------------

INT8, UINT4 = onnx.TensorProto.INT8, onnx.TensorProto.UINT4


def stored(text: str, shapes: dict[str, tuple[int, ...]], *, opset: int = 21) -> dict[str, int]:
    """Return the dtype that each weight is stored in, by its name."""
    proto = parse(text, opset=opset)
    for name, shape in shapes.items():
        numbers = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(numbers, name))
    model, _ = apply("weights_to_int4", proto)
    found = {each.name: each.data_type for each in model.to_proto().graph.initializer}
    kinds = {"int8": INT8, "uint4": UINT4, "": onnx.TensorProto.FLOAT}
    names = {name: [kind for kind in kinds if f"{name}_{kind}".rstrip("_") in found]
             for name in shapes}  # fmt: skip
    return {name: kinds[kind] for name, (kind,) in names.items()}


@pytest.mark.parametrize(
    ("text", "shapes", "expected"),
    [
        (
            "(int64[N] x) => (float[N,64] y) { a = Gather(t, x) b = MatMul(a, w) c = Tanh(b) "
            "y = MatMul(c, v) }",
            {"t": (40, 64), "w": (64, 64), "v": (64, 64)},
            {"t": INT8, "w": UINT4, "v": INT8},
        ),
        (
            "(float[1,8,5,5] x) => (float[1,16,3,3] y) { y = Conv(x, w) }",
            {"w": (16, 8, 3, 3)},
            {"w": INT8},
        ),
        # A small classifier stays float, so that the product before it is the last one.
        (
            "(float[N,64] x) => (float[N,2] y) { a = MatMul(x, w) b = Gemm(a, v) c = Tanh(b) "
            "y = Gemm(c, u) }",
            {"w": (64, 64), "v": (64, 64), "u": (64, 2)},
            {"w": UINT4, "v": INT8, "u": 1},
        ),
        # The head is tied to the table.
        (
            "(int64[N] x) => (float[N,40] y) { a = Gather(t, x) b = MatMul(a, w) s = Transpose(t) "
            "y = MatMul(b, s) }",
            {"t": (40, 64), "w": (64, 64)},
            {"t": INT8, "w": UINT4},
        ),
        # Two heads; a model of one layer has none.
        (
            "(float[N,64] x) => (float[N,64] y, float[N,64] z) { a = MatMul(x, w) b = Tanh(a) "
            "y = MatMul(b, v) z = MatMul(b, u) }",
            {"w": (64, 64), "v": (64, 64), "u": (64, 64)},
            {"w": UINT4, "v": INT8, "u": INT8},
        ),
        ("(float[N,64] x) => (float[N,64] y) { y = MatMul(x, w) }", {"w": (64, 64)}, {"w": UINT4}),
    ],
)
def test_tables_kernels_and_heads_have_eight_bits(
    text: str, shapes: dict[str, tuple[int, ...]], expected: dict[str, int]
) -> None:
    assert stored(text, shapes) == expected


def test_without_four_bits_there_are_no_eight_either() -> None:
    text = "(int64[N] x) => (float[N,64] y) { a = Gather(t, x) y = MatMul(a, w) }"
    assert stored(text, {"t": (40, 64), "w": (64, 64)}, opset=20) == {"t": 1, "w": 1}
