"""Rules: bounds, texts, operands by name, and each condition that a node violates."""

import pytest

from tiered import DataType, Model, Node, Value
from tiered.targets.operator_rule import (
    AttributeRule,
    Bounds,
    Operand,
    OperatorRule,
    data_parameter,
    holds_constant,
    operand_names,
    operands_of,
    parameter_names,
    refusals,
    type_keys,
)
from tiered.testing import parse

FLOAT, HALF = frozenset({DataType.FLOAT}), frozenset({DataType.FLOAT16})
NO_SIGNATURE = ((), ())


@pytest.mark.parametrize(
    ("bounds", "number", "nearest"),
    [
        (Bounds(), 7, 7),
        (Bounds(9), 7, 9),
        (Bounds(9), 12, 12),
        (Bounds(None, 9), 12, 9),
        (Bounds(9, 13), 7, 9),
        (Bounds(9, 13), 11, 11),
        (Bounds(9, 13), 17, 13),
    ],
)
def test_the_nearest_number_is_within_the_bounds(bounds: Bounds, number: int, nearest: int) -> None:
    assert bounds.nearest(number) == nearest
    assert bounds.holds(nearest)
    assert bounds.holds(number) is (nearest == number)


def test_an_attribute_is_in_a_list_or_integers_within_bounds() -> None:
    one_of = AttributeRule(values=("NOTSET", (1, 1)))
    assert [one_of.holds(value) for value in ("NOTSET", (1, 1), "VALID", 1)] == [
        True, True, False, False,
    ]  # fmt: skip
    assert one_of.takes == ("NOTSET", "[1,1]")
    small = AttributeRule(bounds=Bounds(0, 2))
    assert [small.holds(value) for value in (2, (0, 2), (), 3, (0, 3), 1.0, "a")] == [
        True, True, True, False, False, False, False,
    ]  # fmt: skip
    assert small.takes == ("0 to 2",)


CONDITIONS = {
    "version 1 to 11": OperatorRule(versions=Bounds(1, 11)),
    "opset 13 or more": OperatorRule(opset=Bounds(13)),
    "T: float": OperatorRule(types={"T": FLOAT}),
    "float16": OperatorRule(dtypes=HALF),
    "rank 3": OperatorRule(rank=Bounds(3, 3)),
    "constant W, B": OperatorRule(constant=("W", "B")),
    "W holds at most 3": OperatorRule(elements={"W": Bounds(None, 3)}),
    "group=1 2": OperatorRule(attributes={"group": AttributeRule(values=(1, 2))}),
    "not in a QDQ unit": OperatorRule(in_qdq=False),
}


def test_a_rule_without_conditions_takes_every_node() -> None:
    assert OperatorRule().is_unconditional
    assert OperatorRule(composite=True, slow=True, exact=True, note="a").is_unconditional
    for said, rule in CONDITIONS.items():
        assert not rule.is_unconditional, said


def test_a_rule_is_shown_by_what_it_asks_for() -> None:
    assert {said: str(rule) for said, rule in CONDITIONS.items()} == {
        said: said for said in CONDITIONS
    }
    assert str(OperatorRule()) == "any"
    assert str(OperatorRule(rank=Bounds(2), composite=True, slow=True, note="table 3")) == (
        "rank 2 or more; runs as its function body; slow; table 3"
    )


def test_the_dtypes_of_the_data_are_those_of_the_rule_or_of_its_first_type_parameter() -> None:
    assert OperatorRule().data_dtypes() == frozenset()
    assert OperatorRule(types={"I": HALF, "T": FLOAT}).data_dtypes() == FLOAT
    assert OperatorRule(types={"I": HALF, "T1": FLOAT}).data_dtypes() == FLOAT
    assert OperatorRule(types={"I": HALF, "J": FLOAT}).data_dtypes() == HALF
    assert OperatorRule(types={"T": FLOAT}, dtypes=HALF).data_dtypes() == HALF


def test_operands_and_type_parameters_are_known_in_all_versions() -> None:
    # Pow has T alone before opset 12, and T and T1 since then.
    assert parameter_names("Pow", "")[True, 1] == {"T", "T1"}
    assert type_keys("Pow", "") == {"X", "Y", "Z", "T", "T1"}
    assert "tensor(int64)" not in type_keys("Shape", "")
    assert operand_names("Pow", "") == ("X", "Y")
    assert (parameter_names("Gate", "own"), operand_names("Gate", "own")) == ({}, ())


