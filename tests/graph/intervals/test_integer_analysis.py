"""Integer analysis: every element that a run computes is an integer of the type."""

import itertools

import numpy as np
import onnx
import pytest

from tests.qonnx import ROUNDINGS, SPECIAL, floats, parsed
from tiered import IntegerAnalysis, IntegerType, Model, integer_types, optimize_model, ranges
from tiered.graph import Tensor
from tiered.graph.intervals.integer_type import integer_type
from tiered.runtime import run
from tiered.support.errors import UsageError
from tiered.testing import parse

QUANT = 'y = q.Quant<signed={signed}, narrow={narrow}, rounding_mode="{mode}">(x, s, z, b)'


BYTES = "(uint8[2] x) => (float[2] y) <float h = {{{}}}> {{ t = Cast<to=1>(x) y = Mul(t, h) }}"


def type_of(
    proto: onnx.ModelProto, name: str = "y", analysis: IntegerAnalysis = integer_types
) -> str | None:
    """Return the name of the type of a value of the main graph."""
    model = Model.from_proto(proto)
    value = model.main.value(name)
    assert value is not None
    found = model.analysis(analysis)[value]
    return None if found is None else found.name


def found_in(text: str, analysis: IntegerAnalysis = integer_types, opset: int = 17) -> str | None:
    return type_of(parse(text, opset=opset), "y", analysis)


@pytest.mark.parametrize(
    ("low", "high", "name"),
    [
        (0, 0, "uint1"), (0, 1, "uint1"), (0, 2, "uint2"), (0, 31, "uint5"), (0, 32, "uint6"),
        (-1, 0, "int1"), (-1, 1, "int2"), (-2, 1, "int2"), (-3, 1, "int3"), (-4, 3, "int3"),
        (-4, 4, "int4"), (-1, 127, "int8"), (-128, 0, "int8"), (-129, 0, "int9"), (-5, -2, "int4"),
    ],
)  # fmt: skip
def test_a_name_has_the_least_number_of_bits(low: int, high: int, name: str) -> None:
    assert IntegerType(low, high).name == name
    parsed_again = integer_type(name)
    assert parsed_again.low <= low
    assert high <= parsed_again.high


def test_other_names() -> None:
    assert integer_type("bipolar").name == "bipolar"
    assert integer_type("bipolar").scaled.name == "scaled bipolar"
    for name in ("int0", "int", "Int3", "int3 ", "float"):
        with pytest.raises(UsageError, match="expected int<k>, uint<k> or bipolar"):
            integer_type(name)


@pytest.mark.parametrize("bits", [1, 2, 3, 5, 8, 12])
@pytest.mark.parametrize("signed", [0, 1])
@pytest.mark.parametrize("narrow", [0, 1])
@pytest.mark.parametrize("zero", [0, 1])
def test_every_element_of_a_quant_has_its_type(
    bits: int, signed: int, narrow: int, zero: int
) -> None:
    for mode in ROUNDINGS:
        nodes = QUANT.format(signed=signed, narrow=narrow, mode=mode)
        proto = parsed(
            f"(float[N] x) => (float[N] y) {{ {nodes} }}",
            s=floats(1), z=floats(zero), b=floats(bits),
        )  # fmt: skip
        model = Model.from_proto(proto)
        (value,) = model.main.outputs
        found = model.analysis(integer_types)[value]
        assert found is not None
        defined = optimize_model(proto, passes=["import_qonnx"]).model.to_proto()
        x = floats([*SPECIAL, *np.linspace(-5000, 5000, 101), *range(-300, 300)])
        y = run(defined, {"x": x})["y"]
        y = y[~np.isnan(y)]
        assert (y == np.rint(y)).all()
        assert (y.min(), y.max()) == (found.low, found.high)
        assert model.analysis(ranges)[value].holds(y)
        expected = {(1, 1): "bipolar"}.get((bits, signed), f"{'' if signed else 'u'}int{bits}")
        if not zero and (bits, signed, narrow) != (1, 0, 1):
            assert found.name == expected


def test_ranges_make_types_smaller() -> None:
    nodes = "c = Clip(x, l, h) " + QUANT.format(signed=1, narrow=0, mode="ROUND").replace(
        "(x", "(c"
    )
    proto = parsed(
        f"(float[N] x) => (float[N] y) {{ {nodes} }}",
        s=floats(1), z=floats(0), b=floats(8), l=floats(0), h=floats(5),
    )  # fmt: skip
    assert type_of(proto) == "uint3"


