"""Pools over the reals: means are sums of windows, and a pad below all elements is none."""

from typing import Any

import numpy as np
import pytest

from tests.certify.call import FLOAT, INT64, call
from tests.certify.reals.field import DOMAIN, are_same, number, ran, unknown
from tiered.certify.evaluation.call import NoRule
from tiered.certify.evaluation.forms import Dequantized
from tiered.certify.evaluation.values import CheckedTensor
from tiered.certify.reals.pools import POOLS, Padded

X = unknown("x", 1, 1, 4)
INF = np.inf


def average(x: CheckedTensor, **held: Any) -> CheckedTensor:
    return ran("AveragePool", x, kernel_shape=[2], **held)


def largest(x: CheckedTensor, kernel: int = 2, **held: Any) -> CheckedTensor:
    return ran("MaxPool", x, kernel_shape=[kernel], **held)


def padded(x: CheckedTensor, before: int, after: int, filler: float | None = None) -> CheckedTensor:
    pads = number([0, 0, before, 0, 0, after], np.int64)
    return ran("Pad", x, pads, None if filler is None else number(filler))


# --- means ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "windows", "shares"),
    [
        ({}, [[0, 1], [1, 2], [2, 3]], [0.5, 0.5, 0.5]),
        ({"strides": [2]}, [[0, 1], [2, 3]], [0.5, 0.5]),
        ({"pads": [1, 0], "strides": [3]}, [[4, 0], [2, 3]], [1, 0.5]),
        ({"pads": [1, 0], "strides": [3], "count_include_pad": 1}, [[4, 0], [2, 3]], [0.5, 0.5]),
    ],
)
def test_a_mean_is_a_sum_by_the_number_of_its_elements(
    held: dict[str, Any], windows: list[list[int]], shares: list[float]
) -> None:
    """The element 4 is a zero."""
    zero = number(np.zeros((1, 1, 1)))
    lists = CheckedTensor(
        FLOAT,
        (1, 1, len(windows), 2),
        lambda: np.concatenate([X.terms, zero.terms], axis=-1)[..., windows],
    )
    sums = ran("ReduceSum", lists, number([3], np.int64), keepdims=0)
    made = average(X, **held)
    assert made.shape == (1, 1, len(windows))
    assert are_same(made, ran("Mul", sums, number(shares)))


def test_zeros_around_a_mean_that_counts_pads() -> None:
    assert are_same(average(padded(X, 1, 1)), average(X, pads=[1, 1], count_include_pad=1))
    assert not are_same(average(padded(X, 1, 1)), average(X, pads=[1, 1]))
    assert not are_same(average(padded(X, 1, 1, 2.0)), average(X, pads=[1, 1], count_include_pad=1))


@pytest.mark.parametrize("held", [{"ceil_mode": 1}, {"pads": [2, 0]}])
def test_means_without_a_number_of_elements_have_no_rule(held: dict[str, Any]) -> None:
    with pytest.raises(NoRule):
        POOLS["AveragePool"](call("AveragePool", X, kernel_shape=[2], domain=DOMAIN, **held))


@pytest.mark.parametrize("op", ["AveragePool", "MaxPool"])
def test_pools_of_numbers_integers_and_with_indices_have_no_rule(op: str) -> None:
    for x, outputs in ((number(np.ones((1, 1, 4))), ("y",)), (X, ("y", "at")),
                       (unknown("n", 1, 1, 4, dtype=INT64), ("y",))):  # fmt: skip
        with pytest.raises(NoRule):
            POOLS[op](call(op, x, outputs=outputs, kernel_shape=[2], domain=DOMAIN))


def test_too_many_windows_have_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiered.certify.reals.pools.MOST_ELEMENTS", 6)
    assert average(X).shape == (1, 1, 3)
    monkeypatch.setattr("tiered.certify.reals.pools.MOST_ELEMENTS", 5)
    with pytest.raises(NoRule):
        POOLS["AveragePool"](call("AveragePool", X, kernel_shape=[2], domain=DOMAIN))


# --- largest elements -----------------------------------------------------------------------------


def test_a_largest_element_depends_on_its_window() -> None:
    made = largest(X)
    assert (made.shape, made.dtype) == ((1, 1, 3), FLOAT)
    assert len(np.unique(made.terms)) == 3
    same = CheckedTensor(FLOAT, (1, 1, 4), lambda: np.repeat(X.terms[..., :1], 4, axis=-1))
    assert len(np.unique(largest(same).terms)) == 1
    assert not are_same(made, largest(ran("Mul", X, number(2))))
    assert not are_same(largest(X, 2, strides=[2]), largest(X, 2, strides=[2], ceil_mode=1))
    assert not are_same(largest(X, pads=[1, 0]), largest(padded(X, 1, 0)))


@pytest.mark.parametrize(
    ("bound", "filler", "is_none"),
    [(0.0, 0.0, True), (1.0, 0.0, True), (0.0, 0.5, False), (-1.0, 0.0, False), (None, 0.0, False),
     (None, -INF, True), (5.0, -INF, True)],
)  # fmt: skip
def test_a_number_below_all_elements_is_a_pad(
    bound: float | None, filler: float, is_none: bool
) -> None:
    x = X if bound is None else ran("Clip", X, number(bound))
    around, plain = largest(padded(x, 1, 1, filler)), largest(x, pads=[1, 1])
    assert are_same(around, plain) == is_none


def test_a_window_of_pads_alone_reads_them() -> None:
    relu = ran("Relu", X)
    around = largest(padded(relu, 2, 0, 0.0))
    assert not are_same(around, largest(relu, pads=[2, 0]))


def test_quantised_numbers_keep_their_own_rule() -> None:
    x = unknown("q", 1, 1, 4)
    x.form = Dequantized(X, np.array([1], np.float32), np.array([0], np.uint8), 1)
    with pytest.raises(NoRule):
        POOLS["MaxPool"](call("MaxPool", x, kernel_shape=[2], domain=DOMAIN))


# --- pads -----------------------------------------------------------------------------------------


def test_a_pad_knows_where_its_tensor_is() -> None:
    made = padded(X, 1, 2, 3.0)
    assert isinstance(made.form, Padded)
    assert (made.form.base, made.form.number) == (X, 3.0)
    assert made.form.inside.tolist() == [[[False, True, True, True, True, False, False]]]
    zero = padded(X, 1, 2)
    assert isinstance(zero.form, Padded)
    assert zero.form.number == 0
    older = ran("Pad", X, pads=[0, 0, 1, 0, 0, 2], value=3.0, opset=10)
    assert isinstance(older.form, Padded)
    assert older.form.number == 3


def test_other_pads_have_no_number_around_them() -> None:
    pads = number([0, 0, 1, 0, 0, 1], np.int64)
    assert padded(X, 0, 0) is X
    assert not isinstance(ran("Pad", X, pads, mode="edge").form, Padded)
    assert not isinstance(ran("Pad", X, pads, unknown("filler")).form, Padded)
    integers = unknown("n", 1, 1, 4, dtype=INT64)
    assert not isinstance(ran("Pad", integers, pads).form, Padded)
    numbers = ran("Pad", number(np.ones((1, 1, 4))), pads)
    assert numbers.known is not None
    assert numbers.form is None