def node_of(text: str, opset: int = 21) -> Node:
    """Return the last node of a model."""
    return Model.from_proto(parse(text, opset=opset)).main.nodes[-1]


def given(node: Node) -> list[Value]:
    return [value for value in node.inputs if value is not None]


def test_operands_have_the_names_of_the_schema_or_of_the_signature() -> None:
    def named(node: Node, signature: tuple[tuple[str, ...], tuple[str, ...]]) -> list[object]:
        return [(each.name, each.parameter, each.is_input) for each in operands_of(node, signature)]

    clip = node_of("(float[2] x, float m) => (float[2] y) { y = Clip(x, , m) }")
    assert named(clip, NO_SIGNATURE) == [
        ("input", "T", True), ("max", "T", True), ("output", "T", False),
    ]  # fmt: skip
    concat = node_of("(float[2] x) => (float[6] y) { y = Concat<axis=0>(x, x, x) }")
    assert [each.name for each in operands_of(concat, NO_SIGNATURE)] == [
        "inputs", "inputs", "inputs", "concat_result",
    ]  # fmt: skip
    assert {each.other_parameters for each in operands_of(concat, NO_SIGNATURE)} == {
        frozenset({"T"})
    }
    own = node_of("(float[2] x) => (float[2] y) { y = own.Gate(x, x) }")
    assert named(own, (("a:S", "b:T"), ("c",))) == [
        ("a", "S", True), ("b", "T", True), ("c", "", False),
    ]  # fmt: skip
    assert named(own, NO_SIGNATURE) == [("#0", "", True), ("#1", "", True), ("#0", "", False)]


def test_data_is_of_the_parameter_t_or_that_of_the_first_operand() -> None:
    value = node_of("(float[2] x) => (float[2] y) { y = Relu(x) }").output

    def of(*parameters: str) -> str:
        return data_parameter(Operand(value, "x", each, True) for each in parameters)

    assert (of("S", "T"), of("S", "R"), of("tensor(int64)", "R"), of()) == ("T", "S", "R", "")


@pytest.mark.parametrize(
    ("producer", "expected"),
    [
        ("w = DequantizeLinear(q, s)", True),
        ("w = DequantizeLinear(q, s, z)", True),
        ("w = DequantizeLinear(q, t)", False),
        ("w = Cast<to=1>(q)", False),
        ("w = Constant<value = float {2.0}> ()", True),
    ],
)
def test_a_dequantised_constant_is_held_too(producer: str, expected: bool) -> None:
    node = node_of(
        "(float[2] x, float t) => (float[2] y) <int8 q = {1}, float s = {2.0}, int8 z = {0}> "
        f"{{ {producer} y = Mul(x, w) }}"
    )
    assert [holds_constant(value) for value in given(node)] == [False, expected]
    operands = operands_of(node, NO_SIGNATURE)
    assert [operand.is_constant for operand in operands] == [False, expected, False]
    only = node_of("(float[2] x) => (float y) { y = Constant<value = float {2.0}> () }")
    assert not operands_of(only, NO_SIGNATURE)[0].is_constant


def test_an_absent_zero_point_is_constant() -> None:
    text = "(float x) => (float w) <int8 q = {1}, float s = {2.0}> { w = DequantizeLinear(q, s) }"
    proto = parse(text, opset=21)
    proto.graph.node[0].input.append("")
    assert holds_constant(Model.from_proto(proto).main.nodes[0].output)


CONV = "(float[1,1,4,4] x, float[1,1,1,1] w) => (float[1,1,4,4] y) { y = Conv<group=1>(x, w) }"
GATHER = "(float[2] x) => (float[n] y) <int64[2] i = {-1, 1}> { y = Gather(x, i) }"
QDQ = """(uint8[2] x, float[2] t) => (uint8[2] z, float[2] y) <float s = {1.0}, uint8 p = {0}> {
    d = DequantizeLinear(x, s, p)  r = Relu(d)  z = QuantizeLinear(r, s, p)  y = Relu(t) }"""


