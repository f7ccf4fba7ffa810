"""Elements over the reals obey the laws of a field, up to the rounding of their numbers."""

from functools import partial

import numpy as np
import pytest

from tests.certify.call import FLOAT
from tests.certify.reals.field import DOMAIN, number, ran, unknown
from tiered.certify.domains.affine_elements import Affine, by_channel
from tiered.certify.domains.element_arrays import affine, atoms_of, is_number
from tiered.certify.domains.terms import Array, seed_of
from tiered.certify.evaluation.values import CheckedTensor, Unproved

EPSILON = 2.0**-23
NO_ATOM = np.zeros((), np.uint64)


@pytest.fixture
def reals() -> Affine:
    return Affine(EPSILON)


def are_same(one: Array, other: Array) -> bool:
    """Return whether elements have the same atoms, and numbers that are near."""
    return bool(
        (one["a"] == other["a"]).all()
        and (one["b"] == other["b"]).all()
        and np.allclose(one["s"], other["s"], rtol=1e-12)
        and np.allclose(one["o"], other["o"], rtol=1e-12)
    )


def three(reals: Affine) -> tuple[Array, Array, Array]:
    x, y, z = (reals.free((name,), (2, 3)) for name in "xyz")
    return x, y, z


def test_unknowns_are_different_elements(reals: Affine) -> None:
    x, y, _ = three(reals)
    assert len(np.unique(np.concatenate([x.ravel(), y.ravel()]))) == 12
    assert are_same(x, reals.free(("x",), (2, 3)))


def test_summands_have_no_order_and_cancel(reals: Affine) -> None:
    x, y, z = three(reals)
    assert are_same(reals.add(x, y, z), reals.add(z, x, y))
    assert are_same(reals.add(x, y, reals.scaled(y, -1)), x)
    assert are_same(reals.add(x, x), reals.scaled(x, 2))
    assert is_number(reals.add(x, reals.scaled(x, -1))).all()
    assert (reals.add(x, y)["a"] != reals.add(x, z)["a"]).all()
    assert (reals.add(x, y)["a"] != reals.add(z, y)["a"]).all()


def test_a_factor_of_a_sum_is_one_of_its_summands(reals: Affine) -> None:
    x, y, _ = three(reals)
    whole = reals.scaled(reals.add(x, y), 3)
    assert are_same(whole, reals.add(reals.scaled(x, 3), reals.scaled(y, 3)))
    assert not are_same(whole, reals.add(reals.scaled(x, 3), reals.scaled(y, 2)))


def test_numbers_are_computed_with(reals: Affine) -> None:
    x, _, _ = three(reals)
    two, five = (reals.constant(np.full((2, 3), number)) for number in (2.0, 5.0))
    assert are_same(reals.add(two, five), reals.constant(np.full((2, 3), 7.0)))
    assert are_same(reals.mul(two, five), reals.constant(np.full((2, 3), 10.0)))
    assert are_same(reals.mul(two, x), reals.scaled(x, 2))
    assert are_same(reals.mul(x, two), reals.scaled(x, 2))
    assert are_same(reals.inverse(two), reals.constant(np.full((2, 3), 0.5)))


def test_a_product_of_sums_is_the_sum_of_products(reals: Affine) -> None:
    x, y, _ = three(reals)
    m, n = (reals.constant(np.full((2, 3), number)) for number in (2.0, 5.0))
    whole = reals.mul(reals.add(reals.scaled(x, 3), m), reals.add(reals.scaled(y, 7), n))
    parts = reals.add(
        reals.scaled(reals.mul(x, y), 21), reals.scaled(x, 15), reals.scaled(y, 14),
        reals.constant(np.full((2, 3), 10.0)),
    )  # fmt: skip
    assert are_same(whole, parts)
    assert are_same(reals.mul(reals.add(x, m), y), reals.add(reals.mul(x, y), reals.scaled(y, 2)))
    assert are_same(reals.mul(y, reals.add(x, m)), reals.mul(reals.add(x, m), y))
    one = reals.constant(np.ones((2, 3)))
    assert are_same(reals.mul(reals.add(x, one), y), reals.add(reals.mul(x, y), y))
    assert are_same(reals.mul(x, reals.add(y, one)), reals.add(reals.mul(x, y), x))


def test_numbers_beside_products_of_one_array_stay_numbers(reals: Affine) -> None:
    x = np.concatenate([reals.free(("x",), (2,)), reals.constant(np.array([4.0]))])
    y = reals.add(x, reals.constant(np.array([0.0, 1.0, 0.0])))
    product = reals.mul(x, y)
    assert is_number(product).tolist() == [False, False, True]
    assert product["o"][2] == 16


