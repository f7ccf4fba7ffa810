"""The numeric classes: what a pass promises about the outputs. Costs nothing to import."""

from __future__ import annotations

from enum import StrEnum


class Numerics(StrEnum):
    """How far outputs may move, from the strictest promise to the loosest.

    `EXACT` is bit for bit (every NaN equals every NaN); `REASSOCIATING` allows what another order
    of the same float operations gives; `APPROXIMATE` computes another function that is close;
    `LOSSY` gives accuracy away on purpose (lower precision, pruned weights).
    """

    EXACT = "exact"
    REASSOCIATING = "reassociating"
    APPROXIMATE = "approximate"
    LOSSY = "lossy"