def test_a_node_is_refused_for_each_condition_that_it_violates() -> None:
    def refused(text: str, **conditions: object) -> list[str]:
        found = refusals(OperatorRule(**conditions), node_of(text))  # type: ignore[arg-type]  # of any type
        return list(map(str, found))

    assert refused(CONV, versions=Bounds(11, 22), opset=Bounds(21), constant=("B",)) == []
    assert refused(CONV, versions=Bounds(12)) == [
        "version 11 of the operator; it takes version 12 or more"
    ]
    assert refused(CONV, opset=Bounds(22)) == ["opset 21; it takes opset 22 or more"]
    assert refused(CONV, attributes={"group": AttributeRule(bounds=Bounds(2))}) == [
        "group is 1; it takes 2 or more"
    ]
    assert refused(CONV, attributes={"strides": AttributeRule(bounds=Bounds(2))}) == []
    assert refused(CONV, attributes={"group": AttributeRule(bounds=Bounds(1))}) == []
    assert refused(CONV, constant=("W",)) == ["W is not a constant"]
    assert refused(GATHER, constant=("indices",)) == []
    own = CONV.replace("Conv<group=1>", "own.Gate")
    signature = ("a:T", "b:T"), ()
    assert refused(own, constant=("b",), signature=signature) == ["b is not a constant"]
    assert refused(CONV, elements={"W": Bounds(0), "B": Bounds(0)}) == []
    assert refused(GATHER, elements={"indices": Bounds(-1, 1)}) == []
    assert refused(GATHER, elements={"indices": Bounds(-2, 0)}) == [
        "indices holds 1; it takes -2 to 0"
    ]
    assert refused(GATHER, elements={"indices": Bounds(0)}) == [
        "indices holds -1; it takes 0 or more"
    ]
    empty = GATHER.replace("int64[2] i = {-1, 1}", "int64[0] i = {}")
    assert refused(empty, elements={"indices": Bounds(0)}) == []


def test_an_operator_newer_than_the_opset_needs_a_rule_of_its_versions() -> None:
    scale = "<float[2] s = {1, 2}> { y = LayerNormalization(x, s) }"
    node = node_of(f"(float[2] x) => (float[2] y) {scale}", 13)

    def refused(versions: Bounds) -> list[str]:
        return list(map(str, refusals(OperatorRule(versions=versions), node)))

    assert refused(Bounds()) == [
        "ONNX has LayerNormalization from opset 17 on; the model's opset is 13"
    ]
    assert refused(Bounds(14)) == ["version 13 of the operator; it takes version 14 or more"]
    assert refused(Bounds(13)) == []


def test_a_node_without_its_first_result_is_in_no_qdq_unit() -> None:
    quantized = "(uint8[2] x) => (float[2] y) <float s = {1.0}, uint8 p = {0}>"
    node = node_of(f"{quantized} {{ d = DequantizeLinear(x, s, p)  , y = own.F(d) }}")
    assert list(refusals(OperatorRule(in_qdq=False), node)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("r = Relu(d)", "r = Relu(t)"),  # no DequantizeLinear
        ("r = Relu(d)", "e = Relu(d)  r = Relu(e)"),
        ("y = Relu(t)", "y = Relu(r)"),  # another reader
        ("uint8[2] z, float[2] y", "uint8[2] z, float[2] y, float[2] r"),
        ("uint8[2] z, float[2] y", "float[2] y, float[2] r"),
        ("z = QuantizeLinear(r, s, p)  y", "y"),  # no reader
        ("uint8", "uint16"),
        ("r = Relu(d)", "r = RandomNormal<shape = [2]>()"),
        ("d = DequantizeLinear(x, s, p)", "d = Cast<to=1>(x)"),
        ("float[2] y", "uint8[2] y, float[2] r0"),
    ],
)
def test_a_qdq_unit_is_8_bit_data_from_dequantize_to_quantize(old: str, new: str) -> None:
    text = QDQ.replace(old, new) if old else QDQ
    text = text.replace("y = Relu(t)", "y = Cast<to=2>(r)  r0 = Relu(t)") if "r0" in text else text
    text = text.replace("uint8[2] z, ", "") if "QuantizeLinear(r" not in text else text
    model = Model.from_proto(parse(text, opset=21))
    node = next(node for node in model.main.nodes if "r" in node.proto.output)
    rule = OperatorRule(in_qdq=False)
    assert list(map(str, refusals(rule, node))) == ([] if old else ["it is in a QDQ unit"])
    assert list(refusals(OperatorRule(), node)) == []
