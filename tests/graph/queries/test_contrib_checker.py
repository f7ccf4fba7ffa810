"""Dims that operands of onnxruntime's operators must have: onnxruntime refuses what is a fault."""

import onnx
import pytest

from tiered import Model
from tiered.graph.queries.contrib_checker import contrib_complaint
from tiered.runtime import Session, make_inputs
from tiered.support.errors import RuntimeFailure
from tiered.testing import parse

HEAD = '<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>'


def model_of(inputs: str, call: str) -> onnx.ModelProto:
    dtype = "uint8" if call.startswith("Q") else "float"
    call = call.replace("FusedGemm(", 'FusedGemm<activation = "Relu">(')
    proto = parse(f"{HEAD} g ({inputs}) => ({dtype}[?] y) {{ y = com.microsoft.{call} }}")
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    return proto


def run(proto: onnx.ModelProto) -> None:
    Session(proto).run(make_inputs(proto).feeds)


FAULTS = [
    ("float[3,4] a, float[5,4] b", "FusedMatMul(a, b)", "[3, 4] is multiplied by [5, 4]"),
    ("float[3,4] a, float[4,5] b", "FusedMatMul<transA=1>(a, b)", "multiplied by [4, 5]: 3 is"),
    ("float[2,3,4] a, float[5,4,6] b", "FusedMatMul(a, b)", "[2] and [5] do not broadcast"),
    ("float[3,4] a, float[5,4] b", "FusedGemm(a, b)", "4 is not 5"),
    ("float[3,4] a, float[4,5] b, float[2,5] c", "FusedGemm(a, b, c)", "operand 2 is [2, 5]"),
    ("float[3,4] a, float[3] b", "BiasGelu(a, b)", "operand 1 is [3]; it takes [4]"),
    ("float[3,4] a, float[1,4] b", "FastGelu(a, b)", "operand 1 is [1, 4]; it takes [4]"),
    (
        "float[2,3,4] a, float[2,3,5] b, float[4] g",
        "SkipLayerNormalization(a, b, g)",
        "[2, 3, 5] is added to [2, 3, 4]",
    ),
    (
        "float[2,3,4] a, float[2,3,4] b, float[3] g",
        "SkipLayerNormalization(a, b, g)",
        "operand 2 is [3]; it takes [4]",
    ),
    (
        "float[2,3,4] a, float[2,3,4] b, float[4] g, float[3] c",
        "SkipSimplifiedLayerNormalization(a, b, g, c)",
        "operand 3 is [3]; it takes [4]",
    ),
    (
        "uint8[3,4] a, float s, uint8 z, uint8[3,5] b",
        "QLinearAdd(a, s, z, b, s, z, s, z)",
        "[3, 4] and [3, 5] do not broadcast",
    ),
    (
        "uint8[3,4] a, float s, uint8 z, uint8[5,6] b",
        "QGemm(a, s, z, b, s, z, , s, z)",
        "4 is not 5",
    ),
    (
        "uint8[3,4] a, float s, uint8 z, uint8[5,6] b",
        "MatMulIntegerToFloat(a, b, s, s)",
        "4 is not 5",
    ),
    ("float[3,4] a, uint8[5,6] b, float s", "DynamicQuantizeMatMul(a, b, s)", "4 is not 5"),
    (
        "uint8[3,4] a, float s, uint8 z, uint8[3,5] b",
        "QLinearConcat<axis=-2>(s, z, a, s, z, b, s, z)",
        "[3, 5] is joined to [3, 4] at axis -2",
    ),
    (
        "float[1,4,5,5] a, float[6,3,1,1] w",
        'FusedConv<activation = "Relu">(a, w)',
        "has 4 channels; the filters read 3",
    ),
    (
        "float[1,3,5,5] a, float[6,3,1,1] w, float[3] b",
        'FusedConv<activation = "Relu">(a, w, b)',
        "operand 2 is [3]; it takes [6]",
    ),
    (
        "float[2,3,4] a, float[5,12] w, float[12] b",
        "Attention<num_heads=2>(a, w, b)",
        "[2, 3, 4] is multiplied by [5, 12]",
    ),
    (
        "float[2,3,4] a, float[4,12] w, float[9] b",
        "Attention<num_heads=2>(a, w, b)",
        "operand 2 is [9]; it takes [12]",
    ),
    (
        "float[2,3,4] q, float[2,3,6] k, float[2,3,4] v",
        "MultiHeadAttention<num_heads=2>(q, k, v)",
        "the queries are [2, 3, 4], the keys [2, 3, 6]",
    ),
    (
        "float[2,3,4] q, float[2,3,4] k, float[2,3,4] v",
        "MultiHeadAttention<num_heads=3>(q, k, v)",
        "3 heads do not divide 4",
    ),
]


