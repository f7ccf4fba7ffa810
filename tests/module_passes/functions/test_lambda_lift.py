import onnx

from tests.rollback import assert_undone
from tiered import Model, PassContext, get_pass
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "lambda_lift"
HEADER = '<ir_version: 10, opset_import: ["" : 21, "tiered.lifted" : 1]> '
BRANCHES = "(float[2] x, bool c) => (float[2] y) <float[2] w = {1,2}> { a = Neg(x) [pick] y = If(c) <then_branch = t () => (float[2] p) { s = Add(a, w) p = Mul(s, a) }, else_branch = e () => (float[2] q) <float[2] v = {3,4}> { q = Add(v, a) }> }"
LIFTED = (
    HEADER
    + "g (float[2] x, bool c) => (float[2] y) <float[2] w = {1,2}> { a = Neg(x) y = If(c) <then_branch = t () => (float[2] p) { p = tiered.lifted.pick_then_branch(a, w) }, else_branch = e () => (float[2] q) <float[2] v = {3,4}> { q = tiered.lifted.pick_else_branch(v, a) }> }"
    ' <domain: "tiered.lifted", opset_import: ["" : 21]> pick_else_branch (v, a) => (q) { q = Add(v, a) }'
    ' <domain: "tiered.lifted", opset_import: ["" : 21]> pick_then_branch (a, w) => (p) { s = Add(a, w) p = Mul(s, a) }'
)


def branch(node: onnx.NodeProto, name: str) -> onnx.GraphProto:
    return next(attribute.g for attribute in node.attribute if attribute.name == name)


def test_branches_become_calls_with_captures_and_initializers_as_inputs() -> None:
    assert_rewrites(PASS, BRANCHES, LIFTED)
    assert_undone(PASS, BRANCHES)
    assert_unchanged(PASS, LIFTED)


def test_a_loop_keeps_its_formal_inputs() -> None:
    text = "(float[2] x, int64 n) => (float[2] y) <bool go = {1}> { k = Exp(x) [l] y = Loop(n, go, x) <body = b (int64 i, bool ci, float[2] v) => (bool co, float[2] w) { co = Identity(ci) w = Add(v, k) }> }"
    assert_rewrites(
        PASS,
        text,
        HEADER
        + "g (float[2] x, int64 n) => (float[2] y) <bool go = {1}> { k = Exp(x) y = Loop(n, go, x) <body = b (int64 i, bool ci, float[2] v) => (bool co, float[2] w) { co, w = tiered.lifted.l_body(ci, v, k) }> }"
        ' <domain: "tiered.lifted", opset_import: ["" : 21]> l_body (ci, v, k) => (co, w) { co = Identity(ci) w = Add(v, k) }',
    )


def test_a_scan_is_lifted_and_comes_back() -> None:
    text = "(float[2] s, float[3,2] w) => (float[2] y, float[3,2] z) { y, z = Scan<num_scan_inputs = 1, body = b (float[2] p, float[2] q) => (float[2] r, float[2] t) { r = Add(p, q) t = Neg(r) }> (s, w) }"
    model = Model.from_proto(parse(text))
    first = model.main.structural_hash()
    get_pass(PASS).apply(model, PassContext.isolated())
    assert [len(graph) for graph in model.graphs() if graph.parent_node is not None] == [1]
    get_pass("inline", domains=("tiered.lifted",)).apply(model, PassContext.isolated())
    assert model.main.structural_hash() == first


def test_bodies_in_bodies_are_lifted_first() -> None:
    text = BRANCHES.replace(
        "q = Add(v, a) }",
        "q = If(c) <then_branch = i () => (float[2] m) { m = Exp(v) }, else_branch = j () => (float[2] n) { n = Abs(a) }> }",
    )
    made = assert_undone(PASS, text)
    assert len(made.functions) == 4
    owner = next(each for each in made.functions if any(node.op_type == "If" for node in each.node))
    for attribute in owner.node[0].attribute:
        assert [node.domain for node in attribute.g.node] == ["tiered.lifted"]
    onnx.checker.check_model(made, full_check=True)


def test_small_bodies_stay_on_demand() -> None:
    assert_unchanged(
        PASS, BRANCHES, because="the body has fewer nodes than min_nodes=3", min_nodes=3
    )


def test_functions_need_ir_8() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 7, opset_import: ["" : 12]> g ' + BRANCHES,
        because="local functions need IR 8, not 7",
    )


def test_nodes_of_different_compilers_stay_apart() -> None:
    proto = parse(BRANCHES)
    nodes = branch(proto.graph.node[1], "then_branch").node
    nodes[0].metadata_props.add(key="tiered.compiler", value="npu")
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass(PASS).apply(model, ctx)
    assert any(remark.reason == "the nodes have different marks" for remark in ctx.remarks)
    assert [function.function_name for function in model.functions] == ["pick_else_branch"]


def test_a_node_that_is_marked_to_stay_stays() -> None:
    proto = parse(BRANCHES)
    for attribute in proto.graph.node[1].attribute:
        attribute.g.node[0].metadata_props.add(key="tiered.skip_optimization", value="1")
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass(PASS).apply(model, ctx)
    assert {remark.reason for remark in ctx.remarks} == {"a node is marked to stay as it is"}
    assert len(model.journal) == 0


def test_a_body_that_returns_what_it_captures_has_nothing_to_lift() -> None:
    text = "(float[2] x, bool c) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] p) { p = Neg(x) }, else_branch = e () => (float[2] q) { k = Abs(x) q = Exp(x) }> }"
    proto = parse(text)
    for attribute in proto.graph.node[0].attribute:
        attribute.g.output[0].name = "x"
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass(PASS).apply(model, ctx)
    assert {remark.reason for remark in ctx.remarks} == {"no output of the nodes is used"}
