"""The function that ONNX defines an operator by, in a sound form for one node."""

from typing import Any

import onnx
import pytest

from tests.small import made_by, named, parsed
from tiered.graph import Model, Node
from tiered.graph.core.schema import schema_of
from tiered.graph.queries.function_body import (
    DOMAIN,
    EXACT_BODIES,
    _defaults,
    _types,
    function_body,
    has_function_body,
)
from tiered.support.errors import ModelError

NEWEST = onnx.defs.onnx_opset_version()


def node_of(call: str, inputs: str = "float[2,3] x", *, opset: int = 21, out: str = "y") -> Node:
    text = f"({inputs}) => (float[?,?] y) {{ {out} = {call} }}"
    return made_by(parsed(text, opset=opset), "y")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("Celu(x)", True),  # for all dtypes
        ("Clip(x)", True),  # for the dtypes of a node
        ("Relu(x)", True),
        ("Conv(x, x)", False),
        ("com.microsoft.Odd(x)", False),
    ],
)
def test_some_operators_are_defined_by_a_function(call: str, expected: bool) -> None:
    assert has_function_body(node_of(call)) is expected


def test_the_opset_decides_whether_there_is_a_function() -> None:
    assert not has_function_body(node_of("GreaterOrEqual(x, x)", opset=11))
    assert has_function_body(node_of("GreaterOrEqual(x, x)", opset=12))


def test_operators_with_bodies_have_none() -> None:
    text = """(seq(float[2]) s) => (seq(float[2]) y) { y = SequenceMap(s) <
        body = b (float[2] e) => (float[2] f) { f = Neg(e) }> }"""
    node = made_by(parsed(text), "y")
    assert not has_function_body(node)
    with pytest.raises(ModelError, match="SequenceMap has bodies"):
        function_body(node)


def test_a_body_is_a_function_of_the_operands_of_the_node() -> None:
    body = function_body(node_of("Celu<alpha=2.0>(x)"))
    assert (body.domain, body.name) == (DOMAIN, "Celu")
    assert (list(body.input), list(body.output)) == (["X"], ["Y"])
    assert [each.domain for each in body.opset_import] == [""]
    # What the node writes is given by the call; the others are defaults of the function.
    assert not body.attribute_proto
    default = function_body(node_of("Celu(x)"))
    assert [(each.name, each.f) for each in default.attribute_proto] == [("alpha", 1.0)]


def test_the_newest_body_up_to_the_opset_is_taken() -> None:
    versions = [
        function_body(node_of("GreaterOrEqual(x, x)", opset=opset)).opset_import[0].version
        for opset in (12, 15, 16, 21)
    ]
    assert versions == sorted(versions)
    assert versions[0] <= 12
    assert versions[-1] <= 21


def test_absent_operands_are_kept_and_outputs_that_the_node_lacks_are_not() -> None:
    clip = function_body(node_of("Clip(x, , h)", "float[2,3] x, float h"))
    assert len(clip.input) == 3
    one = function_body(node_of("LayerNormalization(x, s)", "float[2,3] x, float[3] s"))
    assert len(one.output) == 1
    several = function_body(
        node_of("LayerNormalization(x, s)", "float[2,3] x, float[3] s", out="y, m, d")
    )
    assert len(several.output) == 3


def test_an_absent_output_repeats_another() -> None:
    node = node_of("LayerNormalization(x, s)", "float[2,3] x, float[3] s", out="y, , d")
    body = function_body(node)
    assert len(body.output) == 3
    assert body.output[1] == body.output[0] != body.output[2]


@pytest.mark.parametrize(
    ("node", "because"),
    [
        (node_of("Conv(x, x)"), "ONNX defines no function body of Conv in opset 21"),
        (node_of("com.microsoft.Odd(x)"), "com.microsoft::Odd is not an operator of opset 1"),
        (
            node_of("GreaterOrEqual(x, x)", opset=11),
            "GreaterOrEqual is not an operator of opset 11",
        ),
    ],
)
def test_an_operator_without_a_body_is_an_error(node: Node, because: str) -> None:
    with pytest.raises(ModelError) as caught:
        function_body(node)
    assert str(caught.value) == because


def test_a_dtype_that_is_not_known_is_an_error_where_it_decides() -> None:
    node = node_of("Clip(x, h)", "float[2,3] x, float h")
    graph = node.owner
    odd = graph.add_node("Odd", (named(graph, "x"),), domain="com.microsoft")
    graph.set_input(node, 0, odd.output)
    with pytest.raises(ModelError, match="the dtype of 'Odd_output_0' is unknown"):
        function_body(node)


FUNCTION = """<ir_version: 10, opset_import: ["": 21, "f": 1]>
    g (float[2,3] x) => (float[2,3] y) {{ y = f.F<a = 2.0>(x) }}
    <domain: "f", opset_import: ["": 21]> F <{}> (v) => (u) {{
        s = Shape(v)  u = Elu<alpha: float = @a>(v) }}"""


