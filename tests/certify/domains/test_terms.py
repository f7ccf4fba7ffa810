"""Terms of lists: equal ones for equal lists, other ones for lists that differ anywhere."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tiered.certify.domains.element_arrays import affine
from tiered.certify.domains.terms import (
    NEGATIVE,
    Array,
    are_equal,
    constants,
    digest,
    flipped,
    kind_of,
    leaf,
    leaf_at,
    listed,
    magnitudes,
    mix,
    negated,
    odd_numbers,
    ordered,
    seed_of,
)

SEED = seed_of("list of a test")


def numbers(*shape: int) -> Array:
    return leaf(seed_of("numbers of a test"), shape)


def test_lists_differ_in_each_element_each_order_and_each_sign() -> None:
    row = numbers(6)
    swapped = [row[[*range(at), at + 1, at, *range(at + 2, 6)]] for at in range(5)]
    signs = [negated(row, np.arange(6) == at) for at in range(6)]
    pairs = [negated(row, (np.arange(6) // 2) == at) for at in range(3)]
    others = [np.where(np.arange(6) == at, numbers(7)[-1], row) for at in range(6)]
    lists = [row, *swapped, *signs, *pairs, *others]
    assert len({digest(listed(SEED, each)) for each in lists}) == len(lists)


def test_many_lists_have_as_many_terms() -> None:
    made = listed(SEED, numbers(200, 200, 3))
    assert len(np.unique(made)) == made.size


def test_tensors_of_elements_differ_in_each_number() -> None:
    """Numbers of few bits, whose bytes are mostly zeros."""
    rows = [affine(np.zeros(3), np.zeros(3), scale, offset)
            for scale in (0.0, 1.0, 2.0, 4.0) for offset in (0.0, 1.0, 2.0, 4.0)]  # fmt: skip
    for at in range(3):
        row = affine(np.zeros(3), np.zeros(3), 1.0, 1.0)
        row["o"][at] = 2.0
        rows.append(row)
    assert len({digest(row) for row in rows}) == len(rows)


def test_a_seed_depends_on_each_part_and_on_its_type() -> None:
    seeds = [(), ("a",), ("a", 1), ("a", "1"), ("a", 1.0), ("a", True), (1, "a"), (("a", 1),),
             ("a", 0.0), ("a", -0.0), ("a", (0.0,)), ("a", (-0.0,))]  # fmt: skip
    assert len({seed_of(*parts) for parts in seeds}) == len(seeds)
    assert seed_of("a", 1) == seed_of("a", 1)
    assert seed_of("a")[0] != seed_of("a")[1]


def test_a_mix_depends_on_the_seed_and_on_the_order_of_its_operands() -> None:
    x, y = leaf(seed_of("x"), (3,)), leaf(seed_of("y"), (3,))
    mixes = [mix(SEED, x, y), mix(SEED, y, x), mix(seed_of("other"), x, y), mix(SEED, x),
             mix(SEED, x, x), mix(SEED, x, y, y)]  # fmt: skip
    assert len(np.unique(np.concatenate(mixes))) == 18
    lanes = np.concatenate([each[lane] for each in mixes for lane in "ab"])
    assert len(np.unique(lanes)) == 36


def test_operands_of_a_mix_broadcast() -> None:
    x, y = numbers(4, 1), numbers(3)
    made = mix(SEED, x, y)
    assert made.shape == (4, 3)
    assert made[2, 1] == mix(SEED, x[2, 0], y[1])
    assert mix(SEED, numbers(0, 3)).shape == (0, 3)


@pytest.mark.parametrize("shape", [(40_000,), (3, 20_000), (1, 1, 40_000), (20_000, 2)])
def test_large_arrays_are_mixed_in_blocks_as_small_ones_are(shape: tuple[int, ...]) -> None:
    x = numbers(*shape)
    made = mix(SEED, x).reshape(-1)
    flat = x.reshape(-1)
    parts = [mix(SEED, flat[at : at + 1000]) for at in range(0, len(flat), 1000)]
    assert (made == np.concatenate(parts)).all()


def test_elements_of_a_leaf_are_known_by_their_places() -> None:
    whole = leaf(SEED, (4, 5))
    assert (leaf_at(SEED, np.array([[7, 19]])) == whole.reshape(-1)[[7, 19]]).all()
    assert leaf(SEED, ()).shape == ()
    assert leaf(SEED, (0, 2)).shape == (0, 2)


@pytest.mark.parametrize(
    ("numbers", "others"),
    [
        (np.array([1.5, -2, np.inf, -np.inf, 0, -0.0], np.float32), np.float64),
        (np.array([0.5, -4, np.nan, -0.0], np.float32), ml_dtypes.bfloat16),
        (np.array([65504, 6e-8], np.float16), np.float32),
        (np.array([-128, 127, 0, -1], np.int8), np.int64),
        (np.array([255, 0, 128], np.uint8), np.uint64),
        (np.array([5, 7], np.int32), ml_dtypes.int4),
        (np.array([5, -7], np.int64), np.int16),
    ],
)
def test_a_number_has_one_term_in_all_dtypes_of_its_class(numbers: Array, others: Any) -> None:
    other = numbers.astype(others)
    assert (other.astype(numbers.dtype) == numbers)[~np.isnan(numbers.astype(np.float64))].all()
    assert (constants(numbers) == constants(other)).all()


def test_numbers_that_differ_have_other_terms() -> None:
    integers = np.array([0, 1, -1, 127, -128, 2**63 - 1, -(2**63), -(2**63) + 1])
    large = np.array([2**64 - 1, 2**64 - 2, 2**63 + 1], np.uint64)
    floats = np.array([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 5e-324, 1 + 2.0**-52])
    bools = np.array([True, False])
    texts = np.array(["1", "", "True"], object)
    terms = [*map(constants, (integers, large, floats, bools, texts))]
    whole = np.concatenate(terms)
    assert len(np.unique(whole)) == len(whole)


def test_all_nans_have_one_term_without_a_sign() -> None:
    bits = np.array([0x7FC00000, 0xFFC00000, 0x7F800001], np.uint32).view(np.float32)
    terms = constants(bits)
    assert len(np.unique(terms)) == 1
    assert terms[0] == constants(np.array(np.nan))


@pytest.mark.parametrize("numbers", [np.array([3, 2**62, 2**63 - 1]), np.array([0.0, 2.5, np.inf])])
def test_a_negative_number_has_the_negated_term(numbers: Array) -> None:
    assert (constants(-numbers) == negated(constants(numbers))).all()


def test_an_unsigned_number_beyond_the_signed_ones_is_no_negative() -> None:
    term = constants(np.array([2**63], np.uint64))
    assert (constants(np.array([-(2**63)])) == negated(term)).all()


def test_complex_numbers_have_the_terms_of_both_parts() -> None:
    held = np.array([1 + 2j, 2 + 1j, 1 - 2j, -1 + 2j, 1 + 0j])
    terms = constants(held)
    assert len(np.unique(terms)) == 5
    assert (constants(held.astype(np.complex64)) == terms).all()
    assert constants(np.array(1.0)) != terms[4]


def test_strings_keep_their_shape() -> None:
    terms = constants(np.array([["a", "b"], ["b", "a"]], object))
    assert terms.shape == (2, 2)
    assert terms[0, 0] == terms[1, 1] != terms[0, 1] == terms[1, 0]
    assert constants(np.array(["a"], "<U1"))[0] == terms[0, 0]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (np.float32, "float"), (ml_dtypes.bfloat16, "float"), (ml_dtypes.float8_e4m3fn, "float"),
        (np.int8, "integer"), (np.uint64, "integer"), (ml_dtypes.int4, "integer"),
        (ml_dtypes.uint4, "integer"), (np.bool_, "bool"), (np.complex64, "complex"),
        (object, "string"), ("<U3", "string"), ("S3", "string"),
    ],
)  # fmt: skip
def test_dtypes_have_classes(kind: Any, expected: str) -> None:
    assert kind_of(np.dtype(kind)) == expected


def test_a_sign_is_one_bit_of_a_term() -> None:
    terms = numbers(64)
    plain, signs = magnitudes(terms)
    assert 0 < signs.sum() < 64
    others, turned = magnitudes(negated(terms))
    assert (others == plain).all()
    assert (turned != signs).all()
    assert (negated(plain, signs) == terms).all()
    assert (negated(terms)["a"] ^ terms["a"] == NEGATIVE[0]).all()
    assert (negated(terms)["b"] ^ terms["b"] == NEGATIVE[1]).all()
    assert not magnitudes(plain)[1].any()


def test_flipped_terms_are_others_and_come_back() -> None:
    terms = numbers(5)
    assert (flipped(terms) != terms).all()
    assert (flipped(terms) != negated(terms)).all()
    assert (flipped(flipped(terms)) == terms).all()


def test_two_terms_have_one_order() -> None:
    x, y = leaf(seed_of("x"), (50, 1)), leaf(seed_of("y"), (7,))
    less, more = ordered(x, y)
    assert less.shape == (50, 7)
    assert (less == ordered(y, x)[0]).all()
    assert (more == ordered(y, x)[1]).all()
    assert (less["a"] <= more["a"]).all()
    for one, other in ((1, 2), (2, 1), (2, 2)):
        pair = np.array([(5, one), (5, other)], x.dtype)
        first, second = ordered(pair[0], pair[1])
        assert (int(first["b"]), int(second["b"])) == (min(one, other), max(one, other))


def test_terms_are_equal_if_both_lanes_are() -> None:
    held = np.array([(1, 2), (1, 3), (4, 2), (1, 2)], leaf(SEED, ()).dtype)
    assert are_equal(held, held[0]).tolist() == [True, False, False, True]


def test_multisets_are_equal_in_any_order_and_count_their_elements() -> None:
    row = numbers(5)
    one = listed(SEED, row, is_ordered=False)
    assert one == listed(SEED, row[::-1], is_ordered=False) != listed(SEED, row[::-1])
    twice = np.concatenate([row[:4], row[:1]])
    assert listed(SEED, twice, is_ordered=False) != one
    assert listed(SEED, row[:4], is_ordered=False) != one
    assert listed(seed_of("other"), row, is_ordered=False) != one


def test_lists_of_one_sum_and_other_lengths_differ() -> None:
    zeros = np.zeros(4, numbers(1).dtype)
    assert len({int(listed(SEED, zeros[:size])["a"]) for size in range(4)}) == 4


def test_lists_are_multiplied_by_odd_numbers() -> None:
    a, b = odd_numbers(SEED, 20)
    assert (a % 2 == 1).all()
    assert (b % 2 == 1).all()
    assert len(np.unique(np.concatenate([a, b]))) == 40


def test_a_digest_depends_on_the_shape() -> None:
    row = numbers(6)
    shapes = [(6,), (2, 3), (3, 2), (1, 6), (6, 1)]
    digests = {digest(row.reshape(shape)) for shape in shapes}
    assert len(digests) == len(shapes)
    assert digest(row) == digest(row.copy())
