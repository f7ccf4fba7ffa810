"""A target without floats, before and after quantisation."""

import pytest

from tiered import Backend, DataType, Model, get_backend, optimize_model
from tiered.support.errors import BackendError
from tiered.targets import Bounds, OperatorRule
from tiered.targets.known import table_of
from tiered.targets.quantized import QuantizedDtypes, quantized_dtype
from tiered.targets.reading import backend_of
from tiered.testing import parse

NPU = get_backend("int8_npu")


def in_integers(text: str) -> list[str]:
    """Return the names of the values that the last node needs in integers."""
    model = Model.from_proto(parse(text, opset=18))
    model.refresh_types()
    return [value.name for value in NPU.operands_in_integers(model.main.nodes[-1])]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("(float[2] x, float[2] z) => (float[2] y) { y = Add(x, z) }", ["x", "z", "y"]),
        ("(int8[2] x) => (int8[2] y) { y = Relu(x) }", []),
        ("(int64[2] x) => (int64[2] y) { y = Add(x, x) }", []),
        ("(float[N] x) => (float[N] y) { y = Tanh(x) }", []),
        ("(float[2] x) => (float[2] y) { y = Erf(x) }", []),
        ("(float[4,2] x, int64[1] i) => (float[1,2] y) { y = Gather(x, i) }", ["x", "y"]),
        ("(float[2] x) => (float[2] y) <float p = {-0.5}> { y = Pow(x, p) }", ["x", "y"]),
        ("(float[2] x) => (float[2] y) <float p = {0.5}> { y = Pow(x, p) }", []),
        (
            "(int8[2] q) => (float[2] y) <float s = {1}, int8 z = {0}> "
            "{ x = DequantizeLinear(q, s, z) y = Tanh(x) }",
            ["y"],
        ),
    ],
)
def test_the_table_decides_what_must_be_quantised(text: str, names: list[str]) -> None:
    assert in_integers(text) == names


def test_float_stands_beside_the_dtype_of_the_data_and_beside_constants_alone() -> None:
    dtypes = QuantizedDtypes(DataType.INT8, frozenset({DataType.UINT8, DataType.INT32}))
    sets: dict[frozenset[int], bool] = {
        frozenset(): False,
        frozenset({DataType.INT8}): True,
        frozenset({DataType.INT8, DataType.INT64}): True,
        frozenset({DataType.INT8, DataType.UINT8, DataType.INT32}): True,
        frozenset({DataType.INT32}): True,
        frozenset({DataType.INT32, DataType.INT64}): False,
        frozenset({DataType.INT64}): False,
    }
    for given, gains in sets.items():
        expected = given | {DataType.FLOAT} if gains else given
        assert dtypes.with_float(given) == expected, given


def test_a_rule_without_the_dtype_of_the_data_stays() -> None:
    dtypes = QuantizedDtypes(DataType.INT8, frozenset({DataType.INT32}))
    indices = OperatorRule(types={"Tind": frozenset({DataType.INT32})})
    assert dtypes.floating_rule(indices) is indices
    whole = OperatorRule(
        dtypes=frozenset({DataType.INT8}), types={"B": frozenset({DataType.INT32})}
    )
    assert dtypes.floating_rule(whole) == OperatorRule(
        dtypes=frozenset({DataType.INT8, DataType.FLOAT}),
        types={"B": frozenset({DataType.INT32, DataType.FLOAT})},
    )


def test_the_dtype_in_a_qdq_unit_is_that_beside_it() -> None:
    model = Model.from_proto(
        parse(
            """(int8[2] x, float[2] f) => (q, k, z, w, v) <float s = {1}, uint8 p = {0}> {
                d = DequantizeLinear(x, s)  y = Relu(d)  q = QuantizeLinear(y, s, p)
                r = Relu(d)  k = QuantizeLinear(r, s, p)
                z = Relu(f)  e = Relu(y)  w = Neg(f)  v = Cast<to=3>(e) }"""
        )
    )
    found = {
        node.output.name: (
            [quantized_dtype(value, is_input=True) for value in node.inputs[:1] if value],
            quantized_dtype(node.output, is_input=False),
        )
        for node in model.main.nodes
    }
    assert found == {
        "d": ([None], None), "y": ([DataType.INT8], None), "q": ([None], None),
        "r": ([DataType.INT8], DataType.UINT8), "k": ([None], None),
        "z": ([None], None), "e": ([None], None), "w": ([None], None), "v": ([None], None),
    }  # fmt: skip


def test_before_quantization_floats_stand_for_integers() -> None:
    floating = NPU.before_quantization
    assert not NPU.computes_floats
    assert floating.computes_floats
    assert floating.supports("Conv", dtype=DataType.FLOAT)
    assert not floating.supports("Erf", dtype=DataType.FLOAT)
    (rule,) = floating.rules("Conv")
    assert {key: DataType.FLOAT in dtypes for key, dtypes in rule.types.items()} == {
        "X": True,
        "W": True,
        "B": True,
        "Y": True,
    }
    (gather,) = floating.rules("Gather")
    assert DataType.FLOAT not in gather.types["Tind"]


def test_a_target_with_floats_needs_no_integers() -> None:
    target = Backend(name="both", operators={("", "Relu"): (OperatorRule(),)})
    assert target.computes_floats
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Relu(x) }"))
    assert target.operands_in_integers(model.main.nodes[0]) == ()


