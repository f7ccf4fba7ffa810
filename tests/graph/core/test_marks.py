"""Marks of nodes and functions hold against every kind of pass."""

from collections.abc import Callable, Mapping

import numpy as np
import onnx
import pytest

from tiered import Graph, Model, Node, PassContext, get_pass, optimize
from tiered.graph import Tensor
from tiered.graph.core.marks import is_left_alone, mark_against, mark_against_edits
from tiered.testing import assert_unchanged, parse

SKIP, COMPILER = "tiered.skip_optimization", "tiered.compiler"

SHIFTED = """(float[1,2,4,4] x) => (float[1,2,4,4] y)
<float[2,2,1,1] w = {1,2,3,4}, float[1,2,1,1] b = {1,2}> { h = Conv(x, w) y = Add(h, b) }"""


def marked(text: str, **marks: dict[str, str]) -> onnx.ModelProto:
    """Return a model whose nodes with these operators have metadata."""
    proto = parse(text)
    for node in proto.graph.node:
        for key, value in marks.get(node.op_type, {}).items():
            node.metadata_props.add(key=key, value=value)
    return proto


def test_a_rule_leaves_a_marked_node_alone() -> None:
    for op_type in ("Conv", "Add"):
        proto = marked(SHIFTED, **{op_type: {SKIP: "1"}})
        assert_unchanged("fuse_bias_add", proto, because="marked tiered.skip_optimization")


def test_nodes_of_two_compilers_stay_apart() -> None:
    proto = marked(SHIFTED, Conv={COMPILER: "npu"}, Add={COMPILER: "dsp"})
    assert_unchanged("fuse_bias_add", proto, because="marked for different compilers")


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("tiered.region", "marked for different regions"),
        ("tiered.device", "marked for different devices"),
        ("tiered.stage", "marked for different pipeline stages"),
    ],
)
def test_marks_are_never_joined_to_one_string(key: str, reason: str) -> None:
    proto = marked(SHIFTED, Conv={key: "0"}, Add={key: "1"})
    assert_unchanged("fuse_bias_add", proto, because=reason)
    text = "(float[2] x) => (float[2] y) { a = Exp(x) b = Exp(x) y = Add(a, b) }"
    apart = parse(text)
    for at, node in enumerate(apart.graph.node):
        node.metadata_props.add(key=key, value=str(at))
    with PassContext(3):
        assert get_pass("eliminate_common_subexpr")(apart) == apart
        assert get_pass("eliminate_common_subexpr")(parse(text)) != parse(text)


def test_nodes_of_one_compiler_become_one_of_it() -> None:
    conv = {"Conv": {COMPILER: "npu"}}
    for marks in (conv | {"Add": {COMPILER: "npu"}}, conv):
        with PassContext(3):
            made = get_pass("fuse_bias_add")(marked(SHIFTED, **marks))
        (node,) = made.graph.node
        assert [(entry.key, entry.value) for entry in node.metadata_props] == [(COMPILER, "npu")]


@pytest.mark.parametrize(
    ("pass_", "text", "op_type"),
    [
        ("fold_constant", "(float[2] x) => (float[2] y) <float[2] w = {1,2}> { h = Exp(w) y = Add(x, h) }", "Exp"),
        ("eliminate_common_subexpr", "(float[2] x) => (float[2] y) { a = Exp(x) b = Exp(x) y = Add(a, b) }", "Exp"),
        ("eliminate_deadend", "(float[2] x) => (float[2] y) { a = Exp(x) y = Neg(x) }", "Exp"),
    ],
)  # fmt: skip
def test_a_function_of_graphs_leaves_a_marked_node_alone(
    pass_: str, text: str, op_type: str
) -> None:
    with PassContext(3):
        assert get_pass(pass_)(parse(text)) != parse(text)
    assert_unchanged(pass_, marked(text, **{op_type: {SKIP: "1"}}), because="marked tiered.skip")


