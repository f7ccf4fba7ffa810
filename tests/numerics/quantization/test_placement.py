"""QuantizeLinear and DequantizeLinear where a plan has them, and how weights are stored."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest

from tests.small import made_by, named, ops, parsed
from tiered import DataType, Model, Node, Value
from tiered.numerics.quantization.placement import (
    PlacedUnit,
    axis_attribute,
    channel_axis,
    dequantized,
    insert_pair,
    insert_pair_before_output,
    place,
)
from tiered.numerics.quantization.quantization_plan import QuantizationPlan, Unit, plan_of
from tiered.numerics.quantization.scales import Parameters, Weight
from tiered.numerics.quantization.scheme import Scheme
from tiered.runtime import Session

DATA = Parameters(0.5, 10, DataType.UINT8)


def numbers(count: int) -> str:
    return "{" + ",".join(str(at % 7 - 3) for at in range(count)) + "}"


@pytest.mark.parametrize(
    ("line", "slot", "rank", "axis"),
    [
        ("Conv(x, w)", 1, 4, 0),
        ("ConvTranspose(x, w)", 1, 4, 1),
        ("ConvTranspose<group=2>(x, w)", 1, 4, None),
        ("MatMul(x, w)", 1, 2, 1),
        ("MatMul(x, w)", 1, 3, None),
        ("MatMul(x, w)", 1, 1, None),
        ("MatMul(x, w)", 0, 2, None),
        ("Gemm(x, w)", 1, 2, 1),
        ("Gemm<transB=1>(x, w)", 1, 2, 0),
        ("Gemm<transA=1>(x, w)", 0, 2, None),
    ],
)
def test_the_channels_of_a_weight_are_those_of_the_result(
    line: str, slot: int, rank: int, axis: int | None
) -> None:
    node = made_by(parsed(f"(float[2,2] x, float[2,2] w) => (float y) {{ y = {line} }}"), "y")
    assert channel_axis(node, slot, rank) == axis


def test_one_scale_has_no_axis() -> None:
    assert axis_attribute(None) == {}
    assert axis_attribute(0) == {"axis": 0}


# --- a pair ---------------------------------------------------------------------------------------


def test_some_uses_of_a_value_read_it_from_a_pair() -> None:
    model = parsed("(float[2] x) => (float[2] y, float[2] z) { y = Neg(x)  z = Abs(x) }")
    x = named(model, "x")
    uses = [use for use in x.users if use.node.is_op("Neg")]
    insert_pair(x, uses, np.array(0.5, np.float32), np.array(3, np.uint8))
    model.check_view(types=True)
    operand = made_by(model, "y").inputs[0]
    assert operand is not None
    dequantize = operand.producer
    assert dequantize is not None
    assert dequantize.name == "x_DequantizeLinear"
    assert "axis" not in dequantize.attributes
    assert made_by(model, "z").inputs[0] is x
    found = Session(model.to_proto()).run({"x": np.array([0.6, -5], np.float32)})
    assert found["y"].tolist() == [-0.5, 1.5]  # below 0 - 3 steps is clipped
    assert found["z"].tolist() == [np.float32(0.6), 5]


def test_a_pair_has_scales_along_an_axis() -> None:
    model = parsed("(float[2,2] x) => (float[2,2] y) { y = Neg(x) }")
    x = named(model, "x")
    insert_pair(x, list(x.users), np.array([1, 2], np.float32), np.zeros(2, np.int8), 1)
    for node in model.main.nodes_of("QuantizeLinear"):
        assert node.attr("axis") == 1
    found = Session(model.to_proto()).run({"x": np.full((2, 2), 3.2, np.float32)})
    assert found["y"].tolist() == [[-3, -4]] * 2


def test_an_output_becomes_the_result_of_a_pair_with_all_its_uses() -> None:
    model = parsed("(float[2] x) => (float[2] y, float[2] z) { y = Neg(x)  z = Abs(y) }")
    insert_pair_before_output(named(model, "y"), np.array(0.5, np.float32), np.array(9, np.uint8))
    model.check_view(types=True)
    assert made_by(model, "y").op_type == "DequantizeLinear"
    assert made_by(model, "z").inputs[0] is named(model, "y")
    assert sorted(ops(model)) == ["Abs", "DequantizeLinear", "Neg", "QuantizeLinear"]


def test_a_constant_is_dequantised() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
    codes: Any = np.array([[1, 2], [3, 4]], np.int8)
    scales: Any = np.array([1, 2], np.float32)
    made = dequantized(model.main, "w", Weight(codes, scales, np.zeros(2, np.int8), 0))
    node = made.producer
    assert node is not None
    assert (node.op_type, node.attr("axis"), node.name) == (
        "DequantizeLinear", 0, "w_DequantizeLinear",
    )  # fmt: skip
    assert [value.name for value in node.inputs if value] == [
        "w_quantized", "w_scale", "w_zero_point",
    ]  # fmt: skip


# --- a plan ---------------------------------------------------------------------------------------

GEMM = f"""(float[2,3] x) => (float[2,4] y)
    <float[3,4] w = {numbers(12)}, float[4] b = {{1,2,3,4}}> {{
    y = Gemm(x, w, b) }}"""


def placed(
    text: str, scheme: Scheme | None = None, values: Sequence[str] = ("x",), opset: int = 21
) -> tuple[Model, dict[str, PlacedUnit], QuantizationPlan]:
    model = parsed(text, opset=opset)
    scheme = scheme or Scheme()
    plan = plan_of(model, scheme)
    parameters = dict.fromkeys(plan.pairs, DATA)
    assert {value.name for value in parameters} >= set(values)
    stored = place(model, plan, scheme, parameters)
    model.check_view(types=True)
    return model, stored, plan


def operand(node: Node, slot: int) -> Node:
    value = node.inputs[slot]
    assert value is not None
    assert value.producer is not None
    return value.producer


def array(node: Node, slot: int) -> Any:
    value = node.inputs[slot]
    assert value is not None
    assert value.const is not None
    return value.const


def test_a_product_reads_data_a_weight_and_a_bias_from_integers() -> None:
    model, stored, _ = placed(GEMM)
    gemm = model.main.nodes_of("Gemm")[0]
    data, weight, bias = (operand(gemm, slot) for slot in range(3))
    assert (array(data, 1), array(data, 2)) == (np.float32(0.5), 10)
    # The largest magnitude of each column is 127 steps.
    w = np.array([at % 7 - 3 for at in range(12)], np.float32).reshape(3, 4)
    scales = np.abs(w).max(0) / 127
    np.testing.assert_allclose(array(weight, 1), scales, rtol=1e-6)
    np.testing.assert_array_equal(array(weight, 0), np.rint(w / scales))
    assert weight.attr("axis") == 1
    # A step of the bias is one of the data by one of the weight.
    np.testing.assert_allclose(array(bias, 1), scales * 0.5, rtol=1e-6)
    assert array(bias, 0).dtype == np.int32
    np.testing.assert_array_equal(array(bias, 0), np.rint([1, 2, 3, 4] / (scales * 0.5)))
    assert bias.attr("axis") == 0
    ((name, found),) = stored.items()
    assert name == "y"
    assert (found.dtypes, found.data) == (("uint8", "int8"), (DATA,))
    np.testing.assert_allclose(found.scales, scales, rtol=1e-6)


@pytest.mark.parametrize(
    "scheme", [Scheme(per_channel=False), Scheme(per_tensor=frozenset({"Gemm"}))]
)
def test_one_scale_for_a_weight_is_one_for_its_bias(scheme: Scheme) -> None:
    model, stored, _ = placed(GEMM, scheme)
    gemm = model.main.nodes_of("Gemm")[0]
    weight, bias = operand(gemm, 1), operand(gemm, 2)
    assert array(weight, 1).shape == array(bias, 1).shape == ()
    assert "axis" not in weight.attributes
    assert len(stored["y"].scales) == 1


def test_before_opset_13_a_weight_has_one_scale() -> None:
    model, _, _ = placed(GEMM, opset=12)
    assert array(operand(model.main.nodes_of("Gemm")[0], 1), 1).shape == ()


def test_unsigned_weights_have_a_zero_point() -> None:
    model, stored, _ = placed(GEMM, Scheme(unsigned_weights=frozenset({"Gemm"})))
    weight = operand(model.main.nodes_of("Gemm")[0], 1)
    assert array(weight, 0).dtype == np.uint8
    assert stored["y"].dtypes == ("uint8", "uint8")


def test_a_weight_and_a_bias_of_equal_products_are_stored_once() -> None:
    text = f"""(float[2,3] x) => (float[2,4] y, float[2,4] z)
        <float[3,4] w = {numbers(12)}, float[4] b = {{1,2,3,4}}> {{
        y = Gemm(x, w, b)  z = Gemm(x, w, b) }}"""
    model, stored, _ = placed(text)
    first, second = model.main.nodes_of("Gemm")
    assert first.inputs == second.inputs
    assert set(stored) == {"y", "z"}
    assert len(model.main.nodes_of("QuantizeLinear")) == 1


def test_a_weight_that_two_products_read_along_other_axes_is_stored_twice() -> None:
    text = f"""(float[2,4] x) => (float[2,4] y, float[2,4] z) <float[4,4] w = {numbers(16)}> {{
        y = Gemm(x, w)  z = Gemm<transB=1>(x, w) }}"""
    model, _, _ = placed(text)
    first, second = model.main.nodes_of("Gemm")
    assert [operand(node, 1).attr("axis") for node in (first, second)] == [1, 0]


def test_data_of_two_operands_has_no_weight() -> None:
    text = "(float[2,3] x, float[3,4] z) => (float[2,4] y) { y = MatMul(x, z) }"
    _, stored, _ = placed(text, values=("x", "z"))
    assert stored == {"y": PlacedUnit(("uint8", "uint8"), (DATA, DATA), ())}


def test_an_input_that_is_an_output_too_is_rounded_for_its_readers_only() -> None:
    model = parsed("(float[2] x) => (float[2] y, float[2] x) { y = Neg(x) }")
    x, node = named(model, "x"), made_by(model, "y")
    plan = QuantizationPlan([], [], pairs={x: {node: None}})
    place(model, plan, Scheme(in_integers=lambda node: ()), {x: DATA})
    model.check_view(types=True)
    assert operand(node, 0).op_type == "DequantizeLinear"
    assert x.is_graph_output
    assert x.producer is None


def test_a_result_that_is_no_output_has_a_pair_for_its_readers() -> None:
    model = parsed("(float[2] x) => (float[2] y) { a = Neg(x)  y = Abs(a) }")
    a, node = named(model, "a"), made_by(model, "y")
    plan = QuantizationPlan([], [], pairs={a: {node: None}})
    place(model, plan, Scheme(in_integers=lambda node: ()), {a: DATA})
    assert (made_by(model, "a").op_type, operand(node, 0).op_type) == ("Neg", "DequantizeLinear")


def test_only_weights_on_the_right_are_rounded_by_what_they_multiply() -> None:
    asked = list[str]()

    class Rounding:
        def of(self, node: Node, value: Value, weight: Weight, orders: object) -> Weight:
            asked.append(value.name)
            return weight._replace(codes=weight.codes * 0)

    text = f"""(float[2,3] x) => (float[A,B] y, float[A,B] z) <float[3,4] w = {numbers(12)},
        float[4,2] l = {numbers(8)}> {{ y = MatMul(x, w)  z = MatMul(l, x) }}"""
    model = parsed(text)
    plan = plan_of(model, Scheme())
    rounding = cast("Any", Rounding())
    place(model, plan, Scheme(), dict.fromkeys(plan.pairs, DATA), rounding)
    assert asked == ["w"]
    right, left = operand(made_by(model, "y"), 1), operand(made_by(model, "z"), 0)
    assert not array(right, 0).any()
    assert array(left, 0).any()


def test_signed_weights_are_limited_where_pairs_saturate() -> None:
    text = """(float[2,4] x) => (float[2,2] y) <float[4,2] w = {9,9,9,8,8,9,9,9}> {
        y = MatMul(x, w) }"""
    unsigned = frozenset({"MatMul"})
    for scheme, is_limited in (
        (Scheme(keeps_pairs=True), True),
        (Scheme(), False),
        (Scheme(keeps_pairs=True, unsigned_weights=unsigned), False),
    ):
        model, _, _ = placed(text, scheme)
        stored = operand(made_by(model, "y"), 1)
        codes = array(stored, 0).astype(int) - (128 if scheme.unsigned_weights else 0)
        assert (np.abs(codes[0::2] + codes[1::2]).max() <= 128) == is_limited


def test_a_bias_may_need_larger_scales_of_a_weight() -> None:
    text = """(float[2,2] x) => (float[2,2] y) <float[2,2] w = {1e-9,1,1e-9,1},
        float[2] b = {9,9}> { y = Gemm(x, w, b) }"""
    scales = []
    for scheme in (Scheme(), Scheme(per_tensor=frozenset({"Gemm"}))):
        model, stored, _ = placed(text, scheme)
        scales.append(len(stored["y"].scales))
        assert np.abs(array(operand(made_by(model, "y"), 2), 0).astype(np.int64)).max() < 1 << 31
    assert scales == [2, 1]


def test_a_constant_that_gets_a_pair_is_stored_in_integers() -> None:
    model = parsed("(float[2] x) => (float[2] y) <float[2] k = {1,2}> { y = Add(x, k) }")
    k, node = named(model, "k"), made_by(model, "y")
    plan = QuantizationPlan([], [], pairs={k: {node: None}})
    place(model, plan, Scheme(), {k: DATA})
    stored = operand(node, 1)
    assert stored.op_type == "DequantizeLinear"
    assert array(stored, 0).tolist() == [12, 14]  # 1 / 0.5 + 10
    assert "QuantizeLinear" not in ops(model)


def test_outputs_of_a_target_of_integers_are_results_of_pairs() -> None:
    text = "(float[2] x) => (float[2] y) { y = Neg(x) }"
    for in_integers, last in ((None, "Neg"), (lambda node: (), "DequantizeLinear")):
        model = parsed(text)
        y = named(model, "y")
        plan = QuantizationPlan([], [], pairs={y: {}})
        place(model, plan, Scheme(in_integers=in_integers), {y: DATA})
        assert made_by(model, "y").op_type == last


@pytest.mark.parametrize(("sign", "op_type", "code"), [(1, "Max", 11), (-1, "Min", 9)])
def test_numbers_that_must_not_become_0_are_one_step_away(
    sign: int, op_type: str, code: int
) -> None:
    model = parsed("(float[2] x) => (float[2] y) { a = Neg(x)  y = Reciprocal(a) }")
    a, node = named(model, "a"), made_by(model, "y")
    plan = QuantizationPlan([], [], pairs={a: {node: None}}, floors={a: sign, named(model, "x"): 1})
    place(model, plan, Scheme(), {a: DATA})
    model.check_view(types=True)
    raised = operand(operand(node, 0), 0)
    assert raised.op_type == "QuantizeLinear"
    bound = operand(raised, 0)
    assert bound.op_type == op_type
    assert array(operand(bound, 1), 0) == code
    x = np.array([0.1, -0.1], np.float32)
    found = Session(model.to_proto()).run({"x": x})["y"]
    assert found.tolist() == [1 / (0.5 * sign)] * 2


def test_a_unit_with_one_data_operand_has_no_other_scale() -> None:
    model = parsed(GEMM)
    node = made_by(model, "y")
    unit = Unit(node, {0: "data", 1: "weight"})
    stored = place(model, QuantizationPlan([unit], []), Scheme(), {named(model, "x"): DATA})
    assert stored["y"].data == (DATA,)
    assert node.inputs[2] is named(model, "b")  # the bias stays float
