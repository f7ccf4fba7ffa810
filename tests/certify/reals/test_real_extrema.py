"""Bounds over the reals: scales and offsets move through them, and bounds of bounds are one."""

from typing import Any

import numpy as np
import pytest

from tests.certify.call import FLOAT, INT64, call, free, known, only
from tests.certify.test_checker import proof
from tiered.certify.domains.affine_elements import Affine
from tiered.certify.domains.element_arrays import affine, is_number
from tiered.certify.domains.terms import Array
from tiered.certify.evaluation.call import NoRule
from tiered.certify.evaluation.values import CheckedTensor, Unproved
from tiered.certify.reals.real_extrema import BETWEEN, BoundedElements, between

INF = np.inf


@pytest.fixture
def reals() -> Affine:
    return Affine(2.0**-23)


def ran(reals: Affine, op: str, *inputs: CheckedTensor | None, **held: Any) -> CheckedTensor:
    return only(BETWEEN[op](call(op, *inputs, domain=reals, **held)))


def scaled(reals: Affine, x: CheckedTensor, scale: float, offset: float = 0.0) -> CheckedTensor:
    def make() -> Array:
        return reals.add(reals.scaled(x.terms, scale), reals.constant(np.asarray(offset)))

    return CheckedTensor(x.dtype, x.shape, make)


def elements(reals: Affine, x: Array, low: float, high: float) -> Array:
    return between(reals, x, np.asarray(low), np.asarray(high))


# --- elements -------------------------------------------------------------------------------------


def test_numbers_are_clipped(reals: Affine) -> None:
    numbers = np.array([-3.0, -1.0, 0.5, 2.0, 7.0])
    made = elements(reals, reals.constant(numbers), -1.0, 2.0)
    assert is_number(made).all()
    assert made["o"].tolist() == [-1.0, -1.0, 0.5, 2.0, 2.0]
    assert (made == reals.constant(made["o"])).all()


def test_between_infinities_an_element_is_itself(reals: Affine) -> None:
    lanes = np.array([5, 6], np.uint64), np.array([7, 8], np.uint64)
    x = affine(*lanes, np.array([2.0, -3.0]), np.array([1.0, 0.0]))
    assert (elements(reals, x, -INF, INF) == x).all()
    assert (elements(reals, x, 0.0, INF)["a"] != x["a"]).all()
    assert (elements(reals, x, -INF, 0.0)["a"] != x["a"]).all()


@pytest.mark.parametrize(("scale", "offset"), [(2.0, 0.0), (4.0, 8.0), (-2.0, 0.0), (-0.5, 3.0)])
def test_scale_and_offset_are_outside_of_the_bounds(
    reals: Affine, scale: float, offset: float
) -> None:
    """Of s * a + o, [low, high] is s times [(low - o) / s, (high - o) / s] of a, plus o."""
    x = reals.free("x", (3,))
    ends = sorted([(-6.0 - offset) / scale, (10.0 - offset) / scale])
    inner = elements(reals, x, *ends)
    whole = reals.add(reals.scaled(x, scale), reals.constant(np.asarray(offset)))
    made = elements(reals, whole, -6.0, 10.0)
    expected = reals.add(reals.scaled(inner, scale), reals.constant(np.asarray(offset)))
    assert (made == expected).all()


def test_other_bounds_of_other_elements_are_others(reals: Affine) -> None:
    x, y = reals.free("x", ()), reals.free("y", ())
    made = [elements(reals, *each) for each in ((x, 0, 1), (x, 0, 2), (x, -1, 1), (y, 0, 1),
                                                (x, 0, INF), (x, -INF, 0))]  # fmt: skip
    assert len(np.unique(np.stack(made))) == len(made)


# --- operators ------------------------------------------------------------------------------------


def test_relu_is_a_bound_below(reals: Affine) -> None:
    x = free("x", 4, domain=reals)
    relu = ran(reals, "Relu", x)
    zero = known(0, np.float32, reals)
    for other in (ran(reals, "Max", x, zero), ran(reals, "Max", zero, x),
                  ran(reals, "Clip", x, zero)):  # fmt: skip
        assert (relu.terms == other.terms).all()
    assert (relu.shape, relu.dtype) == ((4,), FLOAT)
    assert (relu.terms != ran(reals, "Min", x, zero).terms).all()
    assert isinstance(relu.form, BoundedElements)
    assert relu.form.base is x
    assert [relu.form.low.item(), relu.form.high.item()] == [0, INF]