def test_elements_have_bounds_with_fractions() -> None:
    rule = NPU.rules("Pow")[0]
    assert rule.elements == {"Y": Bounds(-0.5, -0.5)}
    model = Model.from_proto(
        parse("(int8[2] x) => (int8[2] y) <float p = {0.5}> { y = Pow(x, p) }", opset=18)
    )
    assert "Y holds 0.5; it takes -0.5" in map(str, NPU.refusals(model.main.nodes[0]))


def test_other_bounds_are_integers() -> None:
    with pytest.raises(BackendError, match="expected"):
        backend_of({"api_version": 1, "name": "t", "max_rank": 4, "opset": [1.5, 2]}, "t", table_of)


@pytest.mark.parametrize("opset", [13, 19, 21, 23, 24])
@pytest.mark.parametrize("name", ["int8_npu", "tensorrt", "qnn_htp", "nhwc_edge"])
def test_scales_are_floats_whatever_their_type_parameter_is_called(name: str, opset: int) -> None:
    text = """(float[2,8] x) => (float[2,8] y) <float s = {0.5}, int8 z = {0}>
        { q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z) }"""
    found = get_backend(name).coverage(Model.from_proto(parse(text, opset=opset)))
    assert found.is_met, found.gaps


@pytest.mark.parametrize(
    "text",
    [
        "(float[2,8] x) => (float[2,8] y) <float[8] s = {1,2,3,4,5,6,7,8}>"
        " { y = RMSNormalization(x, s) }",
        "(float[1,2,3,8] x, float[1,3,2] c, float[1,3,2] s) => (float[1,2,3,8] y)"
        " { y = RotaryEmbedding<rotary_embedding_dim=4>(x, c, s) }",
        "(float[1,2,3,8] x, float[1,3,4] c, float[1,3,4] s) => (float[1,2,3,8] y)"
        " { y = RotaryEmbedding(x, c, s) }",
        "(float[1,3,16] x, float[1,3,4] c, float[1,3,4] s) => (float[1,3,16] y)"
        " { y = RotaryEmbedding<num_heads=2>(x, c, s) }",
        "(float[1,2,3,8] x, float[8,8] w, float[1,3,4] c, float[1,3,4] s) => (float[1,2,3,8] y)"
        " { m = MatMul(x, w)  y = RotaryEmbedding(m, c, s) }",
    ],
    ids=[
        "RMSNormalization",
        "RotaryEmbedding of a part",
        "RotaryEmbedding",
        "of 3 axes",
        "of a product",
    ],
)
def test_what_opset_23_brought_is_taken_in_integers_too(text: str) -> None:
    result = optimize_model(
        parse(text, opset=23), backend="int8_npu", opt_level=3, required=["quantize"]
    )
    assert NPU.coverage(result.model).is_met


@pytest.mark.parametrize("name", ["portable13", "ipu"])
@pytest.mark.parametrize(
    "text",
    [
        "(float[2,4,8] x, float[4,8] s) => (float[2,4,8] y)"
        " { y = RMSNormalization<axis=1, epsilon=0.01>(x, s) }",
        "(float[1,3,16] x, float[1,3,4] c, float[1,3,4] s) => (float[1,3,16] y)"
        " { y = RotaryEmbedding<num_heads=2>(x, c, s) }",
    ],
    ids=["RMSNormalization", "RotaryEmbedding"],
)
def test_what_opset_23_brought_is_taken_at_old_opsets(name: str, text: str) -> None:
    result = optimize_model(parse(text, opset=23), backend=name, opt_level=3)
    assert get_backend(name).coverage(result.model).is_met


UNIT = """(float[1,4] x) => (float[1,4] y)
<float s = {{0.5}}, {0} z = {{0}}, int8[4,4] w = {{0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}},
 int8 zero = {{0}}> {{
    q = QuantizeLinear(x, s, z)  a = DequantizeLinear(q, s, z)
    b = DequantizeLinear(w, s, zero)  c = MatMul(a, b)
    r = QuantizeLinear(c, s, z)  y = DequantizeLinear(r, s, z) }}"""


def _chip(form: str, rule: object = True) -> Backend:
    table = {
        "api_version": 1,
        "name": "chip",
        "dtypes": {"activations": ["int8"], "weights": ["int8", "int32"]},
        "quantization": {"form": form},
        "operators": {"QuantizeLinear, DequantizeLinear": rule, "MatMul": True},
    }
    return backend_of(table, "chip.toml", table_of)


def test_the_floats_of_q_and_dq_are_no_data_of_a_target_of_units() -> None:
    model = Model.from_proto(parse(UNIT.format("int8"), opset=13))
    model.refresh_types()
    assert _chip("qdq").coverage(model).is_met
    refused = _chip("none").coverage(model).refused
    assert refused["QuantizeLinear"] == 2
    assert refused["MatMul"] == 1


def test_the_integers_of_q_and_dq_count() -> None:
    model = Model.from_proto(parse(UNIT.format("uint8"), opset=13))
    model.refresh_types()
    gaps = [str(gap) for gap in _chip("qdq").coverage(model).gaps]
    assert "QuantizeLinear: y is uint8; it takes int8" in gaps
    assert "DequantizeLinear: x is uint8; it takes int8" in gaps


def test_dtypes_of_a_rule_of_q_and_dq_are_about_all_operands() -> None:
    model = Model.from_proto(parse(UNIT.format("int8"), opset=13))
    model.refresh_types()
    refused = _chip("qdq", {"dtypes": ["int8", "int32"]}).coverage(model).refused
    assert refused["QuantizeLinear"] == 2
