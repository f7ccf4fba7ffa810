"""Elements over the reals as arrays: numbers have no atom, and summands have one order."""

import itertools

import numpy as np
import pytest

from tiered.certify.domains.element_arrays import (
    AFFINE,
    affine,
    atoms_of,
    is_number,
    merged,
    normal,
    of_atoms,
    same_atoms,
    without_zero,
)
from tiered.certify.domains.terms import TERM, Array, leaf, seed_of


def one(a: int, b: int, scale: float, offset: float = 0.0) -> Array:
    return affine(np.array(a, np.uint64), np.array(b, np.uint64), scale, offset)


def parts(element: Array) -> tuple[int, int, float, float]:
    return int(element["a"]), int(element["b"]), float(element["s"]), float(element["o"])


def test_elements_broadcast_their_parts() -> None:
    made = affine(np.zeros((2, 1), np.uint64), np.array(7, np.uint64), np.ones(3), 5.0)
    assert (made.shape, made.dtype) == ((2, 3), AFFINE)
    assert parts(made[1, 2]) == (0, 7, 1.0, 5.0)


def test_atoms_are_elements_of_scale_one() -> None:
    terms = leaf(seed_of("x"), (3,))
    made = of_atoms(terms)
    assert (made["s"] == 1).all()
    assert (made["o"] == 0).all()
    assert atoms_of(made).dtype == TERM
    assert (atoms_of(made) == terms).all()


def test_a_scale_of_zero_is_a_number() -> None:
    held = np.array([(1, 2, 0.0, 3), (0, 0, -0.0, 0), (1, 2, 1e-300, 0)], AFFINE)
    assert is_number(held).tolist() == [True, True, False]
    assert [parts(each) for each in without_zero(held)] == [
        (0, 0, 0.0, 3.0), (0, 0, -0.0, 0.0), (1, 2, 1e-300, 0.0)
    ]  # fmt: skip
    assert without_zero(held[2:]) is not None
    assert parts(held[0])[:2] == (1, 2)  # not in place


def test_atoms_are_the_same_if_both_lanes_are() -> None:
    held = np.array([(1, 2, 1, 0), (1, 3, 1, 0), (4, 2, 1, 0), (1, 2, 5, 6)], AFFINE)
    assert same_atoms(held, held[0]).tolist() == [True, False, False, True]


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        (one(1, 2, 2.0, 6.0), (1, 2, 1.0, 3.0)),
        (one(1, 2, -4.0, 2.0), (1, 2, 1.0, -0.5)),
        (one(0, 0, 0.0, 5.0), (0, 0, 0.0, 5.0)),
        (one(1, 2, 1.0, 0.0), (1, 2, 1.0, 0.0)),
    ],
)
def test_a_normal_element_has_the_scale_one(
    element: Array, expected: tuple[int, int, float, float]
) -> None:
    assert parts(normal(element)) == expected


def test_equal_atoms_become_one_summand_and_zeros_are_last() -> None:
    lanes = [one(3, 1, 2.0), one(0, 0, 0.0), one(1, 5, 1.0), one(3, 1, 4.0), one(1, 4, -1.0)]
    for order in itertools.permutations(lanes):
        found = [parts(each) for each in merged(order)]
        assert found == [
            (1, 4, -1.0, 0.0), (1, 5, 1.0, 0.0), (3, 1, 6.0, 0.0), (0, 0, 0.0, 0.0),
            (0, 0, 0.0, 0.0),
        ]  # fmt: skip


def test_summands_that_cancel_have_no_atom() -> None:
    lanes = [one(3, 1, 2.0), one(1, 1, 1.0), one(3, 1, -2.0)]
    assert [parts(each) for each in merged(lanes)] == [
        (1, 1, 1.0, 0.0), (0, 0, 0.0, 0.0), (0, 0, 0.0, 0.0)
    ]  # fmt: skip


def test_three_of_one_atom_become_one() -> None:
    lanes = [one(3, 1, 2.0), one(3, 1, 3.0), one(3, 1, 4.0)]
    assert [parts(each)[2] for each in merged(lanes)] == [9.0, 0.0, 0.0]
    assert merged(lanes[:1]) == [lanes[0]]


def test_each_place_is_sorted_for_itself() -> None:
    x = np.array([(1, 0, 1, 0), (2, 0, 1, 0), (2, 0, 1, 0)], AFFINE)
    y = np.array([(2, 0, 5, 0), (1, 0, 5, 0), (2, 0, 5, 0)], AFFINE)
    first, last = merged([x, y])
    assert [parts(each) for each in first] == [(1, 0, 1, 0), (1, 0, 5, 0), (2, 0, 6, 0)]
    assert [parts(each) for each in last] == [(2, 0, 5, 0), (2, 0, 1, 0), (0, 0, 0, 0)]