@pytest.mark.parametrize(("inputs", "call", "fault"), FAULTS)
def test_a_fault_is_named_and_onnxruntime_refuses_it(inputs: str, call: str, fault: str) -> None:
    proto = model_of(inputs, call)
    complaint = contrib_complaint(Model.from_proto(proto))
    assert complaint is not None
    assert complaint.startswith(f"com.microsoft::{call.partition('(')[0].partition('<')[0]} 'y': ")
    assert fault in complaint
    with pytest.raises(RuntimeFailure):
        run(proto)


@pytest.mark.parametrize(
    ("inputs", "call"),
    [
        ("float[3,4] a, float[5,4] b", "FusedMatMul<transB=1>(a, b)"),
        ("float[2,3,4] a, float[1,4,5] b", "FusedMatMul(a, b)"),
        ("float[4] a, float[4,5] b", "FusedMatMul(a, b)"),
        ("float[3,4] a, float[4,5] b, float[1,5] c", "FusedGemm(a, b, c)"),
        ("float[3,4] a, float[4,5] b, float[5] c", "FusedGemm(a, b, c)"),
        ("float[3,4] a, float[4] b", "BiasGelu(a, b)"),
        ("uint8[3,4] a, float s, uint8 z, uint8[4,6] b", "QGemm(a, s, z, b, s, z, , s, z)"),
        ("uint8[3,4] a, float s, uint8[4,6] b", "MatMulIntegerToFloat(a, b, s, s)"),
        ("float[3,4] a, uint8[4,6] b, float s", "DynamicQuantizeMatMul(a, b, s)"),
        (
            "float[2,3,4] a, float[2,3,4] b, float[4] g, float[4] c",
            "SkipSimplifiedLayerNormalization(a, b, g, c)",
        ),
        ("float[3,4] a", "FastGelu(a)"),
        ("float[2,3,4] a, float[2,3,4] b, float[4] g", "SkipLayerNormalization(a, b, g)"),
        ("uint8[3,4] a, float s, uint8 z, uint8[3,1] b", "QLinearAdd(a, s, z, b, s, z, s, z)"),
        (
            "uint8[3,4] a, float s, uint8 z, uint8[2,4] b",
            "QLinearConcat<axis=-2>(s, z, a, s, z, b, s, z)",
        ),
        ("float[1,4,5,5] a, float[6,2,1,1] w", 'FusedConv<activation = "Relu", group=2>(a, w)'),
        ("float[2,3,4] a, float[4,12] w, float[12] b", "Attention<num_heads=2>(a, w, b)"),
        (
            "float[2,3,4] q, float[2,5,4] k, float[2,5,6] v",
            "MultiHeadAttention<num_heads=2>(q, k, v)",
        ),
    ],
)
def test_what_fits_is_no_fault_and_runs(inputs: str, call: str) -> None:
    proto = model_of(inputs, call)
    assert contrib_complaint(Model.from_proto(proto)) is None
    run(proto)


