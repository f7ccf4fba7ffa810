"""Nodes that a rewrite makes have the names of the nodes that they stand for."""

import sys

import onnx
import pytest

import tiered
from tests.small import proto
from tiered import (
    Graph,
    Node,
    PassContext,
    Sequential,
    Value,
    function_pass,
    op,
    optimize_model,
    rewrite,
    var,
)
from tiered.graph.core.edit import Edit
from tiered.graph.edits.heirs import inherit_names
from tiered.testing import parse

BN = """(float[1,2,4,4] x) => (float[1,2,4,4] y) <float[2,2,1,1] w = {1,2,3,4}, float[2] g = {1,2},
    float[2] b = {3,4}, float[2] m = {5,6}, float[2] v = {7,8}> {
    [stem] c = Conv(x, w)  [norm] n = BatchNormalization(c, g, b, m, v)  [cut] y = Relu(n) }"""
LINEAR = """(float[2,4] x) => (float[2,3] y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12},
    float[3] b = {1,2,3}> { [product] p = MatMul(x, w)  [bias] s = Add(p, b)  [cut] y = Relu(s) }"""


def named(model: onnx.ModelProto) -> list[tuple[str, str]]:
    return [(node.op_type, node.name) for node in model.graph.node]


def test_a_conv_keeps_its_name_when_it_absorbs_its_batch_norm() -> None:
    model = tiered.optimize(parse(BN), opt_level=3)
    assert named(model) == [("Conv", "stem"), ("Relu", "cut")]
    assert model.graph.node[0].output[0] == "n"  # the tensor is still the one after the norm


def test_a_fused_product_has_the_name_of_its_product() -> None:
    model = tiered.optimize(parse(BN), opt_level=3, backend="onnxruntime_cpu")
    assert [node.name for node in model.graph.node] == ["stem"]
    linear = optimize_model(parse(LINEAR), passes=["fuse_gemm"])
    assert named(linear.model.to_proto())[0] == ("Gemm", "product")


@rewrite(op.Neg(op.Abs(var.x)), opt_level=1)
def exchanged(graph: Graph, x: Value) -> Value:
    """Exchange the order of two nodes, as a test."""
    return graph.op.Abs(graph.op.Neg(x))


def test_nodes_that_change_places_keep_their_names() -> None:
    text = "(float[2] x) => (float[2] y) { [first] a = Abs(x)  [second] y = Neg(a) }"
    model = optimize_model(parse(text), passes=Sequential([exchanged])).model.to_proto()
    assert named(model) == [("Neg", "second"), ("Abs", "first")]


@rewrite(op.Neg(op.Abs(var.x)), opt_level=1)
def with_a_trial(graph: Graph, x: Value) -> Value:
    """Exchange the order of two nodes after a trial that is given up, as a test."""
    trial = graph.op.Abs(x).producer
    assert trial is not None
    graph.remove_node(trial)
    return graph.op.Abs(graph.op.Neg(x))


def test_a_new_node_that_the_rewrite_removes_again_gives_no_name() -> None:
    text = "(float[2] x) => (float[2] y) { [first] a = Abs(x)  [second] y = Neg(a) }"
    model = optimize_model(parse(text), passes=Sequential([with_a_trial])).model.to_proto()
    assert named(model) == [("Neg", "second"), ("Abs", "first")]


@rewrite(op.Neg(op.Sign(op.Abs(var.x))), opt_level=1)
def explicit(graph: Graph, x: Value) -> Value:
    """Name a new node that is not the last one, as a test."""
    return graph.op.Neg(graph.op.Sign(x, name="mine"))


def test_a_name_that_a_pass_gives_itself_stays() -> None:
    text = "(float[2] x) => (float[2] y) { [first] a = Abs(x)  b = Sign(a)  [second] y = Neg(b) }"
    model = optimize_model(parse(text), passes=Sequential([explicit])).model.to_proto()
    assert named(model) == [("Sign", "mine"), ("Neg", "second")]


@function_pass(opt_level=1)
def in_a_block(graph: Graph, _: PassContext) -> None:
    """Replace a Conv in a block, as a test."""
    for node in graph.nodes_of("Relu"):
        producer = node.inputs[0].producer  # type: ignore[union-attr]  # a Relu has an input
        assert isinstance(producer, Node)
        with graph.rewrite("Relu(Conv(x))  =>  Conv(x)", node):
            values = graph.op.Conv(*producer.inputs)
            graph.replace(node, [values], values.id)


def test_a_block_of_a_function_pass_names_its_nodes_too() -> None:
    text = """(float[1,2,4,4] x) => (float[1,2,4,4] y) <float[2,2,1,1] w = {1,2,3,4}> {
        [stem] c = Conv(x, w)  [cut] y = Relu(c) }"""
    model = optimize_model(parse(text), passes=Sequential([in_a_block])).model.to_proto()
    assert named(model) == [("Conv", "stem")]


def test_undoing_brings_the_names_back() -> None:
    model = tiered.Model.from_proto(parse(BN))
    before = model.to_proto().SerializeToString(deterministic=True)
    mark = model.mark()
    tiered.get_pass("fuse_bn_into_conv").apply(model)
    assert model.main.nodes_of("Conv")[0].name == "stem"
    model.undo_to(mark)
    assert model.to_proto().SerializeToString(deterministic=True) == before


