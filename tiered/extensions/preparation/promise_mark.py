"""What a result says of its numbers: the promise of its steps, as an entry of its metadata.

The entry is JSON of what differs from an exact promise:

    {"numerics": "lossy", "metric": "sqnr", "low": 20.0, "ranges": "given"}

Every run writes one, so that nothing large is loaded here but for lossy passes.

`ranges` says whose numbers decided ranges: those of samples, which were given or generated; for
others the promise need not hold.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from tiered.support.numerics import EXACT, FEW_BITS, QUANTIZED, Metric, Numerics, Promise, loosest

if TYPE_CHECKING:
    from tiered.passes.interface.pass_info import PassResult

Ranges = Literal["", "generated", "given"]

_RANGES: Final[tuple[Ranges, ...]] = ("", "generated", "given")
_RANGED: Final = ("quantize", "float_to_fp8")
"""The passes that measure ranges."""


class Carried(NamedTuple):
    """The promise of the steps that made a model.

    Attributes:
        promise: about the outputs of another model.
        ranges: whose numbers decided ranges; "" if none were measured.
    """

    promise: Promise = EXACT
    ranges: Ranges = ""

    def __add__(self, other: object) -> Carried:
        """Return the promise of these steps and then others."""
        assert isinstance(other, Carried)
        return together((self, other))

    def __str__(self) -> str:
        made = f", on {self.ranges} samples" if self.ranges else ""
        return f"{self.promise}{made}"

    @property
    def text(self) -> str:
        """The entry of the metadata."""
        promise, metric = self.promise, self.promise.metric
        found: dict[str, Any] = {
            "numerics": promise.numerics.value,
            "rtol": promise.rtol,
            "atol": promise.atol,
            "metric": None if metric is None else metric.name,
            "low": None if metric is None or math.isinf(metric.low) else metric.low,
            "high": None if metric is None or math.isinf(metric.high) else metric.high,
            "steps": promise.steps or None,
            "ranges": self.ranges or None,
        }
        return json.dumps({key: value for key, value in found.items() if value is not None})


def together(parts: Iterable[Carried]) -> Carried:
    """Return the promise of several steps, one after the other."""
    found = tuple(parts)
    ranges = max((each.ranges for each in found), key=_RANGES.index, default=_RANGES[0])
    return Carried(loosest([each.promise for each in found]), ranges)


def carried_in(text: str) -> Carried | None:
    """Return what an entry of the metadata promises; None if it is not one of this version."""
    try:
        found = json.loads(text)
        numerics = Numerics(found["numerics"])
        low, high = found.get("low", -math.inf), found.get("high", math.inf)
        ranges = found.get("ranges", "")
        promise = Promise(
            numerics,
            rtol=found.get("rtol"),
            atol=found.get("atol"),
            metric=_metric(found.get("metric"), low, high),
            steps=found.get("steps", 0),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return Carried(promise, ranges) if ranges in _RANGES else None


def _metric(name: str | None, low: float, high: float) -> Metric | None:
    """Return a metric by its name.

    Raises:
        ValueError: no metric has this name: it is that of another version, or of a user's pass.
    """
    if name is None:
        return None
    for known in (QUANTIZED.metric, FEW_BITS.metric):
        if known is not None and (name, low, high) == (known.name, known.low, known.high):
            return known
    from tiered.extensions.preparation.precisions import budget_promise
    from tiered.numerics.precision.budget import METRICS as BUDGETS, budget_of
    from tiered.verify.pass_promises import METRICS

    if name in BUDGETS:
        limit = low if BUDGETS[name].is_least else high
        sign = ">=" if BUDGETS[name].is_least else "<="
        return budget_promise(budget_of(f"{name}{sign}{limit}")).metric
    if name in METRICS:
        return Metric(name, METRICS[name], low, high)
    raise ValueError(f"no metric {name!r}")


def carried_by(results: Sequence[PassResult]) -> Carried:
    """Return the promise of the passes that changed something."""
    changing = [each for each in results if each.changed and each.info.kind != "pipeline"]
    return together(map(_of_pass, changing))


def _of_pass(result: PassResult) -> Carried:
    info = result.info
    if info.numerics is not Numerics.LOSSY or not info.is_built_in:
        return Carried(info.promise)
    from tiered.extensions.preparation.precisions import conversion_promise

    options = _options(result.text)
    promise = conversion_promise(info, options.get("budget", ""))
    if info.name not in _RANGED:
        return Carried(promise)
    return Carried(promise, "given" if options.get("inputs") else "generated")


def _options(text: str) -> dict[str, Any]:
    """Return the options of a pass as text: `quantize{budget='sqnr>=20'}`."""
    from tiered.pipeline.sequential import parse_pipeline

    leaves = parse_pipeline(text).leaves()
    return {name: value for leaf in leaves for name, value in leaf.options.items()}
