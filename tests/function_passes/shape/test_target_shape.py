"""Targets of Reshape and Expand as constants: dims that are copied, and one that is inferred."""

import numpy as np
import pytest

from tests.small import made_by, named, parsed
from tiered.function_passes.shape._target_shape import (
    dims_beside_minus_one,
    expand_target,
    may_have_zero,
    reshape_target,
)
from tiered.graph.shape_inference.symbolic_dims import Poly, multiply, size_of_dim

N, M = size_of_dim("N"), size_of_dim("M")


def elements(*sizes: object) -> np.ndarray:
    made = np.empty(len(sizes), object)
    for at, size in enumerate(sizes):
        made[at] = size
    return made


@pytest.mark.parametrize(
    ("sizes", "allowzero", "expected"),
    [
        ((6, 4), 0, [6, 4]),
        ((N, 6), 0, [0, 6]),  # the dim of that place is copied
        ((6, N), 0, [6, -1]),  # that of another one is inferred
        ((N, None), 0, None),  # a copied 0 would leave nothing to infer from
        ((None, None), 0, None),
        ((multiply(2, N), 3), 0, [-1, 3]),
        ((0, None), 0, None),  # -1 may not be beside a 0
        ((-1, N), 0, None),
        ((N, 6), 1, [0, 6]),
        ((0, 6), 1, None),
    ],
)
def test_dims_of_the_operand_are_copied_and_one_other_is_inferred(
    sizes: tuple[object, ...], allowzero: int, expected: list[int] | None
) -> None:
    model = parsed(
        f"""(float[N,2,3] x, int64[2] t) => (float[A,B] y)
        {{ y = Reshape<allowzero = {allowzero}>(x, t) }}"""
    )
    node, data = made_by(model, "y"), named(model, "x")
    assert reshape_target(node, data, elements(*sizes)) == expected


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((2, N, 3), [2, 1, 3]),
        ((5, 2, N, 3), [5, 2, 1, 3]),
        ((N, 2, 3), None),
        ((2, None, 3), None),
        ((M, 2, N, 3), None),
    ],
)
def test_dims_that_the_operand_has_are_1_in_the_target_of_an_expand(
    sizes: tuple[object, ...], expected: list[int] | None
) -> None:
    model = parsed("(float[2,N,3] x, int64[3] t) => (float[A,B,C] y) { y = Expand(x, t) }")
    assert expand_target(made_by(model, "y"), named(model, "x"), elements(*sizes)) == expected


TARGET = """(float[N,M,4] x) => (float[?] y) <int64[1] a = {{0}}, int64[1] b = {{1}},
    int64[1] c = {{2}}, int64[1] rest = {{-1}}, int64[1] two = {{2}}> {{
    s = Shape(x)  n = Slice(s, a, b)  m = Slice(s, b, c)  t = Concat<axis = 0>({parts})
    y = Reshape(x, t) }}"""


@pytest.mark.parametrize(
    ("parts", "beside", "may_be_zero"),
    [
        ("n, rest", ["N"], False),
        ("n, m, rest", ["N", "M"], False),
        ("two, rest", [], False),
        ("n, m, two, two", [], True),
        ("two, two", [], False),
    ],
)
def test_dims_beside_the_inferred_size_must_not_be_0(
    parts: str, beside: list[str], may_be_zero: bool
) -> None:
    node = made_by(parsed(TARGET.format(parts=parts)), "y")
    assert list(dims_beside_minus_one(node)) == beside
    assert may_have_zero(node, ()) is may_be_zero
    assert may_have_zero(node, ("N", "M")) is False
    assert isinstance(N, Poly)


def test_a_target_that_is_not_known_may_have_a_0() -> None:
    node = made_by(parsed("(float[2] x, int64[1] t) => (float[A] y) { y = Reshape(x, t) }"), "y")
    assert may_have_zero(node, ())
    assert list(dims_beside_minus_one(node)) == []
