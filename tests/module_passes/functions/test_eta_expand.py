import pytest

from tests.rollback import assert_undone
from tiered import Model, PassContext, UsageError, get_pass
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "eta_expand"
HEADER = '<ir_version: 10, opset_import: ["" : 21, "tiered.expanded" : 1]> '
CHAIN = "(float[2] x, float h) => (float[2] y) { a = Neg(x) [cut] y = Clip(a, , h) }"


def test_a_node_of_a_chosen_operator_is_wrapped() -> None:
    after = (
        HEADER
        + "g (float[2] x, float h) => (float[2] y) { a = Neg(x) y = tiered.expanded.Clip_cut(a, h) }"
        ' <domain: "tiered.expanded", opset_import: ["" : 21]> Clip_cut (a, h) => (y) { y = Clip(a, , h) }'
    )
    assert_rewrites(PASS, CHAIN, after, ops=("Clip",))
    assert_undone(PASS, CHAIN, ops=("Clip",))


def test_all_nodes_are_wrapped_once_and_come_back() -> None:
    text = "(float[2] x, bool c) => (float[2] y, float[1] u) { a = Neg(x) y = If(c) <then_branch = t () => (float[2] p) { p = Exp(a) }, else_branch = e () => (float[2] q) { q = Abs(x) }> u, v = Split<num_outputs=2>(a) }"
    made = assert_undone(PASS, text, ops=("*",))
    assert [node.domain for node in made.graph.node] == ["tiered.expanded"] * 3
    model = Model.from_proto(made)
    mark = model.mark()
    get_pass(PASS, ops=("*",)).apply(model, PassContext.isolated())
    assert not model.changed_since(mark)
    get_pass("inline", domains=("tiered.expanded",)).apply(model, PassContext.isolated())
    assert model.main.structural_hash() == Model.from_proto(parse(text)).main.structural_hash()


def test_nothing_is_wrapped_unless_it_is_asked_for() -> None:
    assert_unchanged(PASS, CHAIN)


def test_calls_of_functions_are_wrapped_on_demand() -> None:
    text = '<ir_version: 10, opset_import: ["" : 21, "local" : 1]> g (float[2] x) => (float[2] y) { a = Exp(x) y = local.f(a) } <domain: "local", opset_import: ["" : 21]> f (v) => (u) { u = Neg(v) }'
    made = assert_undone(PASS, text, calls=True)
    assert [node.op_type for node in made.graph.node] == ["Exp", "f_y"]
    assert [node.op_type for node in made.functions[1].node] == ["f"]


def test_operators_of_other_domains_are_named_with_their_domain() -> None:
    text = "(float[2] x) => (float[2] y) { a = com.microsoft.Gelu(x) y = Gelu(a) }"
    made = assert_undone(PASS, text, ops=("com.microsoft::Gelu",))
    assert [(node.domain, node.op_type) for node in made.graph.node] == [
        ("tiered.expanded", "Gelu_a"),
        ("", "Gelu"),
    ]


def test_constants_stay() -> None:
    text = "(float[2] x) => (float[2] y) { k = Constant<value_float=2.0>() y = Mul(x, k) }"
    assert_unchanged(PASS, text, because="a constant has no operands", ops=("Constant",))


def test_the_domain_of_onnx_is_refused() -> None:
    with pytest.raises(UsageError, match=r"local functions need a domain of their own, not ''"):
        get_pass(PASS, domain="").apply(Model.from_proto(parse(CHAIN)), PassContext.isolated())


def test_names_are_made_of_letters_and_are_free() -> None:
    proto = parse("(float[2] x) => (float[2] y) { a = Neg(x) b = Neg(a) y = Neg(b) }")
    for node in proto.graph.node:
        node.name = "/layer.0/Neg"
    made = assert_undone(PASS, proto, ops=("Neg",))
    assert [node.op_type for node in made.graph.node] == [
        "Neg__layer_0_Neg",
        "Neg__layer_0_Neg_1",
        "Neg__layer_0_Neg_2",
    ]
