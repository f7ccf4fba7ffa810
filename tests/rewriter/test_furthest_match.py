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


NEG = op.Neg(var.x)
MORE = [
    (op.Add(op.Neg(var.x), op.Neg(var.y)), "a = Neg(x) y = Add(a, a)",
     "Neg 'node_a' matches op.Neg(var.x) already"),
    (op.Add(NEG, NEG), "a = Neg(x) b = Neg(x) y = Add(a, b)",
     "Neg 'node_b' is not Neg 'node_a', which matches op.Neg(var.x) already"),
    (op.Concat(var.a, var.b, rest.more, axis=0), "y = Concat<axis = 0>(x)",
     "Concat 'node_y' has 1 operand; op.Concat(var.a, var.b, rest.more, axis=0) takes at least 2"),
    (op("d").F(), "y = d.F(x)", "d::F 'node_y' has 1 operand; op('d').F() takes 0"),
    (op.Relu(chain(op.Neg, op.Softmax(var.x, axis=0))),
     "s = Softmax<axis = 1>(x) n = Neg(s) y = Relu(n)", "Softmax 'node_s' has axis=1; expected 0"),
    (op.Relu(op.Softmax(var.x, axis=0) | op.Neg(op.Softmax(var.y, axis=0))),
     "s = Softmax<axis = 1>(x) n = Neg(s) y = Relu(n)", "Softmax 'node_s' has axis=1; expected 0"),
    (op.Relu(chain(op.Neg | op.Abs, op.Exp(var.x)).having(rank=3)),
     "e = Exp(x) a = Neg(e) b = Abs(a) y = Relu(b)",
     "operand 0 of Relu 'node_y' is 'b' (float[2,3]); expected .having(rank=3)"),
    (op.Relu(var.x).having(rank=3), "y = Relu(x)",
     "Relu 'node_y' is 'y' (float[2,3]); expected .having(rank=3)"),
    (op.Flatten(op.Softmax(var.a, axis=var.axis), axis=var.axis),
     "s = Softmax<axis = 1>(x) y = Flatten<axis = 0>(s)",
     "Softmax 'node_s' has axis=1; expected var.axis"),
    (op.Add(op.Clip(var.x, opt.low), op.Clip(var.y, opt.low)),
     "a = Clip(x, one) b = Clip(z) y = Add(a, b)",
     "operand 1 of Clip 'node_b' is absent, but opt.low is 'one' (float[]) already"),
    (op.Clip(var.x, const()), "y = Clip(x)",
     "operand 1 of Clip 'node_y', absent, is not constant; expected const()"),
    (op.Relu(op.Neg(var.x) | op.Exp(var.x)), "h = Abs(x) y = Relu(h)",
     "operand 0 of Relu 'node_y' comes from Abs 'node_h'; expected op.Neg(var.x)"),
    (op.Relu(op.Neg(var.x)) | op.Abs(op.Exp(var.x)), "h = Neg(x) y = Abs(h)",
     "operand 0 of Abs 'node_y' comes from Neg 'node_h'; expected op.Exp(var.x)"),
    (op.Relu(op.Neg(op.Exp(var.x))) | op.Relu(op.Abs(op.Exp(var.x))), "h = Abs(x) y = Relu(h)",
     "operand 0 of Abs 'node_h', 'x' (float[2,3]), is computed by no node; expected op.Exp(var.x)"),
    (op.Softmax(var.x, axis=0) | op.Softmax(op.Neg(op.Exp(var.x)), axis=1),
     "h = Neg(x) y = Softmax<axis = 1>(h)", "Softmax 'node_y' has axis=1; expected 0"),
]  # fmt: skip


def test_what_else_may_fail() -> None:
    for pattern, text, expected in MORE:
        assert reason(pattern, text) == expected


@pytest.mark.parametrize(
    ("size", "shown"), [(8, "[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]"), (9, "9 numbers")]
)
def test_the_numbers_of_a_small_constant_are_said(size: int, shown: str) -> None:
    numbers = ",".join(["1"] * size)
    (found,) = explained(
        op.Sub(var.x, const(2.0)),
        f"g (float[{size}] x) => (float[{size}] y) <float[{size}] w = {{{numbers}}}> "
        "{ y = Sub(x, w) }",
    )
    assert found.reason == (
        f"operand 1 of Sub 'node_y', 'w' (float[{size}]), is {shown}; expected const(2.0)"
    )


def test_a_chain_is_named_by_its_links_and_its_end() -> None:
    pattern = op.Relu(chain(op.Neg | op.Abs, op.Exp(op.Sin(var.x))))
    text = "g (float[2] x) => (float[2] y) { e = Exp(x)  a = Neg(e)  b = Abs(a)  y = Relu(b) }"
    (found,) = explained(pattern, text)
    assert found.matched == (
        "op.Relu(chain(op.Neg | op.Abs, op.Exp(op.Sin(var.x)))): Relu 'node_y'",
        "chain(op.Neg | op.Abs, op.Exp(op.Sin(var.x))): 2 nodes down to Neg 'node_a'",
        "op.Exp(op.Sin(var.x)): Exp 'node_e'",
    )


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
    assert found.matched == (
        "op.Relu(op.Neg(var.x)): Relu 'node_y'", "op.Neg(var.x): Neg 'node_h'"
    )  # fmt: skip
    for pattern, end in (
        (op.Add(op.Neg(var.x), var.x), "y = Add(h, x)"),
        (op.Add(op.Neg(var.x), op.Abs(var.z)), "b = Abs(x)  y = Add(h, b)"),
        (op.Clip(op.Neg(var.x), opt.low, opt.high), "y = Clip(h, , x)"),
    ):
        (found,) = explained(pattern, text.replace("y = Relu(h)", end))
        assert found.reason == "an inner value is a graph output ('h')", end


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