@pytest.mark.parametrize(
    ("inner", "outer", "one"),
    [
        ((-1, 5), (0, 3), (0, 3)), ((0, 3), (-1, 5), (0, 3)), ((0, 3), (1, 5), (1, 3)),
        ((0, 1), (2, 5), (2, 2)), ((4, 6), (1, 2), (2, 2)),
    ],
)  # fmt: skip
def test_bounds_of_bounds_are_one(
    reals: Affine, inner: tuple[int, int], outer: tuple[int, int], one: tuple[int, int]
) -> None:
    x = free("x", 4, domain=reals)

    def clip(x: CheckedTensor, ends: tuple[int, int]) -> CheckedTensor:
        return ran(reals, "Clip", x, *(known(end, np.float32, reals) for end in ends))

    twice, once = clip(clip(x, inner), outer), clip(x, one)
    assert (twice.terms == once.terms).all()
    assert isinstance(twice.form, BoundedElements)
    assert twice.form.base is x


def test_a_lower_bound_above_the_upper_one_is_the_upper_one(reals: Affine) -> None:
    x = free("x", 4, domain=reals)
    made = ran(reals, "Clip", x, known(3, np.float32, reals), known(1, np.float32, reals))
    assert isinstance(made.form, BoundedElements)
    assert [made.form.low.item(), made.form.high.item()] == [1, 1]


def test_bounds_are_attributes_operands_or_infinite(reals: Affine) -> None:
    x = free("x", 4, domain=reals)
    one, two = known(-1, np.float32, reals), known(2, np.float32, reals)
    both = ran(reals, "Clip", x, one, two)
    assert (ran(reals, "Clip", x, min=-1.0, max=2.0, opset=6).terms == both.terms).all()
    below, above = ran(reals, "Clip", x, one), ran(reals, "Clip", x, None, two)
    assert (below.terms == ran(reals, "Max", x, one).terms).all()
    assert (above.terms == ran(reals, "Min", x, two).terms).all()
    assert (ran(reals, "Clip", x).terms == x.terms).all()


def test_the_extremum_of_several_numbers_is_the_bound(reals: Affine) -> None:
    x = free("x", 4, domain=reals)
    low, high, row = (known(each, np.float32, reals) for each in (1, 3, [[2], [0]]))
    for op, bound in (("Max", [[3], [3]]), ("Min", [[1], [0]])):
        made = ran(reals, op, low, x, high, row)
        assert made.shape == (2, 4)
        expected = ran(reals, op, x, known(bound, np.float32, reals))
        assert (made.terms == expected.terms).all()


@pytest.mark.parametrize("op", ["Max", "Min"])
def test_extrema_without_one_unknown_and_numbers_have_no_rule(reals: Affine, op: str) -> None:
    x, z = free("x", 4, domain=reals), free("z", 4, domain=reals)
    one, whole = known(1, np.float32, reals), free("n", 4, dtype=INT64, domain=reals)
    for inputs in ((x,), (x, z), (x, z, one), (one, one), (whole, known(1, np.int64, reals))):
        with pytest.raises(NoRule):
            ran(reals, op, *inputs)


@pytest.mark.parametrize("op", ["Clip", "Relu"])
def test_numbers_and_integers_have_no_rule(reals: Affine, op: str) -> None:
    for x in (known([1.0], np.float32, reals), free("n", 4, dtype=INT64, domain=reals)):
        with pytest.raises(NoRule):
            ran(reals, op, x)


def test_bounds_that_are_no_numbers_have_no_rule(reals: Affine) -> None:
    x, nan = free("x", 4, domain=reals), known(np.nan, np.float32, reals)
    one = known(1, np.float32, reals)
    for op, inputs in (("Clip", (x, nan, one)), ("Clip", (x, one, nan)), ("Max", (x, nan)),
                       ("Min", (x, one, nan))):  # fmt: skip
        with pytest.raises(NoRule):
            ran(reals, op, *inputs)
    with pytest.raises(Unproved, match="a bound of Clip is not known"):
        ran(reals, "Clip", x, free("low", domain=reals))


def test_clips_with_a_bound_of_nan_are_not_alike() -> None:
    head = "(float[N] x) => (float[N] y) <float n = {nan}, float a = {1}, float b = {2}>"
    one, other = (f"{head} {{ y = Clip(x, n, {high}) }}" for high in "ab")
    assert proof(one, one).domain == "bits"
    assert not proof(one, other).is_proved


def test_a_sum_times_infinity_keeps_its_summands() -> None:
    """(x + z + 1) * Inf and (x + z + 2) * Inf differ in sign where x + z is -1.5."""
    head = "(float[N] x, float[N] z) => (float[N] y)"
    one, other = (
        f"{head} <float i = {{inf}}, float c = {{{number}}}> {{ s = Add(x, z)  t = Add(s, c)"
        f"  p = Mul(t, i)  y = Exp(p) }}"
        for number in (1, 2)
    )
    assert not proof(one, other).is_proved
