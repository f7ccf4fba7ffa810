"""Sums, products, powers and Casts over the reals: the laws of a field, and no others."""

import numpy as np
import onnx
import pytest

from tests.certify.call import FLOAT, INT64, call
from tests.certify.reals.field import DOMAIN, are_same, number, ran, unknown
from tiered.certify.domains.terms import Array
from tiered.certify.evaluation.values import CheckedTensor, Unproved
from tiered.certify.reals.real_arithmetic import MOST_SUMMANDS, Summands, powered
from tiered.certify.reals.real_meanings import REALS

FLOAT16, DOUBLE = int(onnx.TensorProto.FLOAT16), int(onnx.TensorProto.DOUBLE)
INT32 = int(onnx.TensorProto.INT32)


def row(name: str, *, dtype: int = FLOAT) -> CheckedTensor:
    return unknown(name, 3, dtype=dtype)


def test_sums_are_in_any_order() -> None:
    x, y, z = (row(name) for name in "xyz")
    made = ran("Add", ran("Add", x, y), z)
    assert (made.dtype, made.shape) == (FLOAT, (3,))
    assert are_same(made, ran("Add", x, ran("Add", z, y)))
    assert are_same(made, ran("Sum", z, y, x))
    assert not are_same(made, ran("Sum", x, y, y))
    assert isinstance(made.form, Summands)
    assert set(made.form.parts) == {x, y, z}


def test_what_cancels_is_gone() -> None:
    x, y, two = row("x"), row("y"), number(2)
    assert are_same(ran("Sub", ran("Add", x, y), y), ran("Add", x, number(0)))
    assert are_same(ran("Sub", x, x), ran("Mul", x, number(0)))
    assert are_same(ran("Add", x, x), ran("Mul", x, two))
    assert not are_same(ran("Sub", x, y), ran("Sub", y, x))
    assert are_same(ran("Sub", x, y), ran("Neg", ran("Sub", y, x)))
    assert are_same(ran("Neg", ran("Neg", x)), ran("Add", x, number(0)))


def test_factors_go_into_sums() -> None:
    x, y, three = row("x"), row("y"), number(3)
    apart = ran("Add", ran("Mul", x, three), ran("Mul", three, y))
    for made in (ran("Mul", ran("Add", x, y), three), ran("Mul", three, ran("Add", y, x)),
                 ran("Div", ran("Add", x, y), number(1 / 3))):  # fmt: skip
        assert are_same(made, apart)
        assert isinstance(made.form, Summands)
    nested = ran("Mul", ran("Mul", ran("Add", x, y), three), number(0.5))
    assert are_same(nested, ran("Mul", ran("Add", x, y), number(1.5)))
    assert not are_same(apart, ran("Add", ran("Mul", x, three), y))


def test_a_row_of_factors_is_one_for_each_place() -> None:
    x, y, rows = row("x"), row("y"), number([[1, 2, 3], [4, 5, 6]])
    made = ran("Mul", ran("Add", x, y), rows)
    assert made.shape == (2, 3)
    assert are_same(made, ran("Add", ran("Mul", x, rows), ran("Mul", y, rows)))


def test_numbers_are_computed_as_floats() -> None:
    three, two = number([3]), number([2])
    for op, expected in (("Add", 5), ("Sub", 1), ("Mul", 6), ("Div", 1.5), ("Sum", 5)):
        made = ran(op, three, two)
        assert made.known is not None
        assert (made.known.tolist(), made.dtype) == ([expected], FLOAT)
    assert ran("Neg", three).known == [-3]


def test_products_commute_and_quotients_are_products_by_inverses() -> None:
    x, y = row("x"), row("y")
    assert are_same(ran("Mul", x, y), ran("Mul", y, x))
    assert not are_same(ran("Mul", x, y), ran("Mul", x, x))
    assert are_same(ran("Div", x, y), ran("Mul", ran("Reciprocal", y), x))
    assert not are_same(ran("Div", x, y), ran("Div", y, x))
    assert are_same(ran("Div", x, number(4)), ran("Mul", x, number(0.25)))
    with pytest.raises(Unproved, match="a division by zero"):
        _ = ran("Div", x, number(0)).terms
    summed = ran("Add", x, y)
    with pytest.raises(Unproved, match="a division by zero"):
        _ = ran("Div", summed, number([1, 0, 1])).terms


def test_integers_have_no_ran() -> None:
    """Integers wrap: these are functions, and what holds of them are the rules on bits."""
    n, m = row("n", dtype=INT64), row("m", dtype=INT64)
    two = number(2, np.int64)
    assert are_same(ran("Add", n, m), ran("Add", m, n))
    doubled = ran("Mul", ran("Add", n, m), two)
    assert not are_same(doubled, ran("Add", ran("Mul", n, two), ran("Mul", m, two)))
    assert not are_same(ran("Sub", ran("Add", n, m), m), ran("Add", n, number(0, np.int64)))
    for op in ("Sub", "Mul", "Div"):
        assert ran(op, n, m).dtype == INT64
    summed = row("s", dtype=INT64)
    summed.form = Summands((n, m))
    for op in ("Mul", "Div"):
        assert ran(op, summed, two).form is None, op
    assert ran("Neg", n).dtype == INT64


def test_sums_of_many_are_sums_of_sums() -> None:
    parts = [row(f"x{at}") for at in range(MOST_SUMMANDS + 1)]
    whole = ran("Sum", *parts[:-1])
    assert isinstance(whole.form, Summands)
    assert len(whole.form.parts) == MOST_SUMMANDS == 8
    more = ran("Add", whole, parts[-1])
    assert isinstance(more.form, Summands)
    assert more.form.parts == (whole, parts[-1])


