"""Sizes that depend on dims: arithmetic holds for all sizes, and only what is sure is said."""

import itertools
import math

import pytest

from tiered.graph.shape_inference.symbolic_dims import (
    COMPOSED,
    Dims,
    Poly,
    Size,
    add,
    combined,
    divide,
    equal,
    is_invented,
    is_non_negative,
    multiply,
    sign_of,
    size_of_dim,
    subtract,
)

N, M = size_of_dim("N"), size_of_dim("M")
SIZES: list[Size] = [0, 1, -2, 6, N, M, multiply(2, N), add(N, 3), multiply(N, M), subtract(N, M)]
VALUES = [{"N": n, "M": m} for n in (0, 1, 4) for m in (0, 3)]


def at(size: Size, values: dict[str, int]) -> int:
    """Return the number that a size is for some dims."""
    if isinstance(size, int):
        return size
    terms = [
        coefficient * math.prod(values[name] for name in names) for names, coefficient in size.terms
    ]
    return sum(terms)


@pytest.mark.parametrize(("a", "b"), itertools.product(SIZES, SIZES))
def test_arithmetic_is_that_of_the_numbers(a: Size, b: Size) -> None:
    quotient = divide(a, b)
    for values in VALUES:
        x, y = at(a, values), at(b, values)
        assert at(add(a, b), values) == x + y
        assert at(subtract(a, b), values) == x - y
        assert at(multiply(a, b), values) == x * y
        if quotient is not None and y:
            assert at(quotient, values) == int(x / y)
        if equal(a, b) is not None:
            assert equal(a, b) is (x == y)
        if (sign := sign_of(a)) is not None:
            assert sign == (x > 0) - (x < 0)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (multiply(6, N), 2, multiply(3, N)),
        (multiply(6, N), multiply(2, N), 3),
        (multiply(N, M), M, N),
        (add(multiply(2, N), 4), 2, add(N, 2)),
        (add(N, M), add(N, M), 1),
        (multiply(3, N), 2, None),
        (N, M, None),
        (add(N, 1), add(N, M), None),
        (N, 0, None),
        (-7, 2, -3),
        (7, -2, -3),
        (-6, -2, 3),
    ],
)
def test_only_a_division_without_remainder_is_computed(
    a: Size, b: Size, expected: Size | None
) -> None:
    assert divide(a, b) == expected


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [(N, N, True), (N, add(N, 1), False), (N, M, None), (N, 0, None), (N, -1, False)],
)
def test_sizes_are_equal_for_all_dims_or_for_none(a: Size, b: Size, expected: bool | None) -> None:
    assert equal(a, b) is expected


def test_what_is_known_of_the_sign() -> None:
    whole, some = add(multiply(2, N), 1), subtract(N, M)
    assert isinstance(whole, Poly)
    assert isinstance(some, Poly)
    assert (whole.is_positive, whole.is_non_negative, N.is_positive) == (True, True, False)
    assert (some.is_non_negative, some.is_positive) == (False, False)
    product = multiply(N, M)
    assert isinstance(product, Poly)
    assert product.is_positive_if({"N", "M"})
    assert not product.is_positive_if({"N"})
    assert not some.is_positive_if({"N", "M"})
    assert [sign_of(each) for each in (whole, some, N, subtract(-1, N))] == [1, None, None, -1]


def test_a_single_dim_has_a_name_and_others_are_written_as_sums() -> None:
    composed = add(multiply(2, multiply(N, M)), 3)
    assert (N.symbol, str(composed)) == ("N", "3+2*M*N")
    assert isinstance(composed, Poly)
    assert composed.symbol is None
    doubled = multiply(2, N)
    assert isinstance(doubled, Poly)
    assert doubled.symbol is None


