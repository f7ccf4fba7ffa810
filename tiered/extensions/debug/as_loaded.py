"""The model of a pipeline against the model that was loaded, or against another file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tiered.extensions.debug.layer_differences import LayerComparison, layer_precision_compare
from tiered.extensions.debug.models import ModelComparison, compare_models
from tiered.support.numerics import Numerics, Promise
from tiered.verify.pass_promises import metric as promise_of

if TYPE_CHECKING:
    from tiered.extensions.debug.pipeline_runs import ModelLike
    from tiered.graph import Model


def compare_with_loaded(
    model: Model,
    *,
    original: str = "",
    numerics: Promise | Numerics | str | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    metric: str | None = None,
    accepted: Sequence[float] = (0.0, 1.0),
    seed: int = 0,
) -> ModelComparison:
    """Run a model and the one that it was loaded from on the same generated inputs.

    Args:
        model: the model after passes.
        original: the file to compare with instead.
        numerics, rtol, atol: what is allowed; see `compare_models`.
        metric: a name in `tiered.verify.METRICS` that judges the float outputs instead.
        accepted: the lowest and the highest value of the metric.
        seed: of the generated inputs.

    Raises:
        VerificationError: the outputs differ by more than is allowed.
        RuntimeFailure: the original does not run.
        UsageError: there is no such metric or class.
    """
    if metric is not None:
        numerics = promise_of(metric, (accepted[0], accepted[1]))
    found = compare_models(
        _original(model, original), model.to_proto(), seed=seed, numerics=numerics, rtol=rtol,
        atol=atol,
    )  # fmt: skip
    found.raise_if_different(model.label)
    return found


def layers_against_loaded(
    model: Model, *, original: str = "", seed: int = 0, every: bool = True
) -> LayerComparison:
    """Compare a model layer by layer with the one that it was loaded from, or with a file."""
    first = _original(model, original)
    return layer_precision_compare(
        first, model.to_proto(), seed=seed, numerics="approximate", every=every
    )


def _original(model: Model, path: str) -> ModelLike:
    return path or model.as_loaded()
