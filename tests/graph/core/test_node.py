"""Properties of a Node."""

import numpy as np
import pytest
from onnx import parser

from tiered.graph import Model, Node, Tensor
from tiered.support.errors import ModelError
from tiered.testing import parse

TEXT = """<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1, "ai.onnx": 21]>
    g (float[2] x) => (float[2] a, float[2] b, float[2] c) {
      a = Gelu(x)  b = com.microsoft.Gelu(x)  c = ai.onnx.Gelu(x) }"""


def _nodes() -> list[Node]:
    return list(Model.from_proto(parser.parse_model(TEXT)).main.nodes)


def test_a_node_is_an_operator_of_its_domain_alone() -> None:
    own, contrib, _ = _nodes()
    assert own.is_op("Gelu")
    assert not own.is_op("Gelu", "com.microsoft")
    assert not own.is_op("Relu")
    assert contrib.is_op("Gelu", "com.microsoft")
    assert not contrib.is_op("Gelu")
    assert not contrib.is_op("FastGelu", "com.microsoft")


def test_both_spellings_of_the_default_domain_are_one() -> None:
    assert _nodes()[2].is_op("Gelu")


def test_a_removed_node_is_still_the_operator_that_it_was() -> None:
    model = Model.from_proto(parser.parse_model(TEXT))
    node = model.main.add_node("Neg", model.main.inputs, 1)
    model.main.remove_node(node)
    assert node.is_op("Neg")


def test_an_attribute_that_a_call_decides_is_a_function_parameter() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
    g (float[2,3] x) => (float[6] y) { y = d.f <a = 0>(x) }
    <domain: "d", opset_import: ["" : 21]>
    f <a>(v) => (w) { u = Flatten<axis: int = @a>(v) w = Flatten<axis = 0>(u) }"""
    model = Model.from_proto(parser.parse_model(text))
    flatten, other = next(iter(model.functions)).nodes
    assert flatten.has_references
    assert flatten.parameter_reason == "attribute 'axis' is a function parameter"
    assert not other.has_references
    assert other.parameter_reason is None
    flatten.owner.set_attribute(flatten, "axis", 0)
    assert flatten.parameter_reason is None


def test_a_value_has_the_rank_of_another_only_if_both_are_known() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
    g (float[2] x, float[1,2] z) => (float[2] a, float[1,2] b, float[2] c) {
      a = Neg(x) b = Add(x, z) u = d.Unknown(x) c = Neg(u) }"""
    graph = Model.from_proto(parser.parse_model(text)).main
    x, unknown = graph.inputs[0], graph.nodes_of("Unknown", "d")[0].output
    a, b, _ = graph.outputs
    assert x.has_rank_of(a)
    assert not x.has_rank_of(b)
    assert not unknown.has_rank_of(x)
    assert not x.has_rank_of(unknown)
    assert not unknown.has_rank_of(unknown)


def test_inputs_are_asked_for_as_they_are_known() -> None:
    text = "(float[2] x) => (float[2] y) <float c = {1}> { h = Neg(x) y = Clip(h, , c) }"
    graph = Model.from_proto(parse(text)).main
    node = graph.outputs[0].producer
    assert node is not None
    assert node.given(0) is node.inputs[0]
    with pytest.raises(AssertionError, match="Clip 'y'> has no input 1"):
        node.given(1)
    assert [node.const(at) is None for at in range(4)] == [True, True, False, True]
    makers = [node.producer(at) for at in range(4)]
    assert [None if each is None else each.op_type for each in makers] == ["Neg", None, None, None]


def test_an_operator_is_named_with_its_domain() -> None:
    header = '<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]> g '
    text = "(float[2] x) => (float[2] y) { h = Neg(x) y = com.microsoft.Gelu(h) }"
    graph = Model.from_proto(parser.parse_model(header + text)).main
    assert [node.operator for node in graph.nodes] == ["Neg", "com.microsoft::Gelu"]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float", True), ("float16", True), ("double", True), ("int64", False), ("bool", False)],
)
def test_a_value_is_known_to_be_a_float(dtype: str, expected: bool) -> None:
    graph = Model.from_proto(parse(f"({dtype}[2] x) => ({dtype}[2] y) {{ y = Identity(x) }}")).main
    assert graph.inputs[0].is_float is expected


def nodes_of(text: str, header: str = "") -> dict[str, Node]:
    """Return the nodes of the main graph by the names of their first outputs."""
    head = header or '<ir_version: 10, opset_import: ["": 21, "vendor": 1]> g'
    model = Model.from_proto(parser.parse_model(f"{head} {text}"))
    names = [next(value.name for value in node.outputs if value) for node in model.main.nodes]
    return dict(zip(names, model.main.nodes, strict=True))


