"""Patterns that make no sense are refused where they are written."""

from typing import Any

import numpy as np
import pytest

from tests.rewriter.patterns import bound
from tiered.rewriter import PatternError, chain, compile_pattern, const, op, rest, var
from tiered.rewriter.language import pattern_of
from tiered.rewriter.pattern import Anything, Const

NAMES = {"chain": chain, "compile_pattern": compile_pattern, "op": op, "rest": rest, "var": var}


def test_several_operators_can_be_called_at_once() -> None:
    pattern = (op.Add | op.Sub)(var.a, 1.0).bind("n")
    assert pattern == op.Add(var.a, 1.0).bind("n") | op.Sub(var.a, 1.0).bind("n")
    assert bound(pattern, "<float one = {1}> { y = Sub(x, one) }")["a"] == "x"


WRONG = {
    "op.Reluu(var.x)": "no operator 'Reluu'; did you mean 'Relu'",
    "op.Relu(var.x, var.y)": "takes X; the pattern has 2 operands",
    "op.Conv(var.x)": "takes X, W, B; the pattern has 1 operand",
    "op.Concat(rest.a, axs=1)": "has no attribute 'axs'; it has axis; did you mean 'axis'",
    "op.Concat(rest.a, axis=1.5)": "attribute 'axis' is INT, so never 1.5",
    "op.Transpose(var.x, perm=1)": "attribute 'perm' is INTS, so never 1",
    "op.Relu(var.x).out(1)": "has 1 output, so no output 1",
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
    "op.Neg(var.x, axis=1)": "Neg has no attribute 'axis'; it has none",
    "op.Clip(var.x, 0.0, 1.0, 2.0)": "takes input, min, max; the pattern has 4 operands",
    "op.Clip()": "the pattern has 0 operands",
    "op.Gelu(var.x, approximate=1)": "attribute 'approximate' is STRING, so never 1",
    "op.LeakyRelu(var.x, alpha='1')": "attribute 'alpha' is FLOAT, so never '1'",
    "(op.Cast | op.Reluu)": "no operator 'Reluu'",
}


@pytest.mark.parametrize(("text", "message"), WRONG.items())
def test_what_makes_no_sense_is_refused_where_it_is_written(text: str, message: str) -> None:
    with pytest.raises(PatternError) as raised:
        eval(text, dict(NAMES))
    assert message in str(raised.value)


def test_patterns_that_the_schema_allows() -> None:
    for pattern, count in (
        (op.Conv(var.x, ...), 2),
        (op.Conv(...), 1),
        (op.LeakyRelu(var.x, alpha=1), 1),
        (op.Gelu(var.x, approximate=b"tanh"), 1),
        (op.Flatten(var.x, axis=...), 1),
        (op.Flatten(var.x, axis=var.axis), 1),
        (op.Flatten(var.x, axis=callable), 1),
        (op.Flatten(var.x, axis=None), 1),
        (op.Constant(value=3), 0),  # a tensor: of any kind
        (op.Concat(rest.a, axis=1), 1),
        (op("mine").Flatten(var.x, var.y, more=1), 2),
    ):
        assert len(pattern.operands) == count
    assert op.Transpose(var.x, perm=[1, 0]).attributes == (("perm", (1, 0)),)
    assert op("ai.onnx").Relu(var.x) == op.Relu(var.x)
    assert op("mine").Relu(var.x).key == ("mine", "Relu")
    assert repr(op.Add | op.Sub | op("mine").Twist) == "op.Add | op.Sub | op('mine').Twist"


def test_how_strict_a_pattern_is_about_attributes() -> None:
    found = [
        (pattern.any_attributes, pattern.ignores_attributes)
        for pattern in (
            op.Relu(var.x),
            op.Relu(var.x, attrs=...),
            op.Relu(var.x, attrs="ignored"),
        )
    ]
    assert found == [(False, False), (True, False), (True, True)]


def test_an_operand_is_a_pattern_a_number_or_an_array() -> None:
    assert isinstance(pattern_of(...), Anything)
    assert pattern_of(var.x) == var.x
    for number in (True, 2, 0.5):
        assert pattern_of(number) == Const(number, is_literal=True)
    array = np.array([1, 2], np.float32)
    assert pattern_of(array) == const(array)
    assert const(array) == Const((1.0, 2.0), dtype="float32")
    assert const(np.float16(0.5), name="half") == Const(0.5, name="half", dtype="float16")
    assert const([[1, 2], [3]], rtol=0.1) == Const(((1, 2), (3,)), rtol=0.1)
    assert const(callable, name="f") == Const(predicate=callable, name="f")
    assert const() == Const()


def test_names_of_python_are_no_operators_and_no_variables() -> None:
    names: tuple[Any, ...] = (op, var)
    for of in names:
        assert not hasattr(of, "__len__")
    with pytest.raises(TypeError):
        _ = op.Add | 3