# --- powers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [2, 3, 4])
def test_a_small_power_is_a_product(times: int) -> None:
    x, made = row("x"), row("x")
    for _ in range(times - 1):
        made = ran("Mul", made, x)
    for exponent in (number(times), number([times]), number(times, np.int64)):
        assert are_same(ran("Pow", x, exponent), made)
    wide = ran("Pow", x, number([[times]]))
    assert wide.shape == (1, 3)


@pytest.mark.parametrize("exponent", [0, 1, 5, 0.5, 2.5, -2])
def test_other_powers_are_functions(exponent: float) -> None:
    x = row("x")
    made = ran("Pow", x, number(exponent))
    assert not are_same(made, x)
    assert are_same(made, ran("Pow", x, number(exponent)))
    assert not are_same(made, ran("Pow", x, number(exponent + 1)))


def test_powers_by_rows_or_unknowns_are_functions() -> None:
    x = row("x")
    assert not are_same(ran("Pow", x, number([2, 2, 2])), ran("Mul", x, x))
    assert ran("Pow", x, row("e")).shape == (3,)
    made = ran("Pow", number([3]), number(2))
    assert made.known == [9]


def test_a_power_counts_its_factors() -> None:
    x = DOMAIN.free("x", (2,))
    assert (powered(DOMAIN, x, 1) == x).all()
    assert (powered(DOMAIN, x, 3) == DOMAIN.mul(DOMAIN.mul(x, x), x)).all()


# --- Casts ----------------------------------------------------------------------------------------


def cast(x: CheckedTensor, to: int) -> CheckedTensor:
    return ran("Cast", x, to=to)


def test_a_wider_float_has_the_same_numbers() -> None:
    x = row("x", dtype=FLOAT16)
    made = cast(x, FLOAT)
    assert (made.dtype, made.exact) == (FLOAT, FLOAT16)
    assert are_same(made, x)
    n = row("n", dtype=INT64)
    assert are_same(cast(n, FLOAT), n)
    like = ran("CastLike", x, row("d", dtype=DOUBLE))
    assert (like.dtype, are_same(like, x)) == (DOUBLE, True)


def test_casts_of_other_classes_are_those_of_bits() -> None:
    """A Cast of integers to wider ones uses an axiom; the other way round it wraps."""
    for narrow, wide, axioms in ((INT32, INT64, {"cast-wider"}), (INT64, INT32, set[str]())):
        node = call("Cast", row("n", dtype=narrow), to=wide, domain=DOMAIN)
        REALS["Cast"](node)
        assert node.axioms == axioms
    for number_, to in ((number([1.5], np.float16), FLOAT), (number([1.5]), FLOAT)):
        assert cast(number_, to).known == [1.5]
    assert cast(number([3], np.int64), FLOAT).known == [3]


def test_a_narrower_float_rounds() -> None:
    x = row("x")
    assert not are_same(cast(x, FLOAT16), x)
    assert cast(x, FLOAT16).dtype == FLOAT16
    assert not are_same(cast(x, INT64), x)
    whole = cast(number([1.5]), INT64)
    assert whole.known == [1]


# --- BatchNormalization ---------------------------------------------------------------------------


def test_a_batch_norm_is_a_factor_and_an_offset_for_each_channel() -> None:
    x = unknown("x", 2, 2, 3)
    scale, shift, mean, var = ([3, 5], [1, 7], [0.5, 0.25], [1, 4])
    numbers = [number(each) for each in (scale, shift, mean, var)]
    made = ran("BatchNormalization", x, *numbers, epsilon=0.25)
    factor = np.array(scale) / np.sqrt(np.array(var) + 0.25)
    offset = np.array(shift) - factor * np.array(mean)

    def column(values: Array) -> CheckedTensor:
        return number(values[:, None], np.float64)

    assert are_same(made, ran("Add", ran("Mul", x, column(factor)), column(offset)))
    default = ran("BatchNormalization", x, *numbers)
    exact = ran("BatchNormalization", x, *numbers, epsilon=1e-5)
    assert are_same(default, exact)
    assert not are_same(default, made)


def test_a_batch_norm_of_rank_one_has_one_channel() -> None:
    x = unknown("x", 5)
    made = ran("BatchNormalization", x, *(number([each]) for each in (2, 3, 0, 1)), epsilon=0.0)
    assert are_same(made, ran("Add", ran("Mul", x, number(2)), number(3)))


def test_batch_norms_that_are_no_factor() -> None:
    x = unknown("x", 2, 2, 3)
    numbers = [number([1, 1]) for _ in range(4)]
    with pytest.raises(Unproved, match="BatchNormalization in training"):
        ran("BatchNormalization", x, *numbers, training_mode=1)
    with pytest.raises(Unproved, match="BatchNormalization in training"):
        REALS["BatchNormalization"](
            call("BatchNormalization", x, *numbers, outputs=("y", "m"), domain=DOMAIN)
        )
    open_ = ran("BatchNormalization", x, *numbers[:3], unknown("var", 2))
    assert open_.shape == (2, 2, 3)
    no_root = number([-1, 1])
    with pytest.raises(Unproved, match="a factor that is not finite"), np.errstate(all="ignore"):
        _ = ran("BatchNormalization", x, *numbers[:3], no_root).terms
