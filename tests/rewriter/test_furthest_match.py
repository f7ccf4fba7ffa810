"""Explaining: the furthest partial match, and the first condition that failed."""

from typing import Any

import pytest

from tests.small import content, model
from tiered import Graph, Model, Skip, Value, const, op, opt, rest, rewrite, var
from tiered.passes import RewritePass
from tiered.rewriter import chain
from tiered.rewriter.furthest_match import Explanation, explain_rule


def passes_through(graph: Graph) -> Skip:
    return Skip("only looking")


def explained(pattern: Any, text: str) -> list[Explanation]:
    pass_: RewritePass = rewrite(pattern, opt_level=0, name="explained")(passes_through)
    return explain_rule(pass_.rule, model(text), pass_.options)


def reason(pattern: Any, text: str) -> str:
    """Return the reason at the last anchor, in a graph of these nodes."""
    whole = (
        "g (float[2,3] x, float[2,3] z) => (float[2,3] y) "
        f"<float[2,3] w = {{1,2,3,4,5,6}}, float one = {{1}}> {{ {text} }}"
    )
    return explained(pattern, whole)[-1].reason


RELUS = op.Relu(op.Neg(var.x))


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (RELUS, "h = Abs(x) y = Relu(h)",
         "operand 0 of Relu 'node_y' comes from Abs 'node_h'; expected op.Neg(var.x)"),
        (RELUS, "y = Relu(x)",
         "operand 0 of Relu 'node_y', 'x' (float[2,3]), is computed by no node; "
         "expected op.Neg(var.x)"),
        (op.Clip(var.x, var.low), "y = Clip(x)",
         "operand 1 of Clip 'node_y' is absent; var.low needs a value"),
        (op.Clip(var.x), "y = Clip(x, one)",
         "Clip 'node_y' has 2 operands; op.Clip(var.x) takes 1"),
        (op.Sub(var.x, var.x), "y = Sub(x, z)",
         "operand 1 of Sub 'node_y' is 'z' (float[2,3]), but var.x is 'x' (float[2,3]) already"),
        (op.Sub(var.x, const()), "y = Sub(x, z)",
         "operand 1 of Sub 'node_y', 'z' (float[2,3]), is not constant; expected const()"),
        (op.Sub(var.x, 2), "y = Sub(x, one)",
         "operand 1 of Sub 'node_y', 'one' (float[]), is 1.0; expected 2"),
        (op.Softmax(var.x, axis=0), "y = Softmax<axis = 1>(x)",
         "Softmax 'node_y' has axis=1; expected 0"),
        (op.Softmax(var.x), "y = Softmax<axis = 1>(x)",
         "Softmax 'node_y' has axis=1, which op.Softmax(var.x) does not name"),
        (op.Relu(var.x.having(rank=3)), "y = Relu(x)",
         "operand 0 of Relu 'node_y' is 'x' (float[2,3]); expected .having(rank=3)"),
        (op.Relu(chain(op.Neg | op.Abs, op.Exp(var.x))), "y = Relu(x)",
         "operand 0 of Relu 'node_y', 'x' (float[2,3]), ends no chain; "
         "expected chain(op.Neg | op.Abs, op.Exp(var.x))"),
        (op.Relu(chain(op.Neg | op.Abs, op.Exp(var.x))), "a = Neg(x) b = Abs(a) y = Relu(b)",
         "operand 0 of Neg 'node_a', 'x' (float[2,3]), is computed by no node; "
         "expected op.Exp(var.x)"),
        (op.Relu(op.Split(var.x, ..., attrs=...).out(1)),
         "a, b = Split<axis = 0, num_outputs = 2>(x) y = Relu(a)",
         "operand 0 of Relu 'node_y' is output 0 of Split 'node_a'; expected output 1"),
        (op.Concat(rest.inputs, axis=lambda axis: axis > 5), "y = Concat<axis = 0>(x, z)",
         "Concat 'node_y' has axis=0; expected <lambda>"),
        (op.Relu(op.Neg(var.x) | op.Abs(op.Exp(var.x))), "h = Abs(x) y = Relu(h)",
         "operand 0 of Abs 'node_h', 'x' (float[2,3]), is computed by no node; "
         "expected op.Exp(var.x)"),
        (op.Relu(op.Clip(var.x, opt.low, var.high)), "h = Clip(x, one) y = Relu(h)",
         "operand 2 of Clip 'node_h' is absent; var.high needs a value"),
        (op.Exp(op.Abs(var.x).shared()) & op.Neg(var.x), "h = Abs(x) y = Exp(h)",
         "nothing beside it matches op.Neg(var.x)"),
        (op.Mul(op.Concat(rest.all, axis=0), op.Concat(rest.all, axis=0)),
         "a = Concat<axis = 0>(x, z) b = Concat<axis = 0>(x, x) y = Mul(a, b)",
         "operand 0 of Concat 'node_b' and those after it differ from those that rest.all is "
         "already"),
        (op.Relu(op.Abs(var.x).having(dtype=1)), "i = Cast<to = 6>(x) h = Abs(i) y = Relu(h)",
         "operand 0 of Relu 'node_y' is 'h' (int32[2,3]); expected .having(dtype=1)"),
    ],
)  # fmt: skip
def test_the_first_condition_that_failed_is_said(pattern: Any, text: str, expected: str) -> None:
    assert reason(pattern, text) == expected


def test_of_two_orders_the_one_that_came_further_is_told() -> None:
    pattern = op.Add(op.Neg(op.Exp(var.x)), var.y)
    text = "g (float[2] x) => (float[2] y) { a = Neg(x)  y = Add(x, a) }"
    (found,) = explained(pattern, text)
    assert found.reason == (
        "operand 0 of Neg 'node_a', 'x' (float[2]), is computed by no node; expected op.Exp(var.x)"
    )
    assert found.matched == (
        "op.Add(op.Neg(op.Exp(var.x)), var.y): Add 'node_y'",
        "op.Neg(op.Exp(var.x)): Neg 'node_a'",
    )


def test_a_guard_of_the_matcher_names_the_value() -> None:
    text = "g (float[2] x) => (float[2] y, float[2] h) { h = Neg(x)  y = Relu(h) }"
    (found,) = explained(RELUS, text)
    assert found.verdict == "declined"
    assert found.reason == "an inner value is a graph output ('h')"


def test_every_anchor_is_explained_and_the_model_stays_as_it_is() -> None:
    @rewrite(op.Neg(var.x), opt_level=0)
    def declines(graph: Graph, x: Value) -> Value | Skip:
        """Leave what reads the input."""
        return Skip("{} is the input", x.name) if x.is_graph_input else x

    given = model("g (float[2] x) => (float[2] y) { a = Neg(x)  b = Neg(a)  y = Neg(b) }")
    before = content(given)
    found = explain_rule(declines.rule, given, declines.options)
    assert [(entry.node, entry.verdict, entry.reason) for entry in found] == [
        ("node_a", "declined", "x is the input"),
        ("node_b", "fires", ""),
        ("node_y", "fires", ""),
    ]
    assert content(given) == before
    assert (given.gate.count, given.gate.limit) == (0, None)


def test_a_filter_declines_as_in_the_driver() -> None:
    given: Model = model()
    pass_: RewritePass = rewrite(op.Abs(var.x), opt_level=0, name="absolute")(lambda graph, x: x)
    (found,) = explain_rule(pass_.rule, given, {}, lambda match: Skip("not here"))
    assert (found.verdict, found.reason) == ("declined", "not here")