@pytest.mark.parametrize("key", [SKIP, COMPILER])
def test_no_pass_looks_into_a_marked_function(key: str) -> None:
    proto = parse(
        '<ir_version: 10, opset_import: ["" : 21, "l" : 1]> g (float[2] x) => (float[2] y) '
        '{ h = Identity(x) y = l.f(h) } <domain: "l", opset_import: ["" : 21]> '
        "f (a) => (b) { c = Relu(a) d = Relu(c) e = Identity(d) k = Exp(e) b = Identity(e) }"
    )
    proto.functions[0].metadata_props.add(key=key, value="npu")
    for level in range(5):
        made = optimize(proto, opt_level=level)
        assert made.functions == proto.functions
        assert made.graph.node[-1].op_type == "f"
    del proto.functions[0].metadata_props[:]
    assert not optimize(proto, opt_level=2).functions


def test_a_body_that_goes_with_its_node_is_no_reason() -> None:
    text = """(float[2] x, bool c) => (float[2] y) {
      y = If(c) <then_branch = t () => (float[2] p) { p = Neg(x) },
                 else_branch = e () => (float[2] q) { q = Neg(x) }> }"""
    model = Model.from_proto(parse(text))
    graph = model.main
    (node,) = graph.nodes
    with graph.rewrite("law", node):
        inner = node.bodies[0].nodes[0]
        node.bodies[0].set_attribute(inner, "odd", 1)
        made = graph.op.Neg(graph.inputs[0])
        graph.replace(node, (made,))
    assert [each.op_type for each in graph.nodes] == ["Neg"]


def test_a_block_of_a_pass_is_undone_where_a_node_is_marked() -> None:
    model = Model.from_proto(marked(SHIFTED, Conv={SKIP: "1"}))
    graph: Graph = model.main
    with PassContext(3), graph.rewrite("law", graph.nodes[0]):
        graph.set_attribute(graph.nodes[0], "group", 1)
    assert model.to_proto() == marked(SHIFTED, Conv={SKIP: "1"})


MARKED = """<ir_version: 10, opset_import: ["" : 21, "l" : 1]> g (float[2] x, bool c) => (float[2] y) {
    a = Neg(x)  b = Abs(a)  d = Exp(b)  e = l.f(d)  o = Relu(e)
    y = If(c) <then_branch = t () => (float[2] p) { p = l.f(x) },
               else_branch = s () => (float[2] q) { q = Neg(x) }> }
    <domain: "l", opset_import: ["" : 21, "l" : 1]> f (u) => (v) { w = Neg(u)  i = l.h(w)  r = Greater(w, i)
        v = If(r) <then_branch = m () => (n) { n = Abs(w) }, else_branch = z () => (k) { k = Neg(i) }> }
    <domain: "l", opset_import: ["" : 21]> h (u) => (hv) { hv = Neg(u) }"""


NONE: Mapping[str, tuple[str, str]] = {}


def with_marks(function: str = "", marks: Mapping[str, tuple[str, str]] = NONE) -> Model:
    """Return a model with a mark for each of some nodes of the main graph, by their outputs."""
    proto = parse(MARKED)
    for node in proto.graph.node:
        if node.output[0] in marks:
            key, value = marks[node.output[0]]
            node.metadata_props.add(key=key, value=value)
    if function:
        proto.functions[0].metadata_props.add(key=function, value="npu")
    return Model.from_proto(proto)


def nodes_of(model: Model) -> dict[str, Node]:
    return {node.label: node for graph in model.graphs() for node in graph.nodes}


REGION, DEVICE = "tiered.region", "tiered.device"
APART = {
    COMPILER: "the nodes are marked for different compilers",
    REGION: "the nodes are marked for different regions",
    DEVICE: "the nodes are marked for different devices",
    "tiered.stage": "the nodes are marked for different pipeline stages",
}