@pytest.mark.parametrize(
    ("nodes", "name"),
    [
        ("y = q.Quant(x, half, z, b)", "scaled int4"),
        ("t = q.Quant(x, half, z, b) y = Transpose(t)", "scaled int4"),
        ("t = q.Quant(x, half, z, b) y = Relu(t)", None),
        ("y = q.Quant(x, half, k, b)", "scaled int5"),
        ("y = q.Quant(x, s, half, b)", None),
        ("y = q.BipolarQuant(x, s)", "bipolar"),
        ("y = q.BipolarQuant(x, half)", "scaled bipolar"),
        ("t = q.BipolarQuant(x, s) u = Neg(t) y = Mul(t, u)", "bipolar"),
        ("t = q.BipolarQuant(x, s) y = Add(t, t)", "int3"),
        ("y = q.MultiThreshold(x, t15)", "uint4"),
        ("y = q.MultiThreshold<out_scale=2.0, out_bias=-15.0>(x, t15)", "int5"),
        ("y = q.MultiThreshold<out_scale=0.5>(x, t15)", "scaled uint4"),
        ("y = q.MultiThreshold<out_scale=0.5, out_bias=0.5>(x, t15)", None),
        ("t = q.MultiThreshold(x, t15) y = MatMul(t, w)", "int8"),
        ("t = q.Quant(x, s, z, b) y = q.Trunc(t, s, z, b, two)", "int3"),
        ("y = q.Trunc(x, s, z, b, half, z, two)", "scaled int2"),
        ("y = q.Quant(x, s, , b)", None),
        ("y = q.Quant(x, s, z, x)", None),
        ("y = q.Trunc(x, s, z, b, two)", None),
        ("t = q.Quant(x, s, z, b) y = q.Trunc(t, s, z, s, s)", "int5"),
        ("y = q.Quant(x, half, zz, b)", None),
        ("y = q.Quant(x, half, k, s)", "scaled int3"),
        ("y = q.Quant(x, s, k, s)", "int3"),
        ("y = q.Quant(x, s, z, s)", "bipolar"),
        ("y = q.BipolarQuant(x, pm)", "int2"),
        ("y = q.BipolarQuant(x, two)", "int3"),
        ("t = q.BipolarQuant(x, s) y = Transpose(t)", "bipolar"),
        ("t = q.BipolarQuant(x, s) y = Relu(t)", "uint1"),
        ("y = q.MultiThreshold<out_scale=3e38>(x, t15)", None),
        ("y = q.MultiThreshold<out_scale=2.0, out_bias=0.5>(x, t15)", None),
        ("y = q.MultiThreshold<out_scale=0.0, out_bias=0.5>(x, t15)", None),
        ("y = q.MultiThreshold<out_scale=0.5>(x, x)", "scaled uint2"),
        ("t = q.Quant(x, s, z, b) p, y = Split(t)", "int4"),
    ],
)
def test_operators_of_qonnx(nodes: str, name: str | None) -> None:
    weights = {
        "s": floats(1), "half": floats(0.5), "z": floats(0), "b": floats(4), "k": floats(3),
        "two": floats(2), "zz": floats([0, 3]), "pm": floats([1, -1]), "t15": floats(np.arange(15)[None]), "w": floats([[1, -2], [3, -4]]),
    }  # fmt: skip
    used = {each: array for each, array in weights.items() if f" {each}" in nodes}
    proto = parsed(f"(float[N,2] x) => (float[N,M] y) {{ {nodes} }}", 17, **used)
    assert type_of(proto) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("(float[2] x) => (float[2] y) { t = Sign(x) y = Mul(t, t) }", "uint1"),
        ("(float[2] x) => (float[2] y) { y = Round(x) }", None),
        ("(bool[2] x) => (float[2] y) { y = Cast<to=1>(x) }", "uint1"),
        ("(uint8[2] x) => (float[2] y) { y = Cast<to=1>(x) }", "uint8"),
        ("(int8[2] x) => (float[2] y) { y = Cast<to=10>(x) }", None),
        ("(int8[2] x) => (int8[2] y) { y = Relu(x) }", "uint7"),
        (
            "(uint8[2] x) => (float[2] y) <float h = {0.5}> { t = Cast<to=1>(x) y = Mul(t, h) }",
            None,
        ),
        (
            "(uint8[2] x) => (float[2] y) <float h = {-2}> { t = Cast<to=1>(x) y = Mul(t, h) }",
            "int10",
        ),
        (
            "(uint8[2] x) => (float[2] y) <float s = {0.5}, uint8 z = {128}>"
            " { y = DequantizeLinear(x, s, z) }",
            "scaled int8",
        ),
        (
            "(uint8[2] x) => (float[2] y) <float s = {0.5}, uint8 z = {128}>"
            " { y = com.microsoft.DequantizeLinear(x, s, z) }",
            "scaled int8",
        ),
        (
            "(uint8[2] x) => (float[2] y) <float s = {0.5}> { y = DequantizeLinear(x, s) }",
            "scaled uint8",
        ),
        (
            "(uint8[2] x) => (float[2] y) <float s = {2}, uint8 z = {128}>"
            " { y = DequantizeLinear(x, s, z) }",
            "int9",
        ),
        ('(float[2] x) => (string[1] y) <string[1] c = {"a"}> { y = Identity(c) }', None),
        (
            "(bool c, uint4[2] x) => (float[2] y) { y = If(c) <then_branch = g() => (float[2] a)"
            " { a = Cast<to=1>(x) }, else_branch = h() => (float[2] b) { b = Cast<to=1>(x) }> }",
            None,
        ),
    ],
)
def test_standard_operators(text: str, name: str | None) -> None:
    opset = 21 if "uint4" in text or "Relu" in text else 17
    if "to=10" in text:
        text = text.replace("float[2] y", "float16[2] y")
        name = "int8"
    assert found_in(text, opset=opset) == name


