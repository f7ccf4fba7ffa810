"""Affine steps: which axis a constant varies along, and when two are the same."""

import numpy as np
import pytest

from tests.small import made_by, named, parsed
from tiered.rewriter.idioms.elementwise.affine import (
    AffineStep,
    placed,
    step_of,
    varying_axis,
    why_no_factor,
)
from tiered.rewriter.skip import Skip

X = "(float[2,3,4] x) => (float[2,3,4] y) { y = Neg(x) }"


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((), None), ((1, 1), None), ((4,), 2), ((3, 1), 1), ((2, 1, 1), 0), ((1, 3, 1), 1)],
)
def test_the_axis_that_a_constant_varies_along(shape: tuple[int, ...], axis: int | None) -> None:
    assert varying_axis(named(parsed(X), "x"), np.ones(shape)) == axis


@pytest.mark.parametrize(
    ("shape", "because"),
    [
        ((3, 4), "does not vary along one axis alone"),
        ((5,), "does not vary along one axis alone"),
        ((1, 1, 1, 1), "adds dims"),
    ],
)
def test_a_constant_along_two_axes_or_of_another_size_has_none(
    shape: tuple[int, ...], because: str
) -> None:
    found = varying_axis(named(parsed(X), "x"), np.ones(shape))
    assert isinstance(found, Skip)
    assert because in str(found)


def test_the_axis_of_a_tensor_of_unknown_rank_or_without_elements() -> None:
    text = "(float[] x, float[2,0,2] e) => (float[] y) { y = Neg(x) }"
    rows: list[tuple[str, tuple[int, ...], str]] = [
        ("x", (), "None"),
        ("x", (2,), "the constant adds dims, or the rank is not known"),
        ("e", (0, 1), "1"),
        ("e", (0, 2), "the constant does not vary along one axis alone"),
    ]
    for name, shape, expected in rows:
        found = varying_axis(named(parsed(text), name), np.ones(shape))
        assert str(found) == expected, (name, shape)


def test_a_constant_is_shaped_for_its_axis_of_another_tensor() -> None:
    graph = parsed(X).main
    c = graph.constant(np.array([[1], [2], [3]], np.float32))
    moved = placed(graph, c, axis=1, rank=4).const
    assert moved is not None
    np.testing.assert_array_equal(moved, np.array([1, 2, 3], np.float32).reshape(3, 1, 1))
    vector = graph.constant(np.array([1, 2, 3], np.float32))
    assert placed(graph, vector, axis=3, rank=4) is vector
    number = placed(graph, graph.constant(np.ones((1, 1), np.float32)), None, None).const
    assert number is not None
    assert number.shape == ()


@pytest.mark.parametrize(
    ("numbers", "because"),
    [
        (np.array([1, 2], np.int32), "is not a float"),
        (np.array([1, 0], np.float32), "is 0 or not finite"),
        (np.array([1, np.inf], np.float32), "is 0 or not finite"),
        (np.array([1, np.nan], np.float32), "is 0 or not finite"),
    ],
)
def test_a_factor_keeps_what_is_no_number(numbers: np.ndarray, because: str) -> None:
    graph = parsed(X).main
    assert because in str(why_no_factor(graph.constant(numbers)))
    assert why_no_factor(graph.constant(np.array([1, -2], np.float32))) is None


STEPS = """(float[2] x) => (float[2] y, float[2] z, float[2] v, float[2] w, float[2] u, float[2] t)
    <float[2] c = {1,2}, float[2] d = {1,2}, float[2] e = {1,-2}>
    { y = Add(c, x)  z = Add(x, d)  v = Sub(x, c)  w = Sub(c, x)  u = Add(x, e)  t = Pow(x, c)
      s = Add(x, y)  r = own.Add(x, c) }"""


def step(name: str) -> AffineStep | None:
    return step_of(named(parsed(STEPS), name))


def test_the_constant_may_be_the_first_operand_only_where_operands_commute() -> None:
    found = step("y")
    assert found is not None
    assert (found.x.name, found.c.name, found.node.op_type) == ("x", "c", "Add")
    assert found.axis == 0
    assert step("v") is not None
    assert [step(name) for name in "wtxsr"] == [None] * 5
    assert step_of(None) is None


def test_steps_are_alike_if_operator_and_bits_are() -> None:
    model = parsed(STEPS)
    found = {name: step_of(named(model, name)) for name in "yzvu"}
    first = found["y"]
    assert first is not None
    assert [first.is_like(other) for other in found.values() if other is not None] == [
        True, True, False, False,
    ]  # fmt: skip


def test_the_step_of_two_constants_is_none() -> None:
    text = """(float[2] x) => (float[2] y) <float[2] c = {1,2}, float[2] d = {3,4}>
        { a = Mul(c, d)  y = Add(x, a) }"""
    model = parsed(text)
    assert step_of(made_by(model, "a").output) is None
