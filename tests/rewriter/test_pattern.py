"""The parts of patterns: what they are equal to, bind and contain, and which constants fit."""

import operator
from typing import Any

import numpy as np
import pytest

from tiered.rewriter import PatternError, chain, const, op, opt, rest, var
from tiered.rewriter.pattern import Alternatives, Together, operator_text, roots

F32 = np.float32


def accepts(pattern: Any, array: np.ndarray[Any, Any]) -> bool:
    return bool(pattern.accepts(array))


@pytest.mark.parametrize(
    ("wanted", "array", "fits"),
    [
        (0.5, np.array(0.5, F32), True),
        (0.5, np.array([0.5], np.float16), True),
        (0.5, np.array([0.5, 0.5], F32), False),
        (0.1, np.array(0.1, F32), True),
        (0.1, np.array(np.nextafter(F32(0.1), F32(1))), False),
        (0.0, np.array(0.0, F32), True),
        (0.0, np.array(-0.0, F32), False),
        (-0.0, np.array(-0.0, F32), True),
        (float("nan"), np.array(np.nan, F32), True),
        (0.5, np.array(np.nan, F32), False),
        (0.5, np.array(np.inf, F32), False),
        # What 16 bits do not hold is infinite there.
        (1e6, np.array(np.inf, np.float16), True),
        (True, np.array(1.0, F32), True),
        (1, np.array(1, np.uint8), True),
        (300, np.array(44, np.uint8), False),
        (0.5, np.array(0, np.int64), False),
        (2, np.array(True), False),
        (1, np.array(True), True),
        ([1, 2], np.array([1, 2]), True),
        ([1, 2], np.array([2, 1]), False),
        (1, np.array("1", object), False),
    ],
)
def test_a_number_is_exact(wanted: Any, array: np.ndarray[Any, Any], fits: bool) -> None:
    assert accepts(const(wanted), array) is fits


def test_an_array_says_dtype_and_shape_too() -> None:
    assert accepts(const(), np.array([1, 2], F32))
    assert accepts(const(np.array([1, 2], F32)), np.array([1, 2], F32))
    assert not accepts(const(F32(1)), np.array(1, np.float16))
    assert not accepts(const(1j), np.array(1, F32))
    assert not accepts(const(np.array([1, 2], F32)), np.array([1, 2], np.float64))
    assert not accepts(const(np.array([1, 2], F32)), np.array([[1, 2]], F32))


def test_a_tolerance_is_relative() -> None:
    assert accepts(const(2**0.5, rtol=1e-6), np.array(1.4142135, F32))
    assert accepts(const([1.0, 2.0], rtol=1e-2), np.array([1.0, 2.01], F32))
    assert not accepts(const([1.0, 2.0]), np.array([1.0, 2.01], F32))
    assert not accepts(const(2**0.5, rtol=1e-6), np.array(1.41421, F32))
    # Each dtype is as near as it can be.
    assert accepts(const(2**0.5, rtol=1e-9), np.array(2**0.5, F32))
    assert accepts(const(2**0.5, rtol=1e-6), np.array(2**0.5, np.float16))
    assert not accepts(const(2**0.5, rtol=1e-6), np.array(1.4140625, F32))
    assert not accepts(const(0.0, rtol=1e-3), np.array(1e-9, F32))
    assert not accepts(const(0.5, rtol=1e-3), np.array(np.nan, F32))
    assert not accepts(const(0.5, rtol=1e-3), np.array(np.inf, F32))


def test_a_predicate_sees_the_array() -> None:
    assert accepts(const(lambda array: array.ndim == 0), np.array(3))
    assert not accepts(const(lambda array: array.ndim == 0), np.array([3]))


# --- parts ----------------------------------------------------------------------------------------


def test_patterns_that_are_written_alike_are_equal() -> None:
    one, other = op.Add(op.Neg(var.a), 1.0), op.Add(op.Neg(var.a), 1.0)
    assert one == other
    assert hash(one) == hash(other)
    for different in (
        op.Add(op.Neg(var.b), 1.0),
        op.Sub(op.Neg(var.a), 1.0),
        op.Add(op.Neg(var.a).shared(), 1.0),
        op.Add(op.Neg(var.a), 1.0).bind("n"),
        op.Add(op.Neg(var.a.having(rank=1)), 1.0),
    ):
        assert one != different
    assert var.a != opt.a
    assert var.a != "a"


def test_a_number_equals_its_constant_however_it_is_written() -> None:
    assert op.Add(var.a, 1.0) == op.Add(var.a, const(1.0))


def test_choices_and_roots_are_flat() -> None:
    a, b, c = op.Abs(var.x), op.Neg(var.x), op.Relu(var.x)
    assert (a | b) | c == a | (b | c) == Alternatives((a, b, c))
    assert (a & b) & c == a & (b & c) == Together((a, b, c))
    for combine in (operator.or_, operator.and_):
        with pytest.raises(TypeError):
            combine(a, 1)