def test_neighbours_in_the_graph_are_found_through_values_and_bodies() -> None:
    found = nodes_of(
        "(float[2] x, bool c) => (float[2] y, float[2] z) {"
        " a = Neg(x) b = Abs(x) d = Add(b, a) e = Mul(a, a)"
        " y = If(c) <then_branch = t () => (float[2] p) { q = Add(d, b) p = Neg(q) },"
        " else_branch = f () => (float[2] r) { r = Abs(x) }> z = Neg(y) }"
    )
    labels = {
        name: (
            [each.output.name for each in node.predecessors],
            [each.output.name for each in node.successors],
        )
        for name, node in found.items()
    }
    assert labels == {
        "a": ([], ["d", "e"]),
        "b": ([], ["d", "y"]),
        "d": (["b", "a"], ["y"]),
        "e": (["a"], []),
        "y": (["b", "d"], ["z"]),
        "z": (["y"], []),
    }
    branch = found["y"]
    assert [value.name for value in branch.captured] == ["x", "b", "d"]
    assert [value.name for value in branch.reads] == ["c", "x", "b", "d"]
    assert found["a"].captured == ()
    assert [found[name].is_used for name in "aez"] == [True, False, True]
    (inner, _) = branch.bodies[0].nodes
    graph = branch.owner
    assert [node.is_live for node in (inner, branch, found["a"])] == [True, True, True]
    graph.replace_uses(branch.output, graph.inputs[0])
    graph.remove_node(branch)
    assert [node.is_live for node in (inner, branch, found["a"])] == [False, False, True]


def test_an_annotation_of_an_output_pins_its_node() -> None:
    found = nodes_of("(float[2] x) => (float[2] y) { a = Neg(x) y = Abs(a) }")
    assert [node.is_pinned for node in found.values()] == [False, False]
    found["a"].output.pins += 1
    assert [node.is_pinned for node in found.values()] == [True, False]


def test_a_node_has_a_label_and_a_first_output() -> None:
    node = nodes_of("(float[2] x) => (float[2] y) { [mine] y = Neg(x) }")["y"]
    assert (node.name, node.label, repr(node)) == ("mine", "mine", "<Neg 'mine'>")
    unnamed = nodes_of("(float[2] x) => (float[2] y) { y = Neg(x) }")["y"]
    assert (unnamed.name, unnamed.label) == ("", "y")
    unnamed.owner.rename_node(unnamed, "n")
    unnamed.owner.set_graph_outputs([unnamed.owner.inputs[0]], unnamed.owner.output_infos)
    unnamed.owner.remove_node(unnamed)
    assert repr(unnamed) == "<removed Neg 'n'>"
    with pytest.raises(ModelError, match=r"node 'n' \(Neg\) was removed from its graph"):
        _ = unnamed.owner


def test_inputs_that_a_schema_lets_out() -> None:
    found = nodes_of(
        "(float[2] x) => (float[2] y) { a = Clip(x) b = vendor.F(x) d = Sum(x, x) y = Neg(x) }"
    )
    optional = {name: [node.is_optional(at) for at in range(3)] for name, node in found.items()}
    assert optional == {
        "a": [False, True, True],
        "b": [False] * 3,
        "d": [False] * 3,
        "y": [False] * 3,
    }
    assert [found["a"].operand(at) is None for at in range(4)] == [False, True, True, True]
    assert found["a"].operand("max") is None
    assert (found["a"].version, found["b"].version, found["y"].version) == (13, 0, 13)


def test_whether_an_operator_is_the_same_in_another_opset() -> None:
    found = nodes_of("(float[2] x) => (float[2] y) { a = Gelu(x) b = vendor.F(x) y = Neg(x) }")
    assert [found["y"].is_same_at(opset) for opset in (6, 12, 13, 20, 21)] == [
        False, False, True, True, True,
    ]  # fmt: skip
    assert [found["b"].is_same_at(version) for version in (1, 2)] == [True, False]
    assert not found["a"].is_same_at(19)


def test_attributes_are_written_down_or_have_the_default_of_the_schema() -> None:
    node = nodes_of("(float[2,2] x) => (float[2,2] y) { y = Gemm<alpha=1.0, transA=1>(x, x) }")["y"]
    assert (node.attr("beta"), node.attr("beta", 5), node.attr("transA", 5)) == (1.0, 5, 1)
    assert (node.attr("nothing"), node.attr("nothing", 5)) == (None, 5)
    assert node.attributes == {"alpha": 1.0, "transA": 1}
    assert node.settings == {"transA": 1}
    assert node.has_attr("alpha")
    assert not node.has_attr("beta")
    other = nodes_of("(float[2] x) => (float[2] y) { y = vendor.F<alpha=1.0>(x) }")["y"]
    assert (other.settings, other.attr("beta")) == ({"alpha": 1.0}, None)
    zero = nodes_of("(float[2] x) => (float[2] y) { y = LeakyRelu<alpha=-0.0>(x) }")["y"]
    assert repr(zero.settings) == "{'alpha': -0.0}"
    branch = nodes_of(
        "(float[2] x, bool c) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] p)"
        " { p = Neg(x) }, else_branch = e () => (float[2] q) { q = Abs(x) }> }"
    )["y"]
    assert branch.attributes == {}


