"""A model whose rows hold several sequences: each is compared with a run of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tiered.graph.core.interface_map import PackMap
from tiered.support.errors import RuntimeFailure
from tiered.support.loading import extension

if TYPE_CHECKING:
    from tiered.extensions.packing.host import PackedBatch

Outputs = dict[str, Any]


class Sequences(NamedTuple):
    """Sequences that fill two rows without padding, which has no expected result.

    Attributes:
        batch: the rows.
        rest: the inputs that are not packed.
        runs: the inputs of the model before, for each sequence.
    """

    batch: PackedBatch
    rest: Outputs
    runs: list[Outputs]


def sequences_of(first: Mapping[str, Any], packed: PackMap) -> Sequences:
    """Return sequences of a sample of the model before.

    Raises:
        RuntimeFailure: its rows have no tokens.
    """
    rows, length = first[packed.inputs[0]].shape[:2]
    if not rows or not length or (packed.most and packed.most < 2):
        raise RuntimeFailure("its rows have no tokens, or it takes no two sequences")
    short = max(1, length - 1)
    # The second row has the lengths of the first one the other way round.
    lengths = [length, short] if packed.most in (2, 3) else [length, short, short, length]
    each = [
        {name: _tokens(first[name], at, number) for name in packed.inputs}
        for at, number in enumerate(lengths)
    ]
    pack_sequences = extension("packing.host").pack_sequences
    batch = pack_sequences(each, length + short, max_valid_num=packed.most or None)
    rest = {name: array for name, array in first.items() if name not in packed.inputs}
    runs = [{**rest, **{name: array[None] for name, array in one.items()}} for one in each]
    return Sequences(batch, rest, runs)


def _tokens(array: Any, at: int, length: int) -> Any:
    """Return tokens of a row; rows of a small batch begin again at another token."""
    rows = array.shape[0]
    return np.roll(array[at % rows], at // rows, axis=0)[:length]


def feeds_of(sequences: Sequences, names: Sequence[str]) -> Outputs:
    """Return the inputs of the model after."""
    own = [name for name in names if name not in sequences.rest]
    return {**sequences.rest, **sequences.batch.feeds(own)}


def joined(runs: Sequence[Mapping[str, Any]], sequences: Sequences, packed: PackMap) -> Outputs:
    """Return the outputs of the runs as those of the rows."""
    found: Outputs = {}
    for name in runs[0]:
        arrays = [run[name][0] for run in runs]
        if name in packed.pooled:
            missing = max(packed.most - len(arrays), 0)
            found[name] = np.stack([*arrays, *[arrays[0]] * missing])
            continue
        size = len(arrays[0]) + len(arrays[1])
        whole: Any = np.empty((len(arrays) // 2, size, *arrays[0].shape[1:]), arrays[0].dtype)
        for (row, start), array in zip(sequences.batch.places, arrays, strict=True):
            whole[row, start : start + len(array)] = array
        found[name] = whole
    return found
