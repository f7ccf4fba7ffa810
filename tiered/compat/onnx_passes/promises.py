"""`verify`: the promises of classes about the outputs."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from tiered.compat.onnx_passes.kinds import PassKind
from tiered.errors import UsageError
from tiered.support.numerics import Numerics, Promise
from tiered.verify import promises

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
        numerics = promises.tolerance(**limits) if limits else Numerics.REASSOCIATING
        return _promising(kind, numerics)

    @staticmethod
    def metric(
        kind: Any = None, accepted: tuple[float, float] | None = None, **metrics: Any
    ) -> Any:
        """Promise outputs within a metric: `@verify.metric("cosine", (0.99, 1.01))`.

        `@verify.metric(accuracy=(0.9, 1))` names it by keyword. Without one, the outputs are
        within the tolerance of approximations.

        Raises:
            UsageError: there is no such metric, several are given, or its range is missing.
        """
        if isinstance(kind, type):
            return _promising(kind, Numerics.APPROXIMATE)
        if kind is None and len(metrics) == 1:
            ((kind, accepted),) = metrics.items()
        elif metrics or kind is None or accepted is None:
            raise UsageError("verify.metric takes one metric and its range: 'cosine', (0.99, 1.01)")
        return _promising(None, promises.metric(_METRICS.get(kind, kind), accepted))


def _promising(kind: Any, promise: Promise | Numerics) -> Any:
    """Return the class with a promise, or a decorator that adds it."""

    def decorate(cls: AnyClass) -> AnyClass:
        cls.numerics = promise
        return cls

    return decorate if kind is None else decorate(kind)
