import pytest

from tiered import Model, ModelError, PassContext, get_pass
from tiered.testing import assert_unchanged, parse

PASS = "topological_sort"


def _found(text: str) -> list[str]:
    model, ctx = Model.from_proto(parse(text)), PassContext.isolated()
    get_pass(PASS).apply(model, ctx)
    assert len(model.journal) == 0
    return [remark.reason for remark in ctx.remarks]


def test_a_sorted_model_is_as_it_should_be() -> None:
    text = "(float[2] x) => (float[2] y) { a = Neg(x) y = Exp(a) }"
    assert_unchanged(PASS, text)
    assert _found(text) == []


def test_an_unsorted_model_is_written_producers_first() -> None:
    text = "(float[2] x) => (float[2] y) { y = Exp(a) a = Neg(x) z = Abs(x) }"
    assert _found(text) == ["g: 2 of 3 nodes get another place"]
    made = Model.from_proto(parse(text)).to_proto()
    assert [node.op_type for node in made.graph.node] == ["Neg", "Exp", "Abs"]


def test_bodies_and_local_functions_are_looked_at_too() -> None:
    found = _found(
        """<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        g (float[2] x, bool c) => (float[2] y) { y = If(c) <
            then_branch = t () => (float[2] a) { a = Exp(k) k = local.f(x) },
            else_branch = e () => (float[2] b) { b = Neg(x) }
        > }
        <domain: "local", opset_import: ["" : 21]> f (v) => (u) { u = Neg(w) w = Exp(v) }"""
    )
    assert found == ["t: 2 of 2 nodes get another place", "f: 2 of 2 nodes get another place"]


def test_a_cycle_is_named() -> None:
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { a = Neg(x) y = Exp(a) }"))
    first, last = model.main.nodes
    model.main.set_input(first, 0, last.output)
    with pytest.raises(ModelError, match="a <- y <- a"):
        get_pass(PASS).apply(model, PassContext.isolated())


def test_it_has_the_names_of_the_normal_forms() -> None:
    assert get_pass("ToANormalForm").name == PASS
    assert get_pass("to_a_normal_form").name == PASS
