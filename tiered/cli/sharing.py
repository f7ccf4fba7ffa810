"""Notes on `--share-weights`: what was copied all the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tiered.cli.tables import size

if TYPE_CHECKING:
    from tiered.graph.io.save import Placed


def sharing_notes(placed: Placed, target: str) -> Iterator[str]:
    """Yield what to know of weights that are not shared though that was asked for."""
    data = f"{os.path.basename(target)}.data"
    if placed.copied[0]:
        folder = os.path.dirname(target) or "."
        yield (
            f"--share-weights: {_count(placed.copied)} copied to {data}, as {folder} is not the "
            "folder of the model that was read"
        )
    if placed.made[0]:
        yield f"--share-weights: {_count(placed.made)} that passes made written to {data}"
    if not any(count for count, _ in placed):
        yield "--share-weights: the model has no external weights; nothing is shared"


def _count(placed: tuple[int, int]) -> str:
    count, nbytes = placed
    return f"{count:,} {'tensor' if count == 1 else 'tensors'} ({size(nbytes)})"