def test_the_contents_of_a_constant_in_each_attribute() -> None:
    for attribute, dtype, shape, elements in (
        ("value = float[2] {1,2}", 1, (2,), [1, 2]),
        ("value_float = 1.5", 1, (), 1.5),
        ("value_floats = [1.5]", 1, (1,), [1.5]),
        ("value_int = 3", 7, (), 3),
        ("value_ints = [3,4]", 7, (2,), [3, 4]),
        ('value_string = "a"', 8, (), "a"),
        ('value_strings = ["a","b"]', 8, (2,), ["a", "b"]),
    ):
        node = nodes_of(f"() => (float y) {{ c = Constant<{attribute}>() y = vendor.F(c) }}")["c"]
        tensor = node.constant_tensor()
        assert tensor is not None
        assert (tensor.dtype, tensor.shape) == (dtype, shape)
        assert tensor.numpy().tolist() == elements, attribute
        assert node.constant_tensor() is tensor


def test_an_operator_that_runtimes_run_early_is_said_to_be() -> None:
    text = "(float[2] x) => (float[2] y) {{ y = {}LayerNormalization(x, x) }}"
    for opset, domain, expected in ((16, "", True), (17, "", False), (16, "vendor.", False)):
        header = f'<ir_version: 8, opset_import: ["": {opset}, "vendor": 1]> g'
        assert nodes_of(text.format(domain), header)["y"].is_early is expected
    header = '<ir_version: 8, opset_import: ["": 16]> g'
    assert not nodes_of("(float[2] x) => (float[2] y) { y = Neg(x) }", header)["y"].is_early


def test_absent_operands_and_outputs_are_no_neighbours() -> None:
    found = nodes_of(
        "(float[2] x, bool c) => (float[2] y) { a = Neg(x) b = Clip(a, , a) d, , e = vendor.F(b)"
        " , f = vendor.F(e) k, = vendor.F(b) y = If(c) <then_branch = t () => (float[2] p) {"
        " q = Add(b, x) p = Neg(q) }, else_branch = n () => (float[2] r) { r = Abs(x) }> }"
    )
    assert [each.output.name for each in found["b"].predecessors] == ["a"]
    assert [each.label for each in found["d"].successors] == ["f"]
    inner, last = found["y"].bodies[0].nodes
    assert (inner.predecessors, last.predecessors) == ([], [inner])
    assert [found[name].is_used for name in "dfk"] == [True, False, False]
    used = {name: {at: v.name for at, v in found[name].used_outputs.items()} for name in "dfy"}
    assert used == {"d": {2: "e"}, "f": {}, "y": {0: "y"}}
    found["d"].owner.values["e"].pins = 1
    assert [found[name].is_pinned for name in "adk"] == [False, True, False]
    a, b = found["a"], found["b"]
    assert [a < each for each in (a, b)] == [False, True]
    assert a.scratch is a.scratch
    assert b.scratch == {}


def test_the_last_two_formal_operands_are_told_apart() -> None:
    node = nodes_of("(float[1,1,3] x) => (float y) { y = Conv(x, x) }")["y"]
    assert [node.is_optional(at) for at in range(4)] == [False, False, True, True]
    header = '<ir_version: 8, opset_import: ["": 13]> g'
    later = nodes_of("(int8[2] x) => (int8[2] y) { y = BitwiseAnd(x, x) }", header)["y"]
    assert [later.is_same_at(version) for version in (13, 18)] == [True, False]


def test_a_constant_has_the_contents_of_its_only_attribute() -> None:
    found = nodes_of(
        "(float[2] x) => (float y) { a = Constant<value_int=1, value_ints=[1]>()"
        " b = Constant<value=int64[1] {3}>() c = Constant<value_int=4>() d = Neg<value=int64[1] {3}>(x)"
        " y = vendor.F(a) }"
    )
    other = Tensor.of(np.array([7]))
    for name, noted, expected in (
        ("a", "value_int", None), ("b", "value", [7]), ("c", "value_int", 4), ("d", "value", [3]),
    ):  # fmt: skip
        node = found[name]
        assert name == "d" or node.constant_tensor() is node.constant_tensor()
        node.note_constant(node.attribute_protos()[noted], other)
        tensor = node.constant_tensor()
        assert (None if tensor is None else tensor.numpy().tolist()) == expected
    both = nodes_of("() => (float y) { y = Constant<value=int64[1] {3}, value_int=1>() }")["y"]
    both.note_constant(both.attribute_protos()["value"], other)
    assert both.constant_tensor() is None


def test_a_constant_that_a_call_decides_has_no_contents() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
    g (float x) => (int64 y) { y = d.f<a = 0>(x) }
    <domain: "d", opset_import: ["" : 21]> f <a>(v) => (w) { w = Constant<value_int: int = @a>() }"""
    (function,) = Model.from_proto(parser.parse_model(text)).functions
    assert function.nodes[0].constant_tensor() is None