def test_which_nodes_may_not_be_rewritten_together() -> None:
    for marks, names, reason in (
        ({}, "abd", ""),
        ({"b": (SKIP, "")}, "abd", "the node is marked tiered.skip_optimization"),
        ({"b": (SKIP, "")}, "ad", ""),
        ({"a": (COMPILER, "1"), "d": (COMPILER, "1")}, "abd", ""),
        ({"a": (COMPILER, "1"), "d": (COMPILER, "2")}, "ab", ""),
        ({"a": (COMPILER, "1"), "d": (COMPILER, "")}, "abd", ""),
        ({"a": (COMPILER, "1"), "d": (REGION, "2")}, "abd", ""),
        ({"a": ("other", "1"), "d": ("other", "2")}, "abd", ""),
        *(({"a": (key, "1"), "d": (key, "2")}, "abd", reason) for key, reason in APART.items()),
    ):
        found = nodes_of(with_marks(marks=marks))
        assert mark_against(found[name] for name in names) == reason, (marks, names)


def test_nodes_in_functions_that_are_left_alone() -> None:
    inside = "the function is marked to be left alone"
    for key, reason in ((SKIP, inside), (COMPILER, inside), (REGION, ""), ("", "")):
        model = with_marks(key)
        found = nodes_of(model)
        assert [mark_against([found[name]]) for name in "wna"] == [reason, reason, ""]
        body = found["n"].owner
        assert is_left_alone(body) is bool(reason)
        function = body.root
        function.remove_output(function.outputs[0])
        function.remove_node(found["v"])
        assert not is_left_alone(body)
        assert mark_against([found["v"]]) == ""


Edit = Callable[[Model, dict[str, Node]], object]


def replaced(name: str) -> Edit:
    def edit(model: Model, found: dict[str, Node]) -> None:
        node = found[name]
        node.owner.replace(node, [node.owner.op.Exp(node.inputs[0])])

    return edit


def folded(model: Model, found: dict[str, Node]) -> None:
    model.main.fold_to_initializer(found["b"], 0, Tensor.of(np.ones(2, np.float32)))


def attribute(name: str) -> Edit:
    return lambda model, found: found[name].owner.set_attribute(found[name], "k", 1)


def made_and_gone(model: Model, found: dict[str, Node]) -> None:
    node = model.main.add_node("Neg", (found["a"].output,))
    model.main.set_metadata(node, {SKIP: "1"})
    model.main.remove_node(node)


def unmarked(model: Model, found: dict[str, Node]) -> None:
    model.main.set_metadata(found["b"], {})


KEPT, INSIDE = (
    "the node is marked tiered.skip_optimization",
    "the function is marked to be left alone",
)
EDITS: list[tuple[dict[str, tuple[str, str]], str, Edit, str]] = [
    ({"b": (SKIP, "1")}, "", replaced("b"), KEPT),
    ({"b": (SKIP, "1")}, "", replaced("a"), ""),
    ({"b": (SKIP, "1")}, "", folded, KEPT),
    ({"b": (SKIP, "1")}, "", attribute("b"), KEPT),
    ({"b": (SKIP, "1")}, "", unmarked, KEPT),
    ({"b": (SKIP, "1")}, "", lambda model, found: model.main.rename_node(found["b"], "n"), ""),
    ({}, "", made_and_gone, ""),
    ({}, SKIP, attribute("w"), INSIDE),
    ({}, SKIP, attribute("n"), INSIDE),
    ({}, SKIP, attribute("i"), ""),
    ({}, SKIP, replaced("w"), INSIDE),
    ({}, SKIP, replaced("i"), ""),
    ({}, SKIP, replaced("a"), ""),
    ({}, REGION, replaced("w"), ""),
]  # fmt: skip


def test_which_edits_marks_forbid() -> None:
    for at, (marks, function, edit, reason) in enumerate(EDITS):
        model = with_marks(function, marks)
        found, mark = nodes_of(model), model.mark()
        edit(model, found)
        assert mark_against_edits(model.journal.since(mark)) == reason, at
    model = with_marks(marks={"a": (COMPILER, "1"), "d": (COMPILER, "2")})
    found = nodes_of(model)
    attribute("a")(model, found)
    attribute("b")(model, found)
    assert mark_against_edits(model.journal.entries) == ""
    attribute("d")(model, found)
    assert mark_against_edits(model.journal.entries) == APART[COMPILER]
    assert mark_against_edits(model.journal.entries[1:]) == ""
    assert mark_against_edits([]) == ""