def test_the_reciprocal_of_a_multiple_and_of_zero(reals: Affine) -> None:
    x, _, _ = three(reals)
    assert are_same(reals.inverse(reals.scaled(x, 4)), reals.scaled(reals.inverse(x), 0.25))
    with pytest.raises(Unproved, match="a division by zero"):
        reals.inverse(reals.constant(np.array([1.0, 0.0])))
    with pytest.raises(Unproved, match="a division by zero"):
        reals.inverse(reals.constant(np.zeros(2)))
    ones = reals.constant(np.ones((2, 3)))
    assert are_same(reals.inverse(ones), ones)
    assert not are_same(reals.inverse(reals.add(x, ones)), reals.inverse(x))
    assert (reals.inverse(x)["s"] == 1).all()


def test_what_is_no_number_is_unknown(reals: Affine) -> None:
    made = reals.constant(np.array([1.0, np.inf, np.nan]))
    assert is_number(made).tolist() == [True, False, False]
    with pytest.raises(Unproved, match="string constants are no reals"):
        reals.constant(np.array(["a"], object))


def test_numbers_within_four_ulps_count_as_one_and_the_distance_is_kept(reals: Affine) -> None:
    first = reals.canonical(np.array([1.0, 3.0]))
    near = reals.canonical(np.array([1.0 + 3 * EPSILON, 3.0]))
    assert near.tolist() == first.tolist()
    assert reals.bound == pytest.approx(3, rel=1e-3)
    far = reals.canonical(np.array([1.0 + 9 * EPSILON]))
    assert far.tolist() != [1.0]
    assert reals.bound == pytest.approx(3, rel=1e-3)
    known = Affine(EPSILON)
    known.canonical(np.array([0.5, 1.0, 5.0]))
    for value, expected in ((1 + 3 * EPSILON, 1.0), (1 - 4 * EPSILON, 1.0), (5 + EPSILON, 5.0),
                            (0.5 - EPSILON, 0.5)):  # fmt: skip
        assert known.canonical(np.array([value])).tolist() == [expected]
    assert known.bound == 4
    two = Affine(EPSILON)
    ends = two.canonical(np.array([1 - 2 * EPSILON, 1 + 2 * EPSILON]))
    assert two.canonical(np.array([1.0])).tolist() == ends[:1].tolist()
    assert reals.canonical(np.array([-0.0])).view(np.uint64).tolist() == [0]
    assert reals.canonical(np.array([np.inf])).tolist() == [np.inf]


def test_functions_of_equal_elements_are_equal(reals: Affine) -> None:
    x, y, _ = three(reals)
    near = reals.scaled(x, 3 * (1 + EPSILON))
    assert are_same(reals.hashed(seed_of(1), reals.scaled(x, 3)), reals.hashed(seed_of(1), near))
    assert not are_same(reals.hashed(seed_of(1), x), reals.hashed(seed_of(2), x))
    assert not are_same(reals.hashed(seed_of(1), x), reals.hashed(seed_of(1), y))
    ones = [reals.constant(np.full((2, 3), float(number))) for number in (1, 2)]
    others = [x, *(reals.scaled(x, factor) for factor in (2, 3)), *(reals.add(x, n) for n in ones)]
    found = [reals.hashed(seed_of(1), each)["a"].ravel() for each in others]
    assert len(np.unique(np.concatenate(found))) == 5 * 6
    assert (reals.plain(x) == atoms_of(x)).all()


def test_totals_are_in_any_order_and_take_scales_out(reals: Affine) -> None:
    x, _, _ = three(reals)
    assert are_same(reals.total(x), reals.total(x[:, ::-1]))
    assert are_same(reals.total(reals.scaled(x, 3)), reals.scaled(reals.total(x), 3))
    moved = reals.add(x, reals.constant(np.full((2, 3), 2.0)))
    assert are_same(reals.total(moved), reals.add(reals.total(x), reals.constant(np.full(2, 6.0))))
    numbers = reals.constant(np.arange(6.0).reshape(2, 3))
    assert are_same(reals.total(numbers), reals.constant(np.array([3.0, 12.0])))
    assert are_same(reals.total(x[:, :0]), reals.constant(np.zeros(2)))
    assert reals.total(x[:, :0]).shape == (2,)
    mixed = reals.scaled(x, np.array([1.0, 2.0, 3.0]))
    assert not are_same(reals.total(mixed), reals.total(x))
    assert are_same(reals.total(mixed), reals.total(mixed[:, ::-1]))


