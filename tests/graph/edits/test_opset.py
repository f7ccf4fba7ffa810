"""What a change of the opset does to a model, and which IR version it needs."""

import numpy as np
import onnx
import pytest

from tests.small import content, ops, parsed, proto
from tiered import Model, PassContext, get_pass
from tiered.graph.edits.opset import (
    EXPANSION,
    _allow_constant,
    check_version,
    convert_ir,
    convert_model,
    convert_root,
    ir_version_for,
)
from tiered.graph.opset.adapter import detached
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


CONVERTED: dict[tuple[int, int], tuple[str, str]] = {
    (11, 13): ("y = ReduceSum<axes=[1], keepdims=0>(x)", "[] ReduceSum{'keepdims': 0}(x, axes) <one, half, scales, shape, pads, unused, axes> SET_OPSET SET_PROTO ADD_CONSTANT SET_INPUTS"),
    (13, 11): ("y = ReduceSum<keepdims=0>(x, one)", "[] ReduceSum{'keepdims': 0, 'axes': (1,)}(x) <half, scales, shape, pads, unused> SET_OPSET SET_PROTO SET_INPUTS REMOVE_CONSTANT"),
    (10, 12): ("y = Clip<min=0.5>(x)", '[] Clip{}(x, min) <one, half, scales, shape, pads, unused, min> SET_OPSET SET_PROTO ADD_CONSTANT SET_INPUTS'),
    (12, 10): ("y = Clip(x, , half)", "[] Clip{'max': 0.5}(x) <one, scales, shape, pads, unused> SET_OPSET SET_PROTO SET_INPUTS REMOVE_CONSTANT"),
    (12, 13): ("y = Softmax<axis=1>(x)", "[] Softmax{'axis': -1}(x) <one, half, scales, shape, pads, unused> SET_OPSET SET_PROTO"),
    (9, 10): ("[n] y = Upsample<mode=\"nearest\">(x, scales)", "[n] Resize{'mode': 'nearest'}(x, scales) <one, half, scales, shape, pads, unused> SET_OPSET SET_PROTO"),
    (13, 14): ("y = Relu(x)", '[] Relu{}(x) <one, half, scales, shape, pads, unused> SET_OPSET'),
    (21, 22): ("h = own.Squeeze<axes=[1]>(x)  y = Neg(h)", "[] Squeeze{'axes': (1,)}(x) [] Neg{}(h) <one, half, scales, shape, pads, unused> SET_OPSET"),
    (14, 13): ("y = Reshape<allowzero=1>(x, shape)", '[] Reshape{}(x, shape) <one, half, scales, shape, pads, unused> SET_OPSET SET_PROTO'),
    (18, 17): ("y = Pad(x, pads, , one)", '[] Pad{}(x, pads_1) <half, scales, shape, unused, pads_1> SET_OPSET ADD_CONSTANT SET_INPUTS REMOVE_CONSTANT REMOVE_CONSTANT'),
    (22, 11): ("y = Gather<axis=-1>(x, one)", "[] Gather{'axis': -1}(x, one) <one, half, scales, shape, pads, unused> SET_OPSET"),
    (21, 21): ("y = ReduceSum(x, one)", '[] ReduceSum{}(x, one) <one, half, scales, shape, pads, unused> '),
}  # fmt: skip
STOCK = """int64[1] one = {1}, float half = {0.5}, float[2] scales = {1,2}, int64[2] shape = {3,2},
    int64[2] pads = {1,1}, float[1] unused = {1}"""


def converted(before: int, after: int, call: str) -> str:
    header = f'<ir_version: 10, opset_import: ["": {before}, "own": 1]> g (float[2,3] x) => (float[?,?] y)'
    of = parsed(f"{header} <{STOCK}> {{ {call} }}")
    mark = of.mark()
    convert_model(of, after)
    of.check_view()
    nodes = [
        f"[{node.name}] {node.op_type}{node.attributes}"
        f"({', '.join('' if each is None else each.name for each in node.inputs)})"
        for node in of.main.nodes
    ]
    edits = [entry[0].name for entry in of.journal.since(mark)]
    return f"{' '.join(nodes)} <{', '.join(each.name for each in of.main.initializers)}> {' '.join(edits)}"


def test_what_a_conversion_edits() -> None:
    for (before, after), (call, expected) in CONVERTED.items():
        assert converted(before, after, call) == expected, call


def test_only_operators_of_onnx_are_converted() -> None:
    of = parsed(
        """<ir_version: 10, opset_import: ["": 12, "own": 1]> g (float[1,3] x, bool c) => (float[3] y) {
        h = own.Squeeze<axes=[0]>(x)  l = ReduceSum<axes=[0]>(x)  y = If(c) <
        then_branch = t () => (float[3] p) { p = Squeeze<axes=[0]>(x) },
        else_branch = e () => (float[3] q) { o = own.Squeeze<axes=[0]>(x)  q = Neg(o) }> }
        <domain: "", opset_import: ["": 12]> ReduceSum <axes> (a) => (b) { b = Neg(a) }"""
    )
    convert_root(of.main, 13)
    nodes = {node.label: node for node in of.main.walk()}
    assert {name: node.has_attr("axes") for name, node in nodes.items()} == {
        "h": True, "l": True, "y": False, "p": False, "o": True, "q": False,
    }  # fmt: skip
    assert [len(nodes[name].inputs) for name in "hlpo"] == [1, 1, 2, 1]
    assert of.functions[0].opset() == 12


def test_the_newest_opset_and_the_one_that_a_model_has() -> None:
    of = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }", opset=NEWEST)
    length = len(of.journal)
    convert_root(of.main, NEWEST)
    assert len(of.journal) == length
    convert_root(of.main, 21)
    assert of.main.opset() == 21
    convert_model(of, 21, ir=8)
    assert of.ir_version == 8


def test_a_function_is_converted_whatever_trains_the_model() -> None:
    made = parsed(
        CALL.replace("q = Neg(p)", "k = Constant<value_float=1.0>() q = Neg(k)")
    ).to_proto()
    algorithm = made.training_info.add().algorithm
    algorithm.node.append(onnx.helper.make_node("Neg", ["y"], ["g"], "step"))
    of = Model.from_proto(made)
    convert_root(of.functions[0], 12)
    assert of.functions[0].opset() == 12
    with pytest.raises(OpsetError, match="training_info"):
        convert_root(of.main, 12)


def test_a_root_is_converted_without_bodies_of_functions() -> None:
    of = parsed("(float[2] x) => (float[2] y) { y = Celu(x) }", opset=12)
    with pytest.raises(OpsetError, match="opset 11 has no Celu"):
        convert_root(of.main, 11)
    convert_model(of, 11, numerics=Numerics.REASSOCIATING)
    assert "Celu" not in ops(of)


def test_a_constant_that_an_old_opset_has_not_raises_the_ir_version() -> None:
    for ir, dtype, after in ((3, "float", 3), (3, "int32", 4), (4, "int32", 4)):
        header = f'<ir_version: {ir}, opset_import: ["": 6]> g'
        of = parsed(f"{header} ({dtype}[2] x) => ({dtype}[2] y) {{ y = Identity(x) }}")
        assert of.ir_version == ir
        value = detached(np.zeros(2, np.float32 if dtype == "float" else np.int32))
        _allow_constant(of.main, value)
        assert of.ir_version == after, dtype
