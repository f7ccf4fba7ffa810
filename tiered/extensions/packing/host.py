"""The host's side of packing: sequences into rows, and results of rows back to sequences."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tiered.extensions.packing.packed_inputs import POSITIONS, SEGMENTS, STARTS
from tiered.support.amounts import counted
from tiered.support.errors import UsageError

Array = np.ndarray[Any, Any]


def pack_lengths(lengths: Sequence[int], row_length: int) -> list[list[int]]:
    """Return the sequences of each row: best fit in decreasing length.

    Takes O(n log n) comparisons. The sequences of a row are in order, and so are the rows, by
    their first sequence.

    Args:
        lengths: the number of tokens of each sequence.
        row_length: how many tokens fit into a row.

    Raises:
        UsageError: a sequence is empty, or longer than a row.
    """
    for number, length in enumerate(lengths):
        if not 1 <= length <= row_length:
            raise UsageError(
                f"sequence {number} has {length} tokens; expected from 1 to {row_length}"
            )
    rows: list[list[int]] = []
    free: list[tuple[int, int]] = []  # the free columns and the number of each row, sorted
    for number in sorted(range(len(lengths)), key=lambda at: (-lengths[at], at)):
        at = bisect_left(free, (lengths[number], -1))
        if at < len(free):
            left, row = free.pop(at)
        else:
            left, row = row_length, len(rows)
            rows.append([])
        rows[row].append(number)
        insort(free, (left - lengths[number], row))
    return sorted(sorted(row) for row in rows)


@dataclass(frozen=True)
class PackedBatch:
    """Sequences in rows.

    Attributes:
        inputs: the arrays for the packed model: its own inputs, `position_ids`, `sequence_ids` and
            `sequence_starts`.
        places: row and first column of each sequence.
        lengths: the number of tokens of each sequence.
    """

    inputs: Mapping[str, Array]
    places: tuple[tuple[int, int], ...]
    lengths: tuple[int, ...]

    @property
    def used(self) -> float:
        """Return the share of columns that hold a token of a sequence."""
        size = self.inputs[SEGMENTS].size
        return sum(self.lengths) / size if size else 0.0

    def feeds(self, names: Collection[str]) -> dict[str, Array]:
        """Return the arrays of the inputs that a model has.

        Args:
            names: the names of the inputs of the packed model.

        Raises:
            UsageError: there is no array for one of them.
        """
        if missing := sorted(set(names) - self.inputs.keys()):
            raise UsageError(f"the packed sequences have no {', '.join(missing)}")
        return {name: self.inputs[name] for name in names}

    def unpack(self, array: Array) -> list[Array]:
        """Return the tokens of each sequence, [length, ...], of an output [rows, columns, ...].

        An output with one row for each sequence needs no unpacking.
        """
        if array.shape[:2] != self.inputs[SEGMENTS].shape:
            raise UsageError(
                f"the array is {list(array.shape)}; expected the rows and columns "
                f"{list(self.inputs[SEGMENTS].shape)}"
            )
        return [
            array[row, start : start + length]
            for (row, start), length in zip(self.places, self.lengths, strict=True)
        ]


def pack_sequences(
    sequences: Sequence[Mapping[str, Array]],
    row_length: int,
    *,
    rows: int | None = None,
    max_valid_num: int | None = None,
) -> PackedBatch:
    """Put sequences into rows, for a model of `packed_transformer`.

    The padding of a row repeats its first token, with position 0: it is a valid token for every
    input, and `sequence_ids` keeps it apart.

    Args:
        sequences: for each sequence its arrays by input, [length, ...], without padding.
        row_length: how many tokens a row has.
        rows: the number of rows; by default as many as are needed.
        max_valid_num: the number of sequences that the model takes, if it is fixed; the starts of
            missing ones are those of the first one.

    Raises:
        UsageError: there is no sequence, the arrays of a sequence differ in length, one is longer
            than a row, or there are more rows or sequences than fit.
    """
    if not sequences:
        raise UsageError("there is no sequence to pack")
    lengths = [_length(number, each) for number, each in enumerate(sequences)]
    plan = pack_lengths(lengths, row_length)
    count = len(plan) if rows is None else rows
    if len(plan) > count:
        raise UsageError(
            f"the sequences need {counted(len(plan), 'row')} of {row_length}, not {count}"
        )
    most = len(sequences) if max_valid_num is None else max_valid_num
    if len(sequences) > most:
        raise UsageError(f"{counted(len(sequences), 'sequence')} to pack; the model takes {most}")
    places = [(0, 0)] * len(sequences)
    segments = np.zeros((count, row_length), np.int64)
    positions = np.zeros((count, row_length), np.int64)
    for row, members in enumerate(plan):
        start = 0
        for number in members:
            end = start + lengths[number]
            places[number] = (row, start)
            segments[row, start:end] = number + 1
            positions[row, start:end] = np.arange(lengths[number])
            start = end
    made = {name: _rows(sequences, name, plan, (count, row_length)) for name in sequences[0]}
    starts = np.array([*places, *(places[:1] * (most - len(places)))], np.int64)
    own = {POSITIONS: positions, SEGMENTS: segments, STARTS: starts}
    return PackedBatch({**own, **made}, tuple(places), tuple(lengths))


def _length(number: int, arrays: Mapping[str, Array]) -> int:
    """Return the number of tokens of a sequence."""
    lengths = {name: len(array) if array.ndim else 0 for name, array in arrays.items()}
    if len(set(lengths.values())) != 1:
        raise UsageError(f"the arrays of sequence {number} have the lengths {lengths}")
    return next(iter(lengths.values()))


def _rows(
    sequences: Sequence[Mapping[str, Array]],
    name: str,
    plan: Sequence[Sequence[int]],
    size: tuple[int, int],
) -> Array:
    """Return the rows of one input; padding repeats the first token."""
    first = sequences[0][name]
    made = np.empty((*size, *first.shape[1:]), first.dtype)
    made[:] = first[0]
    for row, members in enumerate(plan):
        made[row] = sequences[members[0]][name][0]
        start = 0
        for number in members:
            if name not in sequences[number]:
                raise UsageError(f"sequence {number} has no {name!r}")
            array = sequences[number][name]
            made[row, start : start + len(array)] = array
            start += len(array)
    return made
