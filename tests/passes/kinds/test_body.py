"""Which models a pass may have work in, by the operators that it looks for."""

import pytest

from tests.small import parsed
from tiered import Graph, Value
from tiered.passes.conditions import Conditions
from tiered.passes.kinds.body import Body, key_of, operators_in
from tiered.rewriter import Rule, op, var

RELU = "(float[2] x) => (float[2] y) { y = Relu(x) }"
IF = """(float[2] x, bool p) => (float[2] y) {
    y = If(p) <then_branch = t () => (float[2] u) { u = Neg(x) },
               else_branch = e () => (float[2] v) { v = Abs(x) }> }"""
CALL = """<ir_version: 10, opset_import: ["" : 21, "local" : 1]> g (float[2] x) => (float[2] y)
    { y = local.F(x) } <domain: "local", opset_import: ["" : 21]> F (a) => (b) { b = Exp(a) }"""


def test_operators_are_those_of_bodies_and_functions_too() -> None:
    assert operators_in(parsed(RELU)) == {("", "Relu")}
    assert operators_in(parsed(IF)) == {("", name) for name in ("If", "Neg", "Abs", "body")}
    assert operators_in(parsed(CALL)) == {("local", "F"), ("", "Exp"), ("", "function")}


@pytest.mark.parametrize(
    ("matches", "found"),
    [
        (["Relu"], [True, False, False]),
        (["Relu", "Abs"], [True, True, False]),
        (["Exp"], [False, False, True]),
        (["local::F"], [False, False, True]),
        (["F"], [False, False, False]),
        (["body"], [False, True, False]),
        (["function"], [False, False, True]),
        ([], [True, True, True]),
    ],
)
def test_one_of_the_operators_is_enough(matches: list[str], found: list[bool]) -> None:
    body = Body(work=None, matches=matches)
    assert [body.may_act(parsed(text)) for text in (RELU, IF, CALL)] == found


def test_a_rule_needs_all_operators_of_its_pattern() -> None:
    def replacement(graph: Graph, x: Value) -> Value:
        return x

    rule = Rule("law", op.Neg(op.Abs(var.x)), replacement)
    body = Body(rule)
    assert body.operators == (frozenset({("", "Neg"), ("", "Abs")}),)
    assert [body.may_act(parsed(text)) for text in (RELU, IF, CALL)] == [False, True, False]


def test_conditions_are_always_checked() -> None:
    conditions = Conditions(precondition=lambda graph, ctx: True)
    assert Body(None, conditions, ["Relu"]).operators is None
    assert Body(None, conditions, ["Relu"]).may_act(parsed(IF))


def test_a_domain_is_written_before_its_operator() -> None:
    assert key_of("com.microsoft::Gelu") == ("com.microsoft", "Gelu")
    assert key_of("Conv") == ("", "Conv")