@pytest.mark.parametrize("text", ["{ a = Abs(x)  y = Neg(a) }", "{ [n] a = Abs(x)  y = Neg(a) }"])
def test_nameless_nodes_are_no_error(text: str) -> None:
    made = proto(f"g (float[2] x) => (float[2] y) {text}")
    for node in made.graph.node:
        node.name = "" if node.name != "n" else "n"
    model = optimize_model(made, passes=Sequential([exchanged])).model.to_proto()
    assert len({node.name for node in model.graph.node}) == 2


def test_nodes_of_a_function_that_is_inlined_away_give_and_take_no_names() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
        g (float[2] x) => (float[2] y) { [one] a = f.outer(x)  [one] y = f.outer(a) }
        <domain: "f", opset_import: ["" : 21, "f" : 1]> outer (v) => (u) {
            [two] c = Constant<value_float = 2.0>()  [one] d = Mul(v, c)  [two] u = f.inner(d) }
        <domain: "f", opset_import: ["" : 21]> inner (v) => (u) {
            [two] c = Constant<value_float = 3.0>()  [one] u = Mul(v, c) }"""
    model = tiered.Model.from_proto(onnx.parser.parse_model(text))
    mark = model.mark()
    tiered.get_pass("inline").apply(model)
    model.check_view()
    names = [node.name for node in model.main.nodes]
    assert len(set(names)) == len(names) == 8
    model.undo_to(mark)
    model.check_view()


@function_pass(opt_level=1)
def all_at_once(graph: Graph, _: PassContext) -> None:
    """Negate after each Sign instead of before it, in one block, as a test."""
    with graph.rewrite("Sign(Neg(x))  =>  Neg(Sign(x))", graph.nodes[0]):
        for node in list(graph.nodes_of("Sign")):
            negated = node.inputs[0].producer  # type: ignore[union-attr]  # a Sign has an input
            assert isinstance(negated, Node)
            graph.replace(node, [graph.op.Neg(graph.op.Sign(negated.inputs[0]))])


def _calls_of_all_at_once(pairs: int) -> int:
    """Return how many Python functions it calls for so many pairs of nodes."""
    lines = [f"[n{at}] a{at} = Neg(x{at})  [s{at}] x{at + 1} = Sign(a{at})" for at in range(pairs)]
    text = f"(float[2] x0) => (float[2] y) {{ {' '.join(lines)} y = Abs(x{pairs}) }}"
    model = tiered.Model.from_proto(parse(text))
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        all_at_once.apply(model)
    finally:
        sys.setprofile(before)
    names = [node.name for node in model.main.topological_order()]
    assert names[:4] == ["s0", "n0", "s1", "n1"]
    return calls


def test_names_of_a_large_rewrite_take_a_time_that_grows_with_its_nodes() -> None:
    _calls_of_all_at_once(10)  # loads code
    assert _calls_of_all_at_once(400) < 5 * _calls_of_all_at_once(100)


def test_a_name_with_a_number_is_inherited_too() -> None:
    text = "(float[2] x) => (float[2] y) { [n_1] a = Abs(x)  [n_2] y = Neg(a) }"
    model = optimize_model(parse(text), passes=Sequential([exchanged])).model.to_proto()
    assert named(model) == [("Neg", "n_2"), ("Abs", "n_1")]


def test_names_pass_from_nodes_that_are_gone_to_nodes_that_are_there() -> None:
    text = """(float[2] x, bool k) => (float[2] y) {
        [old] a = Abs(x)  [Abs] b = Abs(x)  [Sign] c = Sign(x)  [cond] d = If(k) <
            then_branch = t () => (float[2] p) { [Abs_1] p = Abs(x) },
            else_branch = e () => (float[2] q) { [old] q = Neg(x) }>  [last] y = Neg(x) }"""
    add, remove, fold = Edit.ADD_NODE, Edit.REMOVE_NODE, Edit.FOLD_TO_INITIALIZER
    labels = ("old", "Abs", "Sign", "cond", "Abs_1", "old", "last")
    names = dict(zip("abcdpqy", labels, strict=True))
    for gone, edits, expected, changed in (
        ("da", [(add, "b"), (remove, "a")], True, {"b": "old"}),
        ("da", [(fold, "a"), (add, "b")], True, {"b": "old"}),
        ("d", [(add, "b"), (remove, "a")], False, {}),  # it came back
        ("da", [(add, "c"), (remove, "a")], False, {}),  # of another operator
        ("dab", [(add, "b"), (remove, "a")], False, {}),
        ("da", [(add, "p"), (remove, "a")], False, {}),  # in a body that is gone
        ("a", [(add, "p"), (remove, "a")], None, {}),  # the other body has a node of the name
        ("a", [(add, "b"), (add, "q"), (remove, "a")], None, {}),
        ("da", [(remove, "a")], False, {}),
    ):
        model = tiered.Model.from_proto(parse(text))
        nodes = {node.output.name: node for graph in model.graphs() for node in graph.nodes}
        for name in gone:
            model.main.remove_node(nodes[name])
        found = inherit_names([(edit, nodes[name]) for edit, name in edits])
        assert expected in (None, found), edits
        assert {name: node.name for name, node in nodes.items()} == names | changed, edits
