"""What a change of the opset does to a model, and which IR version it needs."""

import onnx
import pytest

from tests.small import content, ops, parsed, proto
from tiered import Model, PassContext, get_pass
from tiered.graph.edits.opset import (
    EXPANSION,
    check_version,
    convert_ir,
    convert_model,
    convert_root,
    ir_version_for,
)
from tiered.support.errors import ModelError, OpsetError, UsageError
from tiered.support.numerics import Numerics


def trained(op_type: str, domain: str = "") -> Model:
    """Return a model that is trained by one node, which the view leaves alone."""
    made = proto("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    made.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    algorithm = made.training_info.add().algorithm
    algorithm.node.append(onnx.helper.make_node(op_type, ["y"], ["g"], "step", domain=domain))
    return Model.from_proto(made)


def convert(of: Model, to: int) -> None:
    get_pass("convert_opset", to=to).apply(of, PassContext.isolated())


@pytest.mark.parametrize(
    ("op_type", "domain", "to"),
    [
        ("Neg", "", 20),  # as it was since opset 13
        ("Relu", "", 14),
        ("Neg", "com.microsoft", 12),
        ("FusedMatMul", "com.microsoft", 12),
        ("Unheard", "", 20),
    ],
)
def test_a_training_node_that_means_the_same_stays(op_type: str, domain: str, to: int) -> None:
    of = trained(op_type, domain)
    convert(of, to)
    assert of.main.opset() == to
    assert [node.op_type for node in of.training_nodes()] == [op_type]


@pytest.mark.parametrize(("op_type", "to"), [("Neg", 12), ("Gelu", 19), ("Cast", 18)])
def test_a_training_node_that_would_change_blocks(op_type: str, to: int) -> None:
    of = trained(op_type)
    with pytest.raises(OpsetError, match="a node of training_info is not converted") as caught:
        convert(of, to)
    assert [(each.node, each.operator) for each in caught.value.blocked] == [("step", op_type)]
    assert of.main.opset() == 21


NEWEST = onnx.defs.onnx_opset_version()


def test_only_opsets_that_onnx_knows_can_be_asked_for() -> None:
    for version in (0, -1, NEWEST + 1):
        with pytest.raises(UsageError, match=f"there is no opset {version}: .* has opsets 1 to"):
            check_version(version)
    check_version(1)
    check_version(NEWEST)
    of = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }", opset=NEWEST + 1)
    with pytest.raises(ModelError, match=f"has opset {NEWEST + 1}; onnx .* up to {NEWEST}"):
        convert_model(of, 21)


SUMS = "(float[2,3] x) => (float[?] y, float[?] z) {{ y = ReduceSum<axes=[{}]>(x) z = ReduceSum<axes=[{}]>(x) }}"


@pytest.mark.parametrize(("axes", "constants"), [((1, 1), 1), ((0, 1), 2)])
def test_equal_new_constants_are_one_and_go_on_the_way_back(
    axes: tuple[int, int], constants: int
) -> None:
    of = parsed(SUMS.format(*axes), opset=11)
    convert_model(of, 13)
    assert len(of.main.initializers) == constants
    convert_model(of, 11)
    assert not of.main.initializers
    assert [node.attr("axes") for node in of.main.nodes] == [(axes[0],), (axes[1],)]


@pytest.mark.parametrize(
    ("opset", "to", "ir", "expected"),
    [(13, 21, 0, 10), (13, 14, 0, 8), (13, 21, 11, 11), (21, 13, 0, 8), (13, 8, 0, 8)],
)
def test_the_ir_version_is_raised_where_the_opset_needs_it(
    opset: int, to: int, ir: int, expected: int
) -> None:
    header = f'<ir_version: 8, opset_import: ["": {opset}]> g'
    of = parsed(f"{header} (float[2] x) => (float[2] y) {{ y = Relu(x) }}")
    convert_model(of, to, ir=ir)
    assert (of.ir_version, of.main.opset()) == (expected, to)
    assert (ir_version_for(8), ir_version_for(21), ir_version_for(9999)) == (3, 10, onnx.IR_VERSION)