LARGE = "float[2,3,4] a, float[2,3,4] b, float[4] g, float[3] h, float[4,1] m, float[2] n"
PARTS = "uint8[3,4] a, float s, uint8 z, uint8[3,4] b, uint8[2,4] c, uint8[3,4,1] d, uint8[N,4] e"
DIMS: list[tuple[str, str, str | None]] = [
    # What is not known is no fault.
    ("float[3,N] a, float[5,4] b", "FusedMatMul(a, b)", None),
    ("float[3,4] a, float[N,4] b", "FusedMatMul(a, b)", None),
    ("float[N,3,4] a, float[5,4,6] b", "FusedMatMul(a, b)", None),
    ("float[2,3,4] a, float[7,5,4,6] b", "FusedMatMul(a, b)", "[2] and [7, 5] do not broadcast"),
    ("float[7,1,3,4] a, float[5,4,6] b", "FusedMatMul(a, b)", None),
    ("float[3,N] a, float[7] b", "BiasGelu(a, b)", None),
    ("float[3,7] a, float[N] b", "BiasGelu(a, b)", None),
    ("float a, float[7] b", "BiasGelu(a, b)", None),
    ("float a, float[7,7] b", "BiasGelu(a, b)", "operand 1 is [7, 7]; it takes one dim"),
    ("float[3,4] a, float[4,5] b, float[3,5] c", "FusedGemm(a, b, c)", None),
    ("float[3,4] a, float[4,5] b, float[1,1] c", "FusedGemm(a, b, c)", None),
    ("float[3,4] a, float[4,5] b, float[N,M] c", "FusedGemm(a, b, c)", None),
    ("float[3,4] a, float[4,5] b, float[1,3,5] c", "FusedGemm(a, b, c)", "operand 2 is [1, 3, 5]"),
    ("float[1,4] a, float[4,5] b, float[3,5] c", "FusedGemm(a, b, c)", "operand 2 is [3, 5]"),
    ("float[4] a, float[4,5] b, float[9] c", "FusedGemm(a, b, c)", None),
    (LARGE, "SkipLayerNormalization(a, b, g, g, h)", "operand 4 is [3]; it takes [4]"),
    (LARGE, "SkipLayerNormalization(a, b, g, h)", "operand 3 is [3]; it takes [4]"),
    (LARGE, "SkipLayerNormalization(a, b, g, , g)", None),
    (LARGE, "SkipSimplifiedLayerNormalization(a, b, g, g, h)", None),
    (LARGE, "SkipSimplifiedLayerNormalization(a, h, g)", "[3] is added to [2, 3, 4]"),
    ("float[2,N] a, float[2,3] b, float[4] g", "SkipLayerNormalization(a, b, g)", None),
    (LARGE, "EmbedLayerNormalization(a, a, m, a, a, n, g)", "operand 5 is [2]; it takes [1]"),
    (LARGE, "EmbedLayerNormalization(a, a, a, a, a, g, h)", "operand 6 is [3]; it takes [4]"),
    (LARGE, "EmbedLayerNormalization(m, a, a, a, a, g, g)", None),
    ("bool[3,4] c, uint8[3,1] x, float s, uint8 z, uint8[3,5] w",
     "QLinearWhere(c, x, s, z, w, s, z, s, z)", "[3, 4] and [3, 1] and [3, 5] do not broadcast"),
    ("bool[3,4] c, uint8[5,1] x, float s, uint8 z, uint8[1,4] w",
     "QLinearWhere(c, x, s, z, w, s, z, s, z)", "do not broadcast"),
    ("uint8[3,N] x, float s, uint8 z, uint8[3,5] w", "QLinearMul(x, s, z, w, s, z, s, z)", None),
    (PARTS, "QLinearConcat<axis=0>(s, z, a, s, z, c, s, z)", None),
    (PARTS, "QLinearConcat<axis=1>(s, z, a, s, z, b, s, z, c, s, z)",
     "[2, 4] is joined to [3, 4] at axis 1"),
    (PARTS, "QLinearConcat<axis=0>(s, z, a, s, z, d, s, z)",
     "[3, 4, 1] is joined to [3, 4] at axis 0"),
    (PARTS, "QLinearConcat<axis=1>(s, z, a, s, z, e, s, z)", None),
    (PARTS, "QLinearConcat<axis=1>(s, z, c, s, z)", None),
    ("float[1,4,5,5] a, float[6,3] w", "FusedConv(a, w)", None),
    ("float[1,N,5,5] a, float[6,3,1,1] w", "FusedConv(a, w)", None),
    ("float[1,4,5,5] a, float[6,N,1,1] w", "FusedConv(a, w)", None),
    ("float[1,4,5] a, float[6,3,1] w", "FusedConv(a, w)", "[1, 4, 5] has 4 channels"),
    ("float[1,3,5] a, float[6,3,1] w, float[6,1] b", "FusedConv(a, w, b)", "operand 2 is [6, 1]"),
    ("float[1,3,5] a, float[6,3,1] w, float[6] b", "FusedConv(a, w, b)", None),
    ("float[2,4] a, uint8[6,1,8] w, float[6] s",
     "MatMulNBits<K=5, N=6, bits=4, block_size=16>(a, w, s)", "its last dim should be K = 5"),
    ("float[2,5] a, uint8[6,1,8] w, float[6] s",
     "MatMulNBits<K=5, N=6, bits=4, block_size=16>(a, w, s)", None),
    ("float[2,N] a, uint8[6,1,8] w, float[6] s",
     "MatMulNBits<K=5, N=6, bits=4, block_size=16>(a, w, s)", None),
    ("float[2,3,N] a, float[5,12] w, float[12] b", "Attention<num_heads=2>(a, w, b)", None),
    ("float[2,3,4] q, float[2,3,4] k", "MultiHeadAttention<num_heads=2>(q, k)", None),
    ("float[2,3,N] q, float[2,3,4] k", "MultiHeadAttention<num_heads=2>(q, k)", None),
    ("float[2,3,4,5] q, float[2,3,6] k", "MultiHeadAttention<num_heads=2>(q, k)", None),
    ("float[2,3,4] q, float[2,3,4,6] k", "MultiHeadAttention<num_heads=3>(q, k)", None),
    ("float[2,3,4] q", "MultiHeadAttention<num_heads=3>(q)", None),
]  # fmt: skip