WEIGHTS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])


def test_scales_and_offsets_of_rows_go_into_the_columns(reals: Affine) -> None:
    x, _, _ = three(reals)
    plain = reals.dots(x, reals.constant(WEIGHTS), WEIGHTS)
    by_column = np.array([2.0, 3.0, 4.0])
    scaled = reals.dots(reals.scaled(x, by_column), reals.constant(WEIGHTS), WEIGHTS)
    folded = WEIGHTS * by_column[:, None]
    assert are_same(scaled, reals.dots(x, reals.constant(folded), folded))
    assert not are_same(scaled, plain)
    moved = reals.add(x, reals.constant(np.broadcast_to(by_column, (2, 3))))
    found = reals.dots(moved, reals.constant(WEIGHTS), WEIGHTS)
    more = reals.constant(np.broadcast_to(by_column @ WEIGHTS, (2, 2)))
    assert are_same(found, reals.add(plain, more))
    assert are_same(reals.dots(x, reals.constant(3 * WEIGHTS), 3 * WEIGHTS), reals.scaled(plain, 3))
    several = np.stack([WEIGHTS, 3 * WEIGHTS, WEIGHTS + 1])
    batch = reals.dots(x, reals.constant(several), several)
    assert batch.shape == (3, 2, 2)
    assert are_same(batch[0], plain)
    assert are_same(batch[1], reals.scaled(plain, 3))
    assert not are_same(batch[2], plain)
    none = reals.free(("none",), (4, 2, 0))
    zeros = reals.dots(none, reals.constant(np.zeros((4, 0, 5))), np.zeros((4, 0, 5)))
    assert are_same(zeros, reals.constant(np.zeros((4, 2, 5))))
    assert zeros.shape == (4, 2, 5)
    empty = reals.dots(x[:, :0], reals.constant(WEIGHTS[:0]), WEIGHTS[:0])
    assert are_same(empty, reals.constant(np.zeros((2, 2))))