GELU = """<ir_version: 10, opset_import: ["": 21, "l": 1]> g (float[2] x) => (float[2] y) {
    a = Gelu(x) b = Neg(a) y = l.f(b) } <domain: "l", opset_import: ["": 21]>
    f (p) => (q) { q = Gelu(p) }"""


def test_all_nodes_without_a_form_are_named_and_nothing_is_converted() -> None:
    of = parsed(GELU)
    before = content(of)
    with pytest.raises(OpsetError) as caught:
        convert_model(of, 19)
    assert content(of) == before
    found = [(each.node, each.operator, each.graph, each.expands) for each in caught.value.blocked]
    assert found == [("a", "Gelu", "main graph", True), ("q", "Gelu", "function f", False)]
    first = str(caught.value.blocked[0])
    assert first.startswith("main graph: node 'a' (Gelu): opset 19 has no Gelu")
    assert first.endswith(f"; {EXPANSION}")
    alone = parsed("(float[2] x) => (float[2] y) { y = Gelu(x) }")
    convert_model(alone, 19, numerics=Numerics.REASSOCIATING)
    assert "Gelu" not in ops(alone)


def test_one_function_is_converted_alone() -> None:
    of = parsed(GELU)
    with pytest.raises(OpsetError) as caught:
        convert_root(of.functions[0], 19)
    assert [each.expands for each in caught.value.blocked] == [False]
    assert not str(caught.value.blocked[0]).endswith(EXPANSION)
    convert_root(of.functions[0], 20)
    assert (of.functions[0].opset(), of.main.opset()) == (20, 21)
    convert_root(of.functions[0], 20)


IR = '<ir_version: {}, opset_import: ["": 13, "l": 1]> g'
PLAIN = IR.format(8) + " (float[2] x) => (float[2] y) { y = Neg(x) }"
CALL = (
    IR.format(11) + " (float[2] x) => (float[2] y) { y = l.f(x) }"
    ' <domain: "l", opset_import: ["": 13]> f (p) => (q) { q = Neg(p) }'
)
CAST = IR.format(11) + " ({}[2] x) => (float[2] y) {{ y = Cast<to=1>(x) }}"


@pytest.mark.parametrize(
    ("text", "least", "why"),
    [
        (PLAIN, 3, "opset imports"),
        (PLAIN.replace("float[2] y)", "float[2] y) <float c = {1}>").replace("Neg(x)", "Add(x, c)"),
         4, "initializers that are no inputs"),
        (CALL, 8, "local functions"),
        (CAST.format("float8e5m2"), 9, "float8e5m2"),
        (CAST.format("float8e4m3fn"), 9, "float8e4m3fn"),
        (CAST.format("int4"), 10, "int4"),
        (CAST.format("float4e2m1"), 11, "float4e2m1"),
    ],
)  # fmt: skip
def test_the_least_ir_version_of_a_model(text: str, least: int, why: str) -> None:
    of = parsed(text)
    with pytest.raises(
        UsageError, match=f"IR version {least - 1} has no {why}; the model needs {least} or more"
    ):
        convert_ir(of, least - 1)
    convert_ir(of, least)
    assert of.ir_version == least


def test_other_needs_of_an_ir_version() -> None:
    of = parsed(CALL)
    made = of.to_proto()
    made.functions[0].overload = made.graph.node[0].overload = "o"
    with pytest.raises(UsageError, match="IR version 9 has no overloaded functions"):
        convert_ir(Model.from_proto(made), 9)
    fed = parsed(
        IR.format(4) + " (float[2] x, float c) => (float[2] y) <float c = {1}> { y = Add(x, c) }"
    )
    convert_ir(fed, 3)
    assert fed.ir_version == 3
    with pytest.raises(UsageError, match=f"no IR version {onnx.IR_VERSION + 1}: onnx"):
        convert_ir(fed, onnx.IR_VERSION + 1)
    convert_ir(fed, onnx.IR_VERSION)
    mark = fed.mark()
    convert_ir(fed, onnx.IR_VERSION)
    assert fed.mark() == mark
