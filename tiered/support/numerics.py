"""The promises of passes about the outputs. Importing this loads nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, TypeVar

from tiered.support.records import Record

P = TypeVar("P")


class Numerics(StrEnum):
    """How far outputs may move, from the strictest promise to the loosest.

    `EXACT` is bit for bit (every NaN equals every NaN); `REASSOCIATING` allows what another order
    of the same float operations returns; `APPROXIMATE` computes another function that is close;
    `LOSSY` reduces accuracy on purpose (lower precision, pruned weights).
    """

    EXACT = "exact"
    REASSOCIATING = "reassociating"
    APPROXIMATE = "approximate"
    LOSSY = "lossy"


def is_within(numerics: Numerics, limit: Numerics) -> bool:
    """Return whether a class promises at least as much as another one."""
    order = list(Numerics)
    return order.index(numerics) <= order.index(limit)


LEVEL_OF: Final[Mapping[Numerics, int | None]] = {
    Numerics.EXACT: 0,
    Numerics.REASSOCIATING: 3,
    Numerics.APPROXIMATE: 4,
    Numerics.LOSSY: None,
}
"""The lowest level that may imply a pass of a class; None is opt-in."""


class Metric(Record):
    """A measure of the similarity of two arrays, and its accepted range.

    Attributes:
        name: how messages call it.
        function: of the expected and the actual array, of one dtype and shape.
        low, high: both are good enough.
    """

    name: str
    function: Callable[[Any, Any], float]
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.name} in [{self.low:g}, {self.high:g}]"


class Promise(Record):
    """A numeric class with limits of its own; as a decorator, it is the promise of the pass.

    Attributes:
        numerics: the class, which judges whatever the others do not.
        rtol, atol: instead of the tolerances of the class, for every float output.
        metric: judges the float outputs instead of any tolerance.
        steps: how far integers of 8 bits or fewer may be off, as results of a quantisation.
        target: the limits on the target; an output within them is correct, too.
        computed: the dtypes of outputs that are computed from narrower floats, by name: they have
            the tolerances of these.
    """

    numerics: Numerics = Numerics.EXACT
    rtol: float | None = None
    atol: float | None = None
    metric: Metric | None = None
    steps: int = 0
    target: Promise | None = None
    computed: tuple[tuple[str, Any], ...] = ()

    def __call__(self, pass_: P) -> P:
        """Return the pass with this promise."""
        return pass_.promising(self)  # type: ignore[attr-defined,no-any-return]  # a Pass, which this layer does not know

    def __str__(self) -> str:
        limits = (("rtol", self.rtol), ("atol", self.atol))
        parts = [f"{name} {limit:g}" for name, limit in limits if limit is not None]
        parts += [str(self.metric)] if self.metric is not None else []
        parts += [f"integers within {self.steps}"] if self.steps else []
        parts += [f"or, on the target, {self.target}"] if self.target is not None else []
        return f"{self.numerics} ({', '.join(parts)})" if parts else f"{self.numerics}"


EXACT = Promise()


def _mean_difference(expected: Any, actual: Any) -> float:
    import numpy as np

    a, b = (np.asarray(x, np.float64) for x in (expected, actual))
    numbers = np.isfinite(a) & np.isfinite(b)
    gap = np.abs(a - b)[numbers]
    return float(gap.mean()) / float(np.abs(a)[numbers].max()) if gap.any() else 0.0


QUANTIZED = Promise(
    Numerics.REASSOCIATING,
    metric=Metric("mean difference by largest number", _mean_difference, 0.0, 1 / 64),
    steps=8,
)
"""The promise of an operator of integers: sums in another order before a rounding.

A number between two integers may round to either, so each operator may be one step off.
Through a deep network that spreads to several steps of 255 at the outputs.
"""


def _signal_to_noise(expected: Any, actual: Any) -> float:
    """Return the decibels of the numbers above their errors; inf without errors."""
    import numpy as np

    a, b = (np.asarray(x, np.float64) for x in (expected, actual))
    numbers = np.isfinite(a) & np.isfinite(b)
    signal, noise = (float(np.square(x[numbers]).sum()) for x in (a, a - b))
    return decibels(signal, noise)


def decibels(signal: float, noise: float) -> float:
    """Return the ratio of two energies in dB: inf without noise, -inf where it is not a number.

    Also -inf where the signal is nothing beside the noise, as where the noise is infinite.
    """
    if noise == 0:
        return math.inf
    ratio = signal / noise
    return 10 * math.log10(ratio) if ratio > 0 else -math.inf


FEW_BITS = Promise(Numerics.LOSSY, metric=Metric("sqnr", _signal_to_noise, 20.0, math.inf), steps=8)
"""The promise of a quantisation without a budget: an error of a tenth, for inputs like the samples.

Single numbers may be further off: the errors of integers are of one size for small and large ones.
"""


def loosest(promises: Sequence[Promise]) -> Promise:
    """Return the combined promise of several: the loosest class and its widest limits."""
    order = list(Numerics)
    numerics = max((each.numerics for each in promises), key=order.index, default=Numerics.EXACT)
    same = [each for each in promises if each.numerics is numerics]
    # Where one leaves a tolerance to the class, that is what holds for all of them.
    rtols = [each.rtol for each in same if each.rtol is not None]
    atols = [each.atol for each in same if each.atol is not None]
    metric = _widest([each.metric for each in same if each.metric is not None])
    return Promise(
        numerics,
        rtol=max(rtols, default=None) if len(rtols) == len(same) else None,
        atol=max(atols, default=None) if len(atols) == len(same) else None,
        metric=metric,
        steps=max((each.steps for each in same), default=0),
    )


def _widest(metrics: Sequence[Metric]) -> Metric | None:
    """Return one metric with the widest range of several; None if they are of different names."""
    if len({each.name for each in metrics}) != 1:
        return None
    low, high = min(each.low for each in metrics), max(each.high for each in metrics)
    return metrics[0].changed(low=low, high=high)