def test_products_of_unknowns_take_the_scale_of_each_row_out(reals: Affine) -> None:
    x, y, _ = three(reals)
    columns = np.swapaxes(y, 0, 1)
    plain = reals.dots(x, columns, None)
    assert plain.shape == (2, 2)
    assert are_same(reals.dots(reals.scaled(x, 3), columns, None), reals.scaled(plain, 3))
    assert are_same(reals.dots(x, reals.scaled(columns, 5), None), reals.scaled(plain, 5))
    assert are_same(reals.dots(y, np.swapaxes(x, 0, 1), None), plain.T)
    uneven = reals.scaled(x, np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    found = reals.dots(uneven, reals.constant(WEIGHTS), WEIGHTS)
    assert found.shape == (2, 2)
    again = reals.dots(uneven, reals.constant(2 * WEIGHTS), 2 * WEIGHTS)
    assert are_same(again, reals.scaled(found, 2))
    assert not are_same(found, reals.dots(x, reals.constant(WEIGHTS), WEIGHTS))
    with_zero = x.copy()
    with_zero[0, 0] = affine(NO_ATOM, NO_ATOM, 0.0, 0.0)
    made = reals.dots(with_zero, columns, None)
    assert are_same(made[1], plain[1])
    assert (made[0]["a"] != plain[0]["a"]).all()
    zeros = reals.constant(np.zeros((2, 3)))
    assert are_same(reals.dots(zeros, columns, None), reals.constant(np.zeros((2, 2))))


def test_each_channel_has_a_scale_and_an_offset_or_none(reals: Affine) -> None:
    image = reals.free(("x",), (1, 2, 3))
    scales = np.array([2.0, 3.0]).reshape(1, 2, 1)
    scale, offset = by_channel(reals.scaled(image, scales), has_pads=True)
    assert scale is not None
    assert offset is not None
    assert (scale.tolist(), offset.tolist()) == ([2, 3], [0, 0])
    moved = reals.add(image, reals.constant(np.broadcast_to(scales, image.shape)))
    scale, offset = by_channel(moved, has_pads=False)
    assert offset is not None
    assert offset.tolist() == [2, 3]
    assert by_channel(moved, has_pads=True) == (None, None)
    uneven = reals.scaled(image, np.array([1.0, 2.0, 3.0]))
    assert by_channel(uneven, has_pads=False) == (None, None)
    scale, _ = by_channel(image[:0], has_pads=True)
    assert scale is not None
    assert scale.tolist() == [1, 1]


def test_a_zero_has_every_scale(reals: Affine) -> None:
    image = reals.scaled(reals.free(("x",), (1, 2, 3)), 2)
    image[0, 0, 1] = affine(NO_ATOM, NO_ATOM, 0.0, 0.0)
    scale, _ = by_channel(image, has_pads=True)
    assert scale is not None
    assert scale.tolist() == [2, 2]
    image[0, 0, 1] = affine(NO_ATOM, NO_ATOM, 0.0, 4.0)
    assert by_channel(image, has_pads=True) == (None, None)


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
def test_nothing_is_multiplied_by_what_is_no_finite_number(reals: Affine, number: float) -> None:
    x, y, _ = three(reals)
    with pytest.raises(Unproved, match="a factor that is not finite"):
        reals.scaled(x, np.array([1.0, number, 1.0]))
    weights = np.array([[number], [1.0], [number]])
    with pytest.raises(Unproved, match="a factor that is not finite"):
        reals.dots(x, reals.constant(weights), weights)
    # As an element it is an unknown like others.
    product = reals.mul(x, reals.constant(np.asarray(number)))
    assert not is_number(product).any()
    assert not are_same(product, reals.mul(y, reals.constant(np.asarray(number))))


def test_elements_are_equal_by_atoms_and_nearly_equal_numbers() -> None:
    x, z = unknown("x", 2), unknown("z", 2)
    half = ran("Mul", x, number(0.5))
    assert DOMAIN.are_equal(half, ran("Mul", x, number(0.5)))
    assert not DOMAIN.are_equal(half, ran("Mul", z, number(0.5)))
    assert not DOMAIN.are_equal(ran("Mul", x, z), ran("Mul", x, x))
    assert not DOMAIN.are_equal(half, ran("Mul", x, number(0.75)))
    assert not DOMAIN.are_equal(half, ran("Add", half, number(0.5)))
    reals, ones = Affine(EPSILON), np.zeros(2, np.uint64)
    for factor, is_equal in ((1 - 4 * EPSILON, True), (1 - 5 * EPSILON, False)):
        terms = [affine(ones, ones, scale, 0.0) for scale in (1.0, factor)]
        one, other = (CheckedTensor(FLOAT, (2,), partial(np.asarray, each)) for each in terms)
        assert reals.are_equal(one, other) is is_equal
        assert reals.bound == 4


def test_columns_are_those_that_were_seen_up_to_a_factor_and_rounding(reals: Affine) -> None:
    x, _, _ = three(reals)

    def dots(weights: Array) -> Array:
        return reals.dots(x, reals.constant(weights), weights)

    plain = dots(WEIGHTS)
    rounded, others = WEIGHTS.copy(), []
    rounded[1] *= 1 + 3 * EPSILON
    for beside in (3.5, 3.25, 3.0 + 100 * EPSILON):
        other = WEIGHTS.copy()
        other[1] = beside
        others.append(dots(other))
    assert are_same(dots(rounded), plain)
    assert reals.bound == pytest.approx(3, rel=1e-3)
    first = [each["a"][0, 0] for each in (plain, *others)]
    assert len(set(first)) == 4
    twice = dots(np.array([[1.0, 2.0, -3.0], [7.0, 14.0, -21.0], [9.0, 18.0, -27.0]]))
    for at, factor in ((1, 2.0), (2, -3.0)):
        assert are_same(twice[:, at], reals.scaled(twice[:, 0], factor))
    assert dots(np.zeros((3, 2)))["s"].tolist() == [[0, 0]] * 2
    assert reals.dots(x[:0], reals.constant(WEIGHTS), WEIGHTS).shape == (0, 2)


def test_numbers_and_pads_beside_offsets_are_no_common_scale(reals: Affine) -> None:
    image = reals.free(("x",), (2, 2, 3))
    scale, offset = by_channel(image[:, :0], has_pads=True)
    assert scale is not None
    assert offset is not None
    assert (scale.shape, offset.shape) == ((0,), (0,))
    numbers = image.copy()
    numbers[:, 1] = affine(NO_ATOM, NO_ATOM, 0.0, 4.0)
    assert by_channel(numbers, has_pads=False) == (None, None)
    moved = reals.add(image, reals.constant(np.full(image.shape, 2.0)))
    assert by_channel(moved, has_pads=False)[0] is not None
    moved[0, 0, 1] = affine(NO_ATOM, NO_ATOM, 0.0, 0.0)
    assert by_channel(moved, has_pads=False) == (None, None)
