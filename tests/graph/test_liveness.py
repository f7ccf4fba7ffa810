"""The content of a body is removed with its owner."""

from tiered import Model, get_pass
from tiered.testing import parse

NESTED = (
    "(float[2] x, bool k) => (float[2] y) <bool c = {1}> { y = If(c) <"
    "then_branch = t () => (float[2] p) { p = Relu(x) },"
    "else_branch = e () => (float[2] q) { q = If(c) <"
    "then_branch = t2 () => (float[2] r) { i = Identity(x) r = Neg(i) },"
    "else_branch = e2 () => (float[2] s) { j = Identity(x) s = Exp(j) }> }> }"
)


def test_a_node_in_a_body_of_a_removed_node_is_not_live() -> None:
    model = Model.from_proto(parse(NESTED))
    nodes = [node for graph in model.graphs() for node in graph.nodes]
    assert all(node.is_live for node in nodes)
    (outer,) = model.main.nodes
    mark = model.mark()
    model.main.replace(outer, [model.main.op.Abs(model.main.inputs[0])])
    assert [node for node in nodes if node.is_live] == []
    model.undo_to(mark)
    assert all(node.is_live for node in nodes)


def test_passes_leave_bodies_alone_that_went_with_their_node() -> None:
    model = Model.from_proto(parse(NESTED))
    get_pass("eliminate_nop_if").apply(model)
    get_pass("eliminate_identity").apply(model)
    get_pass("infer_shapes").apply(model)
    assert [node.op_type for graph in model.graphs() for node in graph.nodes] == ["Relu"]
    model.check_view()
