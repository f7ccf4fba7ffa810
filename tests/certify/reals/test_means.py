"""Sums, means, normalizations and Gelu over the reals are what their definitions say."""

from typing import Any

import numpy as np
import pytest

from tests.certify.call import FLOAT, INT64, call
from tests.certify.reals.field import DOMAIN, are_same, number, ran, unknown
from tiered.certify.evaluation.call import NoRule
from tiered.certify.evaluation.values import CheckedTensor
from tiered.certify.reals.means import gelu, layer_normalization, reduce
from tiered.certify.reals.real_meanings import REALS

X = unknown("x", 2, 3, 4)


def axes(*places: int) -> CheckedTensor:
    return number(places, np.int64)


# --- sums and means -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("places", "held", "shape", "count"),
    [
        ((1,), {}, (2, 1, 4), 3), ((-1, 0), {"keepdims": 0}, (3,), 8),
        ((), {}, (1, 1, 1), 24), ((2, 2), {}, (2, 3, 1), 4),
    ],
)  # fmt: skip
def test_a_mean_is_a_share_of_the_sum(
    places: tuple[int, ...], held: dict[str, int], shape: tuple[int, ...], count: int
) -> None:
    total, mean = (ran(op, X, axes(*places), **held) for op in ("ReduceSum", "ReduceMean"))
    assert (total.shape, total.dtype, total.terms.shape) == (shape, FLOAT, shape)
    assert are_same(mean, ran("Mul", total, number(1 / count, np.float64)))


def test_sums_are_in_any_order_and_factors_go_through() -> None:
    turned = CheckedTensor(FLOAT, (2, 3, 4), lambda: X.terms[:, ::-1])
    made = ran("ReduceSum", X, axes(1))
    assert are_same(made, ran("ReduceSum", turned, axes(1)))
    assert not are_same(made, ran("ReduceSum", unknown("other", 2, 3, 4), axes(1)))
    scaled = ran("ReduceSum", ran("Mul", X, number(2)), axes(1))
    assert are_same(scaled, ran("Mul", made, number(2)))
    moved = ran("ReduceSum", ran("Add", X, number(2)), axes(1))
    assert are_same(moved, ran("Add", made, number(6)))
    mean = ran("ReduceMean", ran("Add", X, number(2)), axes(1))
    assert are_same(mean, ran("Add", ran("ReduceMean", X, axes(1)), number(2)))


def test_other_sums_are_functions() -> None:
    assert ran("ReduceSum", X, noop_with_empty_axes=1).shape == (2, 3, 4)
    integers = ran("ReduceSum", unknown("n", 4, dtype=INT64), axes(0))
    assert integers.dtype == INT64
    found = reduce(call("ReduceSum", number([1, 2]), axes(0), domain=DOMAIN))
    assert found[0] is not None
    assert found[0].known is not None
    assert found[0].known.tolist() == [3]


@pytest.mark.parametrize("shape", [(1, 2, 4), (1, 2, 3, 4)])
def test_a_global_average_is_the_mean_over_space(shape: tuple[int, ...]) -> None:
    x = unknown("image", *shape)
    made = ran("GlobalAveragePool", x)
    assert made.shape == (*shape[:2], *[1] * (len(shape) - 2))
    assert are_same(made, ran("ReduceMean", x, axes(*range(2, len(shape)))))


# --- normalizations -------------------------------------------------------------------------------


def by_definition(
    x: CheckedTensor, scale: CheckedTensor, places: tuple[int, ...], epsilon: Any
) -> CheckedTensor:
    centred = ran("Sub", x, ran("ReduceMean", x, axes(*places)))
    variance = ran("ReduceMean", ran("Mul", centred, centred), axes(*places))
    root = ran("Sqrt", ran("Add", variance, number(epsilon)))
    return ran("Mul", ran("Div", centred, root), scale)


@pytest.mark.parametrize(
    ("held", "places", "epsilon"),
    [({}, (2,), 1e-5), ({"axis": 1}, (1, 2), 1e-5), ({"axis": -2, "epsilon": 0.5}, (1, 2), 0.5)],
)
def test_a_layer_norm_is_its_definition(
    held: dict[str, Any], places: tuple[int, ...], epsilon: float
) -> None:
    scale, bias = unknown("scale", 4), unknown("bias", 4)
    expected = by_definition(X, scale, places, epsilon)
    made = ran("LayerNormalization", X, scale, **held)
    assert (made.shape, made.dtype) == ((2, 3, 4), FLOAT)
    assert are_same(made, expected)
    biased = ran("LayerNormalization", X, scale, bias, **held)
    assert are_same(biased, ran("Add", expected, bias))
    assert not are_same(biased, made)


def test_what_is_added_to_a_row_is_not_seen() -> None:
    scale = unknown("scale", 4)
    made = ran("LayerNormalization", X, scale)
    assert are_same(ran("LayerNormalization", ran("Add", X, number(3)), scale), made)
    assert not are_same(ran("LayerNormalization", ran("Mul", X, number(3)), scale), made)


def test_a_root_mean_square_norm_has_no_mean_and_no_bias() -> None:
    scale = unknown("scale", 4)
    square = ran("ReduceMean", ran("Mul", X, X), axes(2))
    root = ran("Sqrt", ran("Add", square, number(0.25)))
    expected = ran("Mul", ran("Div", X, root), scale)
    made = ran("RMSNormalization", X, scale, epsilon=0.25)
    assert are_same(made, expected)
    assert are_same(ran("RMSNormalization", X, scale, unknown("bias", 4), epsilon=0.25), made)


def test_norms_without_a_definition_here() -> None:
    scale = unknown("scale", 4)
    with pytest.raises(NoRule):
        layer_normalization(
            call("LayerNormalization", X, scale, outputs=("y", "mean"), domain=DOMAIN)
        )
    with pytest.raises(NoRule):
        layer_normalization(call("LayerNormalization", number([1, 2]), scale, domain=DOMAIN))
    one = call("LayerNormalization", X, scale, outputs=("y", ""), domain=DOMAIN)
    assert len(layer_normalization(one)) == 1
    assert "LayerNormalization" in REALS


# --- Gelu -----------------------------------------------------------------------------------------


def test_a_gelu_is_half_of_x_times_one_plus_erf() -> None:
    inner = ran("Erf", ran("Mul", X, number(np.sqrt(0.5), np.float64)))
    expected = ran("Mul", ran("Mul", X, number(0.5)), ran("Add", inner, number(1)))
    assert are_same(ran("Gelu", X), expected)
    assert are_same(ran("Gelu", X, approximate="none"), expected)


def test_its_approximation_is_by_tanh() -> None:
    cube = ran("Mul", ran("Pow", X, number(3)), number(0.044715, np.float64))
    argument = ran("Mul", ran("Add", X, cube), number(np.sqrt(2 / np.pi), np.float64))
    inner = ran("Add", ran("Tanh", argument), number(1))
    expected = ran("Mul", ran("Mul", X, number(0.5)), inner)
    made = ran("Gelu", X, approximate="tanh")
    assert are_same(made, expected)
    assert not are_same(made, ran("Gelu", X))


def test_a_gelu_of_numbers_is_a_number() -> None:
    (made,) = gelu(call("Gelu", number([0.0]), domain=DOMAIN))
    assert made is not None
    assert made.known is not None
    assert made.known.tolist() == [0]