def test_attributes_of_old_opsets_are_operands() -> None:
    clip = "(uint8[2] x) => (float[2] y) {{ t = Cast<to=1>(x) y = Clip<min={}, max=9.0>(t) }}"
    assert found_in(clip.format("1.0"), opset=10) == "uint4"
    assert found_in(clip.format("0.5"), opset=10) is None
    pad = "(uint8[2] x) => (float[M] y) {{ t = Cast<to=1>(x) y = Pad<pads=[1,1], value={}>(t) }}"
    assert found_in(pad.format("-1.0"), opset=10) == "int9"
    assert found_in(pad.format("0.5"), opset=10) is None


def test_inputs_that_the_user_declares() -> None:
    text = (
        "(float[N,2] x) => (float[N,2] y) <float[2,2] w = {1,-1,2,3}>"
        " { t = MatMul(x, w) y = Relu(t) }"
    )
    assert found_in(text) is None
    analysis = integer_types.with_inputs(x="int3")
    assert found_in(text, analysis) == "uint4"
    x = floats(list(itertools.product(range(-4, 4), repeat=2)))
    y = run(parse(text, opset=17), {"x": x})["y"]
    assert 0 <= y.min() <= y.max() <= 15
    assert integer_types.with_inputs(x="int3", z="uint2").with_inputs(x="bipolar").inputs == (
        ("x", integer_type("bipolar")),
        ("z", integer_type("uint2")),
    )


@pytest.mark.parametrize(
    ("constant", "name"),
    [
        ("float[3] c = {1,-1,1}", "bipolar"),
        ("float[3] c = {1,-1,0}", "int2"),
        ("float[3] c = {1,1,1}", "uint1"),
        ("float[3] c = {1,2.5,1}", None),
        ("float[3] c = {1,inf,1}", None),
        ("float[3] c = {1,nan,1}", None),
        ("int64[3] c = {1,5,-9}", "int5"),
        ("float[0] c = {}", "uint1"),
    ],
)
def test_constants(constant: str, name: str | None) -> None:
    dtype = constant.partition("[")[0]
    size = constant.partition("[")[2].partition("]")[0]
    text = f"({dtype}[{size}] x) => ({dtype}[{size}] y) <{constant}> {{ y = Add(x, c) }}"
    assert type_of(parse(text, opset=17), "c") == name


def test_a_model_with_its_own_definition_proves_nothing() -> None:
    text = (
        '<ir_version: 8, opset_import: ["": 17, "qonnx.custom_op.general": 1]> g (float[2] x) =>'
        " (float[2] y) <float s = {1}, float z = {0}, float b = {4}>"
        " { y = qonnx.custom_op.general.Quant(x, s, z, b) }"
        ' <domain: "qonnx.custom_op.general", opset_import: ["": 17]>'
        " Quant (x, s, z, b) => (y) { y = Exp(x) }"
    )
    assert found_in(text) is None


def test_what_is_no_constant_of_numbers_has_no_type() -> None:
    proto = parse('(float[2] x, string[1] c = {"a"}) => (float[2] y) { y = Neg(x) }', opset=17)
    assert [type_of(proto, name) for name in ("x", "c", "y")] == [None] * 3
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Neg(x) }"))
    weights = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [1], [7.0])
    places = onnx.helper.make_tensor("", onnx.TensorProto.INT64, [1], [2])
    sparse = model.main.constant(Tensor(onnx.helper.make_sparse_tensor(weights, places, [3])))
    assert model.analysis(integer_types)[sparse] is None


def test_an_operator_that_lacks_operands_has_no_type() -> None:
    for call in (
        "com.microsoft.DequantizeLinear(x)",
        "com.microsoft.DequantizeLinear()",
        "qonnx.custom_op.general.MultiThreshold<out_scale = 0.5>(x)",
        "qonnx.custom_op.general.Quant(x)",
    ):
        text = f"""<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1,
            "qonnx.custom_op.general": 1]> g (uint8[2] x) => (float[2] y) {{ y = {call} }}"""
        assert found_in(text) is None, call
