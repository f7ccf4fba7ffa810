"""The pads of the spatial axes of a Pad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tiered.graph.core.types import non_negative_axes

if TYPE_CHECKING:
    from tiered.graph.core.value import Value


def spatial_pads(x: Value, pads: Value, axes: Value | None) -> list[int] | None:
    """Return the pads of the spatial axes: the begins of all axes, then the ends.

    None if they are unknown, if an axis is cropped, or if other axes are padded too.

    Args:
        x: the padded value, of shape [batch, channels, *spatial].
        pads, axes: the operands of the Pad.
    """
    if x.rank is None or x.rank < 3 or pads.const is None:
        return None
    rank, amounts = x.rank, pads.const.ravel().tolist()
    places: Sequence[int] | None = range(rank)
    if axes is not None:
        places = None if axes.const is None else non_negative_axes(axes.const.ravel(), rank)
    if places is None or len(amounts) != 2 * len(places) or any(size < 0 for size in amounts):
        return None
    whole = np.zeros((2, rank), np.int64)
    whole[:, list(places)] = np.reshape(amounts, (2, len(places)))
    return None if whole[:, :2].any() else [int(size) for size in whole[:, 2:].ravel()]
