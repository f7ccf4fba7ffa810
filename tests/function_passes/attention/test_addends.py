"""A constant addend is followed through movement, element by element."""

import numpy as np
import pytest

from tests.small import made_by, named, parsed
from tiered.function_passes.attention._addends import Addend, addend_at_use, addend_of
from tiered.rewriter.skip import Skip


def followed(text: str) -> tuple[Addend, str, int] | str:
    """Return what `a = Add(x, c)` adds where it is used, with that operator and slot."""
    model = parsed(text)
    found = addend_at_use(made_by(model, "a"), named(model, "x"), named(model, "c"))
    return str(found) if isinstance(found, Skip) else (found[0], found[1].op_type, found[2])


def added(text: str) -> Addend | str:
    model = parsed(text)
    found = addend_of(made_by(model, "a"), named(model, "x"), named(model, "c"))
    return str(found) if isinstance(found, Skip) else found


def test_numbers_have_the_rank_of_the_value_and_a_dim_of_1_where_they_do_not_vary() -> None:
    found = added(
        "(float[2,3] x) => (float[2,3] a) <float[2,3] c = {1,2,3,1,2,3}> { a = Add(x, c) }"
    )
    assert isinstance(found, Addend)
    np.testing.assert_array_equal(found.numbers, [[1, 2, 3]])
    assert [found.varies_along(axis) for axis in (0, 1)] == [False, True]


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("(int32[2] x) => (int32[2] a) <int32[2] c = {1,2}>", "the dtype is not a float"),
        ("(float[2] x) => (float[1,2] a) <float[1,2] c = {1,2}>", "may change the shape"),
        ("(float[1] x) => (float[2] a) <float[2] c = {1,2}>", "may change the shape"),
    ],
)
def test_an_addend_keeps_floats_and_their_shape(text: str, because: str) -> None:
    assert because in str(added(f"{text} {{ a = Add(x, c) }}"))


def test_an_infinite_addend_is_none() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }")
    c = model.main.constant(np.array([1, np.inf], np.float32))
    made = model.main.op.Add(named(model, "x"), c)
    assert made.producer is not None
    assert str(addend_of(made.producer, named(model, "x"), c)) == "the addend is not finite"


def test_a_transpose_moves_the_axes_of_the_numbers() -> None:
    found = followed(
        """(float[2,3] x) => (float[3,2] y) <float[3] c = {1,2,3}>
        { a = Add(x, c)  t = Transpose<perm=[1,0]>(a)  y = Relu(t) }"""
    )
    assert isinstance(found, tuple)
    addend, user, slot = found
    np.testing.assert_array_equal(addend.numbers, [[1], [2], [3]])
    assert (addend.value.name, user, slot) == ("t", "Relu", 0)


def test_a_reshape_that_splits_the_last_axis_keeps_each_number_with_its_element() -> None:
    found = followed(
        """(float[N,6] x) => (float[N,2,3] y) <float[6] c = {1,2,3,4,5,6}, int64[3] s = {0,2,3}>
        { a = Add(x, c)  t = Reshape(a, s)  y = Neg(t) }"""
    )
    assert isinstance(found, tuple)
    np.testing.assert_array_equal(found[0].numbers, [[[1, 2, 3], [4, 5, 6]]])


def test_an_addend_that_is_one_number_passes_any_reshape() -> None:
    found = followed(
        """(float[N,M] x) => (float[K] y) <float c = {7}, int64[1] s = {-1}>
        { a = Add(x, c)  t = Reshape(a, s)  y = Neg(t) }"""
    )
    assert isinstance(found, tuple)
    np.testing.assert_array_equal(found[0].numbers, [7])


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            """(float[4,N] x) => (float[M] y) <float[4,1] c = {1,2,3,4}, int64[1] s = {-1}>
            { a = Add(x, c)  t = Reshape(a, s)  y = Neg(t) }""",
            "takes the axes of the addend apart",
        ),
        (
            """(float[2,3] x) => (float[3,2] y) <float[3] c = {1,2,3}, int64[2] s = {3,2}>
            { a = Add(x, c)  t = Reshape(a, s)  y = Neg(t) }""",
            "takes the axes of the addend apart",
        ),
        (
            """(float[2] x) => (float[2] y, float[2] z) <float[2] c = {1,2}>
            { a = Add(x, c)  y = Neg(a)  z = Abs(a) }""",
            "a has other consumers",
        ),
        (
            """(float[2] x, bool p) => (float[2] y) <float[2] c = {1,2}>
            { a = Add(x, c)  y = If(p) <then_branch = t () => (float[2] u) { u = Neg(a) },
              else_branch = e () => (float[2] v) { v = Identity(x) }> }""",
            "a body reads a",
        ),
        (
            """(float[2] x, int64[n] s) => (float[k] y) <float[2] c = {1,2}>
            { a = Add(x, c)  t = Reshape(a, s)  y = Neg(t) }""",
            "a rank of Reshape is not known",
        ),
    ],
)
def test_what_takes_numbers_from_their_elements_ends_the_way(text: str, because: str) -> None:
    assert because in str(followed(text))


def test_a_value_that_is_no_first_operand_is_used_there() -> None:
    found = followed(
        "(float[4] x) => (float[4] y) <float[4] c = {1,2,3,4}> { a = Add(x, c)  y = Sub(x, a) }"
    )
    assert isinstance(found, tuple)
    assert found[1:] == ("Sub", 1)