def test_a_parameter_with_a_default_may_be_an_attribute_of_a_body() -> None:
    for declared, is_defined in (("a", False), ("a: float = 1.0", True)):
        model = Model.from_proto(onnx.parser.parse_model(FUNCTION.format(declared)))
        node = model.functions[0].nodes_of("Elu")[0]
        if is_defined:
            assert function_body(node).name == "Elu"
        else:
            with pytest.raises(ModelError, match="Elu has the parameter 'a', which a call may"):
                function_body(node)


def test_an_attribute_that_a_call_decides_is_an_error_where_the_body_depends_on_it() -> None:
    text = FUNCTION.format("a: int = 1").replace("a = 2.0", "a = 2")
    text = text.replace("Elu<alpha: float = @a>(v)", "Softmax<axis: int = @a>(v)")
    model = Model.from_proto(onnx.parser.parse_model(text))
    node = model.functions[0].nodes_of("Softmax")[0]
    with pytest.raises(
        ModelError, match="the call of the function decides an attribute of Softmax"
    ):
        function_body(node)


@pytest.mark.parametrize("op_type", sorted(EXACT_BODIES))
def test_exact_bodies_only_compare_convert_or_move(op_type: str) -> None:
    schema: Any = onnx.defs.get_schema(op_type)  # its stubs lack both
    assert schema.has_function or schema.has_context_dependent_function


def test_a_grid_of_one_batch_keeps_its_axis() -> None:
    node = node_of("AffineGrid(t, s)", "float[1,2,3] t, int64[4] s")
    body = function_body(node)
    pending, squeezes = list(body.node), []
    while pending:
        inner = pending.pop()
        squeezes += [inner] if inner.op_type == "Squeeze" else []
        pending += [each for attribute in inner.attribute for each in attribute.g.node]
    assert squeezes
    assert all(len(squeeze.input) == 2 for squeeze in squeezes)


def imports_of(body: onnx.FunctionProto) -> dict[str, int]:
    return {entry.domain: entry.version for entry in body.opset_import}


def test_a_body_of_another_domain_imports_the_default_one() -> None:
    for imports, version in (('"" : 24, ', 24), ('"" : 25, ', 25), ("", NEWEST)):
        text = f"""<ir_version: 12, opset_import: [{imports}"ai.onnx.preview" : 1]>
            g (float[1,2,3,4] q, float[1,2,3,4] k) => (float[1,2,3,4] y) {{
            y = ai.onnx.preview.FlexAttention(q, k, k) }}"""
        model = Model.from_proto(onnx.parser.parse_model(text))
        assert imports_of(function_body(model.main.nodes[0])).get("") == version


def test_only_the_squeezes_of_affine_grid_get_axes() -> None:
    for call, inputs in (("Softmax(x)", "float[2,3] x"), ("Celu(x)", "float[2,3] x")):
        assert all("one_1d" not in node.input for node in function_body(node_of(call, inputs)).node)


def test_attributes_that_a_node_has_decide_its_body() -> None:
    texts = [
        function_body(node_of(f"Softmax<axis={axis}>(x)")).SerializeToString() for axis in (0, 1)
    ]
    assert texts[0] != texts[1]
    assert (
        function_body(node_of("Softmax(x)")).node
        == function_body(node_of("Softmax<axis=-1>(x)")).node
    )


def test_known_dims_and_absent_operands_are_told_to_onnx() -> None:
    found = {}
    for inputs in ("float[2,3] x, float h", "float[N,3] x, float h", "double x, double h"):
        node = node_of("Clip(x, , h)", inputs)
        types = [onnx.TypeProto.FromString(text) for text in _types(node)]
        found[inputs] = [
            (kind.tensor_type.elem_type, [dim.dim_value for dim in kind.tensor_type.shape.dim],
             kind.tensor_type.HasField("shape"))
            for kind in types
        ]  # fmt: skip
    assert found == {
        "float[2,3] x, float h": [(1, [2, 3], True), (0, [], False), (1, [], True)],
        "float[N,3] x, float h": [(1, [0, 3], True), (0, [], False), (1, [], True)],
        "double x, double h": [(11, [], True), (0, [], False), (11, [], True)],
    }
    graph = parsed("(float[2] x, int64[K] k) => (float y) { u = Reshape(x, k)  y = Celu(u) }").main
    (kind,) = (onnx.TypeProto.FromString(text) for text in _types(graph.nodes[1]))
    assert (kind.tensor_type.elem_type, kind.tensor_type.HasField("shape")) == (1, False)
    names = [
        entry.name
        for entry in _defaults(attributes_schema("Gemm"), node_of("Gemm<alpha=2.0>(x, x)"))
    ]
    assert sorted(names) == ["beta", "transA", "transB"]
    found_names = {
        entry.name for entry in _defaults(attributes_schema("Cast"), node_of("Cast<to=1>(x)"))
    }
    assert found_names == {"round_mode", "saturate"}


def attributes_schema(op_type: str) -> Any:
    return schema_of(op_type, "", 24)
