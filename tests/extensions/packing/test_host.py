"""Sequences into rows and back, without a model."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tiered import UsageError
from tiered.extensions.packing import pack_lengths, pack_sequences


@given(st.lists(st.integers(1, 20), max_size=60), st.integers(20, 40))
def test_each_sequence_is_in_one_row_and_no_row_is_too_long(
    lengths: list[int], row_length: int
) -> None:
    rows = pack_lengths(lengths, row_length)
    assert sorted(number for row in rows for number in row) == list(range(len(lengths)))
    assert all(sum(lengths[number] for number in row) <= row_length for row in rows)
    # Two rows that are at most half full would have been one.
    half = [row for row in rows if 2 * sum(lengths[number] for number in row) <= row_length]
    assert len(half) <= 1


def test_short_sequences_fill_what_long_ones_leave() -> None:
    assert pack_lengths([3, 8, 5, 2, 7], 10) == [[0, 4], [1, 3], [2]]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=20))
def test_unpacked_arrays_are_those_that_were_packed(lengths: list[int]) -> None:
    arrays = [np.full((length, 2), number) for number, length in enumerate(lengths)]
    batch = pack_sequences([{"x": array} for array in arrays], 12)
    for array, found in zip(arrays, batch.unpack(batch.inputs["x"]), strict=True):
        np.testing.assert_array_equal(found, array)
    segments = batch.inputs["sequence_ids"]
    assert batch.used == (segments > 0).mean()
    for found, length in zip(batch.unpack(batch.inputs["position_ids"]), lengths, strict=True):
        assert found.tolist() == list(range(length))


def test_padding_repeats_the_first_token_of_the_row() -> None:
    batch = pack_sequences([{"ids": np.array([7, 8])}, {"ids": np.array([5])}], 4, rows=2)
    assert batch.inputs["ids"].tolist() == [[7, 8, 5, 7], [7, 7, 7, 7]]
    assert batch.inputs["sequence_ids"].tolist() == [[1, 1, 2, 0], [0, 0, 0, 0]]
    assert batch.inputs["sequence_starts"].tolist() == [[0, 0], [0, 2]]


def test_what_cannot_be_packed_is_named() -> None:
    ids = {"ids": np.arange(3)}
    for call, reason in (
        (lambda: pack_sequences([], 4), "there is no sequence"),
        (lambda: pack_sequences([ids], 2), "sequence 0 has 3 tokens; expected from 1 to 2"),
        (lambda: pack_sequences([{**ids, "x": np.arange(2)}], 4), "have the lengths"),
        (
            lambda: pack_sequences([{"ids": np.arange(1), "x": np.array(2)}], 4),
            "sequence 0 have the lengths {'ids': 1, 'x': 0}",
        ),
        (lambda: pack_sequences([ids, ids], 4, rows=1), "need 2 rows of 4, not 1"),
        (lambda: pack_sequences([ids], 4, max_valid_num=0), "the model takes 0"),
        (lambda: pack_sequences([ids, {"x": np.arange(2)}], 8), "sequence 1 has no 'ids'"),
        (lambda: pack_sequences([ids], 4).feeds(["x"]), "have no x"),
        (lambda: pack_sequences([ids], 4).unpack(np.zeros((3, 4))), "expected the rows"),
    ):
        with pytest.raises(UsageError, match=reason):
            call()