def test_names_and_their_kinds() -> None:
    pattern = op.Concat(
        chain(op.Neg, op.Abs(var.a).bind("n")).bind("links"), opt.b, const(name="k"), rest.more,
        axis=var.axis,
    )  # fmt: skip
    assert dict(pattern.bound) == {
        "axis": "attribute", "links": "nodes", "n": "node", "a": "value", "b": "value",
        "k": "value", "more": "values",
    }  # fmt: skip
    assert dict(const(1).bound) == {}
    with pytest.raises(PatternError, match="'a' cannot be both value and node in"):
        _ = (op.Relu(var.a) | op.Relu(var.b).bind("a")).bound


def test_the_depth_is_the_longest_path_of_operators() -> None:
    assert var.a.depth == 0
    assert op.Abs(var.a).depth == 1
    assert op.Add(op.Neg(op.Abs(var.a)), op.Neg(var.a)).depth == 3
    assert op.Neg(chain(op.Cast | op.Identity, op.Abs(var.a))).depth == 3
    assert op.Neg(op.Abs(op.Exp(var.a)) | var.b).depth == 3


def test_operators_that_every_match_has_and_that_it_may_have() -> None:
    pattern = op.Add(op.Neg(op.Abs(var.a)) | op.Exp(op.Abs(var.a)), chain(op.Cast, var.b))
    assert pattern.operators == {("", "Add"), ("", "Abs")}
    assert pattern.mentioned == {("", each) for each in ("Add", "Abs", "Neg", "Exp", "Cast")}


def test_a_walk_goes_from_readers_to_operands_once_each() -> None:
    shared = op.Abs(var.a)
    pattern = op.Add(op.Neg(shared), shared)
    assert [str(part) for part in pattern.walk()].count("op.Abs(var.a)") == 1
    assert next(pattern.walk()) is pattern


def test_conditions_and_names_go_to_each_choice() -> None:
    both = (op.Abs | op.Neg)(var.a)
    assert both.bind("n") == op.Abs(var.a).bind("n") | op.Neg(var.a).bind("n")
    assert both.shared() == op.Abs(var.a).shared() | op.Neg(var.a).shared()
    assert both.having(rank=1) == op.Abs(var.a).having(rank=1) | op.Neg(var.a).having(rank=1)
    for change in ((var.a | both).shared, lambda: (var.a | both).out(0)):
        with pytest.raises(PatternError, match=r"var\.a is no operator"):
            change()


def test_outputs_of_one_node_have_one_identity() -> None:
    split = op.Split(var.a, axis=0, num_outputs=2)
    second = split.out(1)
    assert split.out(0) is split
    assert second.identity is split
    assert second.out(0) is split
    assert second.out(1) is second
    assert second.output == 1
    assert op.Split(var.a, axis=0, num_outputs=3).out(1).out(2).output == 2
    assert split.having(rank=1).out(1).conditions == ()
    assert split.bind("n").identity is not split
    with pytest.raises(PatternError, match=r"op\.TopK has 2 outputs, so no output 2"):
        op.TopK(var.a, var.k).out(2)
    assert op("mine").Twist(var.a).out(7).output == 7  # nobody knows how many it has


def test_commutative_operators_of_two_operands() -> None:
    assert op.Add(var.a, var.b).is_commutative
    assert op.Max(var.a, var.b).is_commutative
    assert not op.Max(var.a, var.b, var.c).is_commutative
    assert not op.Sub(var.a, var.b).is_commutative
    assert not op("mine").Add(var.a, var.b).is_commutative


def test_attributes_that_a_pattern_names() -> None:
    assert op.Cast(var.a, to=1, saturate=...).names == {"to", "saturate"}
    assert op.Cast(var.a, attrs=...).any_attributes
    assert not op.Cast(var.a, attrs=...).ignores_attributes


@pytest.mark.parametrize(
    ("pattern", "size"),
    [
        (const(), None),
        (const(1), 1),
        (const([1, 2]), 2),
        (const(np.zeros((2, 3))), 6),
        (const(lambda array: True), None),
    ],
)
def test_the_size_of_a_constant_is_known_from_its_numbers(pattern: Any, size: int | None) -> None:
    assert pattern.size == size


def test_the_roots_are_operators() -> None:
    a, b = op.Abs(var.x), op.Neg(var.x)
    assert roots(a) == (a,)
    assert roots(a | b) == (a, b)
    assert roots(a & b) == (a & b,)
    assert roots((a & b) | a) == (a & b, a)
    for wrong in (var.x, a | var.x, a & var.x, (a & var.x) | b):
        with pytest.raises(PatternError, match="its root must be an operator"):
            roots(wrong)


def test_an_operator_prints_with_its_domain() -> None:
    assert operator_text(("", "Add")) == "op.Add"
    assert operator_text(("com.microsoft", "Gelu")) == "op('com.microsoft').Gelu"