def test_which_dims_are_faults() -> None:
    for inputs, call, fault in DIMS:
        complaint = contrib_complaint(Model.from_proto(model_of(inputs, call)))
        if fault is None:
            assert complaint is None, (inputs, call)
        else:
            assert complaint is not None, (inputs, call)
            assert fault in complaint, (inputs, call)


def test_operands_of_unknown_rank_are_no_fault() -> None:
    for call in (
        "FusedMatMul(u, a)", "BiasGelu(u, v)", "SkipLayerNormalization(u, a, v)",
        "SkipLayerNormalization(a, u, v)", "FusedConv(u, a)", "FusedConv(a, u)", "Attention(u, a, v)",
        "Attention(a, u, v)", "MultiHeadAttention<num_heads=2>(u, a, a)", "FusedGemm(u, a, a)",
        "MultiHeadAttention<num_heads=2>(a, u, a)", "MatMulNBits<K=9, N=1>(u, a, a)",
    ):  # fmt: skip
        text = f"{HEAD} g (float[2,3,4] a, float[4] v, int64[K] t) => (float[?] y)"
        model = Model.from_proto(parse(f"{text} {{ u = Reshape(a, t) y = com.microsoft.{call} }}"))
        assert contrib_complaint(model) is None, call


def test_faults_in_bodies_are_found() -> None:
    body = "(float[?] {0}) {{ {0} = {1} }}"
    for call, is_fault in (("com.microsoft.BiasGelu(a, b)", True), ("Neg(a)", False)):
        text = f"""{HEAD} g (float[3,4] a, float[3] b, bool c) => (float[?] y) {{ y = If(c) <
            then_branch = t () => {body.format("p", call)},
            else_branch = e () => {body.format("q", "Abs(a)")}> }}"""
        assert (contrib_complaint(Model.from_proto(parse(text))) is not None) is is_fault
