"""Patterns that make no sense are refused where they are written."""

import pytest

from tests.rewriter.patterns import bound
from tiered.rewriter import PatternError, chain, compile_pattern, op, rest, var

NAMES = {"chain": chain, "compile_pattern": compile_pattern, "op": op, "rest": rest, "var": var}


def test_several_operators_can_be_called_at_once() -> None:
    pattern = (op.Add | op.Sub)(var.a, 1.0).bind("n")
    assert pattern == op.Add(var.a, 1.0).bind("n") | op.Sub(var.a, 1.0).bind("n")
    assert bound(pattern, "<float one = {1}> { y = Sub(x, one) }")["a"] == "x"


WRONG = {
    "op.Reluu(var.x)": "no operator 'Reluu'; did you mean 'Relu'",
    "op.Relu(var.x, var.y)": "takes X; the pattern has 2 operands",
    "op.Conv(var.x)": "takes X, W, B; the pattern has 1 operands",
    "op.Concat(rest.a, axs=1)": "has no attribute 'axs'; it has axis; did you mean 'axis'",
    "op.Concat(rest.a, axis=1.5)": "attribute 'axis' is INT, so never 1.5",
    "op.Transpose(var.x, perm=1)": "attribute 'perm' is INTS, so never 1",
    "op.Relu(var.x).out(1)": "has 1 outputs, so no output 1",
    "op.Add(rest.a, var.x)": "rest.a may only be the last operand",
    "op.Concat(var.axis, axis=var.axis)": "'axis' cannot be both attribute and value",
    "op.Add(var.x, 'text')": "'text' is no operand",
    "op.Relu(var.x, attrs=1)": "attrs is ...",
    "op.Flatten(var.x, axis=op.Relu(var.x))": "is no attribute",
    "chain(op.Cast(var.x, attrs=...), var.x)": "a chain is of operators",
    "compile_pattern(var.x)": "its root must be an operator",
    "compile_pattern(op.Relu(var.x) | var.y)": "its root must be an operator",
    "compile_pattern(op.Relu(op.Neg(var.x) & op.Abs(var.x)))": "cannot be an operand",
    "(op.Relu(var.x) | var.y).bind('n')": "var.y is no operator",
}


@pytest.mark.parametrize(("text", "message"), WRONG.items())
def test_what_makes_no_sense_is_refused_where_it_is_written(text: str, message: str) -> None:
    with pytest.raises(PatternError) as raised:
        eval(text, dict(NAMES))
    assert message in str(raised.value)
