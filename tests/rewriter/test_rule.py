"""A rule: what its function may take, where it may match, and how far it looks."""

from typing import Any

import pytest

from tests.small import model
from tiered import Graph, Value
from tiered.rewriter import Pattern, PatternError, chain, op, var
from tiered.rewriter.rule import Rule


def nothing(graph: Graph) -> None:
    """Take no part of the match."""


def of(pattern: Pattern, function: Any = nothing) -> Rule:
    return Rule("mine", pattern, function, "a law")


PATTERN = op.Add(op.Neg(var.a), chain(op.Cast | op.Identity, var.b)).bind("sum")


def test_the_function_takes_what_the_pattern_binds_and_the_node() -> None:
    def take(graph: Graph, a: Value, node: Any, *, keep: bool = False) -> None:
        """Take some."""

    rule = of(PATTERN, take)
    assert rule.parameters == ("a", "node")
    assert rule.bound == {"a", "b", "sum", "node"}
    assert (rule.name, rule.law, rule.once) == ("mine", "a law", False)


def test_callables_other_than_functions_are_read_by_their_signature() -> None:
    class Take:
        def __call__(self, graph: Graph, b: Value, *, keep: bool = False) -> None:
            """Take some."""

    assert of(PATTERN, Take()).parameters == ("b",)


def test_a_parameter_that_the_pattern_does_not_bind_is_an_error() -> None:
    def take(graph: Graph, z: Value, c: Value, a: Value) -> None:
        """Take too much."""

    with pytest.raises(PatternError) as caught:
        of(PATTERN, take)
    assert str(caught.value) == "mine: the pattern binds no c, z; it binds a, b, node, sum"


def test_anchors_are_the_first_roots_of_all_choices() -> None:
    choices = (op.Relu(var.a) & op.Neg(var.a)) | op.Abs(var.a)
    rule = of(choices)
    assert rule.keys == {("", "Relu"), ("", "Abs")}
    assert rule.operators == (frozenset({("", "Relu"), ("", "Neg")}), frozenset({("", "Abs")}))
    assert [program.key for program in rule.programs] == [("", "Relu"), ("", "Abs")]
    assert rule.has_several_roots
    assert not of(PATTERN).has_several_roots


def test_operators_that_a_model_does_not_have() -> None:
    here = model("g (float[2,3] x) => (float[2,3] y) { a = Relu(x) y = Abs(a) }")
    rule = of((op.Relu(var.a) & op.Neg(var.a)) | op.Abs(op.Relu(var.a)))
    assert rule.missing_operators(here) == [frozenset({("", "Neg")}), frozenset()]
    here = model("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    assert rule.missing_operators(here) == [frozenset({("", "Neg")}), frozenset({("", "Abs")})]


def test_operators_of_bodies_and_functions_count() -> None:
    here = model(
        """g (float[2,3] x, bool c) => (float[2,3] y) {
        y = If(c) <then_branch = t () => (float[2,3] p) { p = Neg(x) },
                   else_branch = e () => (float[2,3] q) { q = Abs(x) }> }"""
    )
    assert of(op.Neg(var.a)).missing_operators(here) == [frozenset()]


def test_an_edit_affects_anchors_within_the_depth_of_the_pattern() -> None:
    assert of(op.Neg(var.a)).reach == 1
    assert of(PATTERN).reach == 2


def test_the_links_of_chains() -> None:
    assert of(PATTERN).links == {("", "Cast"), ("", "Identity")}
    assert of(op.Neg(var.a)).links == frozenset()
