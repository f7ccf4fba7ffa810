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
