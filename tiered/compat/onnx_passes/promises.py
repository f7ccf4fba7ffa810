"""`verify`: the promises of classes about the outputs."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from tiered.compat.onnx_passes.kinds import PassKind
from tiered.support.errors import UsageError
from tiered.support.numerics import Metric, Numerics, Promise
from tiered.verify import pass_promises

AnyClass = TypeVar("AnyClass", bound="type[PassKind]")

_METRICS: Final = {
    "accuracy": "argmax_agreement",
    "count_mispredictions": "mispredictions",
    "top_5_accuracy": "top_5_agreement",
}
"""The metrics of onnx-passes by their names here."""


class verify:
    """Class decorators that declare the promise of a pass, which verification checks."""

    @staticmethod
    def equality(kind: AnyClass) -> AnyClass:
        """Promise the same outputs, bit for bit."""
        kind.numerics = Numerics.EXACT
        return kind

    @staticmethod
    def tolerance(kind: Any = None, **limits: Any) -> Any:
        """Promise outputs within float tolerance; `@verify.tolerance(rtol=1e-3)` states it."""
        numerics = pass_promises.tolerance(**limits) if limits else Numerics.REASSOCIATING
        return _promising(kind, numerics)

    @staticmethod
    def metric(
        kind: Any = None, accepted: tuple[float, float] | None = None, **metrics: Any
    ) -> Any:
        """Promise outputs within a metric: `@verify.metric("cosine", (0.99, 1.01))`.

        `@verify.metric(accuracy=(0.9, 1), max_abs_error=(0, 0.1))` names some by keyword: all of
        them hold. Without one, the outputs are within the tolerance of approximations.

        Raises:
            UsageError: there is no such metric, or its range is missing.
        """
        if isinstance(kind, type):
            return _promising(kind, Numerics.APPROXIMATE)
        if (kind is None) != (accepted is None) or (kind is None and not metrics):
            raise UsageError(
                "verify.metric takes metrics with their ranges: 'cosine', (0.99, 1.01), or "
                "cosine=(0.99, 1.01)"
            )
        named = {**({kind: accepted} if kind is not None else {}), **metrics}
        return _promising(None, _all_of([metric_of(k, each) for k, each in named.items()]))


def metric_of(name: Any, limits: tuple[float, float]) -> Promise:
    """Return the promise of a metric, by the name of onnx-passes or of tiered, or a function.

    Raises:
        UsageError: there is no such metric, or its range is empty.
    """
    return pass_promises.metric(_METRICS.get(name, name), limits)


def _all_of(promised: list[Promise]) -> Promise:
    """Return the promise that several metrics are in their ranges."""
    first, *rest = promised
    if not rest:
        return first
    metrics = [each.metric for each in promised if each.metric is not None]

    def outside(expected: Any, actual: Any) -> float:
        found = [each.function(expected, actual) for each in metrics]
        return sum(not m.low <= each <= m.high for m, each in zip(metrics, found, strict=True))

    name = f"the number of metrics outside of {' and '.join(map(str, metrics))}"
    return first.changed(metric=Metric(name, outside, 0.0, 0.0))


def _promising(kind: Any, promise: Promise | Numerics) -> Any:
    """Return the class with a promise, or a decorator that adds it."""

    def decorate(cls: AnyClass) -> AnyClass:
        cls.numerics = promise
        return cls

    return decorate if kind is None else decorate(kind)