def test_composed_sizes_have_names_that_give_them_back() -> None:
    dims = Dims()
    size = add(multiply(2, N), 3)
    name = dims.dim(size)
    assert isinstance(name, str)
    assert name.startswith(COMPOSED)
    assert dims.size(name) == size
    assert [dims.dim(each) for each in (N, 4, -1, None, subtract(N, M))] == [
        "N", 4, None, None, None,
    ]  # fmt: skip
    assert [dims.size(each) for each in ("N", 4, None)] == [N, 4, None]


def test_invented_names_get_the_size_that_is_learned_once() -> None:
    dims = Dims()
    name, given = dims.invent(), dims.invent(is_given=True)
    assert name != given
    assert is_invented(name)
    assert [dims.is_unknown(each) for each in (name, given, "N", 3, None)] == [
        True, False, False, False, True,
    ]  # fmt: skip
    composed = dims.dim(add(multiply(2, size_of_dim(name)), 1))
    assert is_invented(composed)
    assert not dims.learn(given, 3)
    assert not dims.learn("N", 3)
    assert not dims.learn(name, add(size_of_dim(name), 1))
    before = dims.has_learned
    assert dims.learn(name, N)
    assert (before, dims.has_learned) == (False, True)
    assert not dims.learn(name, M)
    assert dims.size(name) == N
    assert dims.resolve(name) == "N"
    assert dims.size(composed) == add(multiply(2, N), 1)
    assert dims.resolve(composed) == dims.dim(add(multiply(2, N), 1))
    assert [dims.resolve(each) for each in ("N", 3, None)] == ["N", 3, None]
    assert not dims.is_unknown(composed)


def test_what_is_learned_of_what_is_learned_is_resolved() -> None:
    dims = Dims()
    one, two = dims.invent(), dims.invent()
    assert dims.learn(one, multiply(2, size_of_dim(two)))
    assert dims.learn(two, 5)
    assert dims.size(one) == 10
    assert dims.resolve(one) == 10


def test_a_size_and_its_minimum_broadcast_to_the_size() -> None:
    dims = Dims()
    capped = dims.capped(N, 4)
    assert capped is not None
    name = dims.dim(capped)
    assert isinstance(name, str)
    assert dims.broadcast("N", name) == dims.broadcast(name, "N") == "N"
    assert dims.broadcast("N", "M") is None
    assert dims.broadcast("N", "N") == "N"
    assert dims.capped(N, 1) is None
    assert dims.capped(size_of_dim(dims.invent()), 4) is None


def test_all_sizes_are_combined_unless_one_is_unknown() -> None:
    assert combined(add, [2, N, 1], 0) == add(N, 3)
    assert combined(multiply, [2, N, 3], 1) == multiply(6, N)
    assert combined(add, [], 0) == 0
    assert combined(multiply, [], 1) == 1
    assert combined(add, [2, None, N], 0) is None


def test_sizes_that_are_surely_not_below_0() -> None:
    sizes: list[Size] = [0, -1, 2, N, add(N, 1), subtract(N, 1), multiply(-1, N)]
    assert [is_non_negative(size) for size in sizes] == [
        True, False, True, True, True, False, False,
    ]  # fmt: skip


def test_a_minimum_is_of_a_size_that_is_not_negative_and_of_two_or_more() -> None:
    dims, below = Dims(), subtract(N, 1)
    assert isinstance(below, Poly)
    assert dims.capped(below, 4) is None
    assert dims.capped(N, 2) is not None
    assert dims.capped(N, 0) is None


def test_invented_names_are_told_from_others() -> None:
    dims = Dims()
    name = dims.invent()
    composed = dims.dim(multiply(2, size_of_dim(name)))
    plain = dims.dim(multiply(2, N))
    found = [is_invented(each) for each in (name, composed, plain, "N", 3, None)]
    assert found == [True, True, False, False, False, False]
    fresh = dims.renewed()
    assert fresh.invent() != name
    given = dims.invent(is_given=True)
    assert dims.renewed().is_given(given)
    assert not dims.renewed().is_given(name)
