"""Promises of passes about their outputs, beyond a numeric class.

Each is a value for `numerics=`, and a decorator for a pass that is made already:

    @verify.tolerance(rtol=1e-3, atol=1e-4)
    @rewrite(op.Erf(var.x), opt_level=4)
    def fast_erf(graph, x): ...
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tiered.support.errors import UsageError, did_you_mean
from tiered.support.numerics import EXACT, Metric, Numerics, Promise
from tiered.targets import Verification

Array = np.ndarray[Any, Any]

equality = EXACT
"""The same bits; every NaN is the same, and -0.0 is not +0.0."""


def tolerance(
    rtol: float | None = None,
    atol: float | None = None,
    *,
    numerics: Numerics | str = Numerics.APPROXIMATE,
) -> Promise:
    """Promise float outputs within a tolerance; a missing one is that of the class.

    Args:
        rtol: relative to each expected element.
        atol: relative to the largest expected element of the output, and to 1.
        numerics: the class; `tiered.runtime.compare.tensors` has their tolerances.

    Raises:
        UsageError: the class is `exact`, or a tolerance is negative.
    """
    kind = Numerics(numerics)
    if kind is Numerics.EXACT:
        raise UsageError("exact outputs have no tolerance; choose another numeric class")
    for name, limit in (("rtol", rtol), ("atol", atol)):
        if limit is not None and not limit >= 0:
            raise UsageError(f"{name} takes a number from 0, not {limit!r}")
    return Promise(kind, rtol, atol)


def metric(
    function: Callable[[Any, Any], float] | str,
    range: tuple[float, float],
    *,
    numerics: Numerics | str = Numerics.APPROXIMATE,
) -> Promise:
    """Promise that a metric of each float output lies in a range.

    NaN and infinities must stay where they are; other outputs must stay the same.

    Args:
        function: of two arrays, expected and actual; or a name in `METRICS`.
        range: the lowest and the highest value that are good enough.
        numerics: the class, by which a level may or may not imply the pass.

    Raises:
        UsageError: an unknown name, an empty range, or the class is `exact`.
    """
    kind = Numerics(numerics)
    if kind is Numerics.EXACT:
        raise UsageError("exact outputs take no metric; choose another numeric class")
    if isinstance(function, str):
        if function not in METRICS:
            raise UsageError(
                f"no metric {function!r}{did_you_mean(function, METRICS)} "
                f"(there are {', '.join(METRICS)})"
            )
        name, function = function, METRICS[function]
    else:
        name = getattr(function, "__name__", type(function).__name__)
    low, high = range
    if not low <= high:
        raise UsageError(f"metric {name}: no value lies between {low!r} and {high!r}")
    return Promise(kind, metric=Metric(name, function, float(low), float(high)))


def held_to(promise: Promise, limits: Verification) -> Promise:
    """Return a promise with the limits of a target, if it has some.

    An output that is within one of both is right: a target that asks for little accuracy widens
    what its passes may do, and none narrows what the dtype and the numeric class allow. What is
    promised exactly stays exact: no target needs it to differ.
    """
    if promise.numerics is Numerics.EXACT or limits == Verification():
        return promise
    metric = None
    if limits.min_cosine is not None:
        metric = Metric("cosine", cosine, limits.min_cosine, math.inf)
    target = Promise(promise.numerics, limits.rtol, limits.atol, metric, promise.steps)
    return promise.changed(target=target)


def max_abs_error(expected: Array, actual: Array) -> float:
    """Return the largest |expected - actual|."""
    return float(np.max(_gap(expected, actual), initial=0.0))


def mean_abs_error(expected: Array, actual: Array) -> float:
    """Return the mean |expected - actual|."""
    return float(np.mean(_gap(expected, actual))) if expected.size else 0.0


def cosine(expected: Array, actual: Array) -> float:
    """Return the cosine of two outputs as long vectors; 1 where both are zero."""
    a, b = (np.asarray(x, np.float64).ravel() for x in (expected, actual))
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / lengths if lengths else float(not (a.any() or b.any()))


def argmax_agreement(expected: Array, actual: Array) -> float:
    """Return the fraction of rows with equal argmax: top-1 agreement."""
    if not expected.size or not expected.ndim:
        return 1.0
    return float(np.mean(np.argmax(expected, axis=-1) == np.argmax(actual, axis=-1)))


def top_5_agreement(expected: Array, actual: Array) -> float:
    """Return the fraction of rows whose expected argmax is among the five largest elements."""
    if not expected.size or not expected.ndim:
        return 1.0
    best = np.argmax(expected, axis=-1)[..., None]
    five = np.argsort(actual, axis=-1)[..., -5:]
    return float(np.mean((five == best).any(axis=-1)))


def mispredictions(expected: Array, actual: Array) -> float:
    """Return the number of rows with another argmax."""
    if not expected.size or not expected.ndim:
        return 0.0
    return float(np.sum(np.argmax(expected, axis=-1) != np.argmax(actual, axis=-1)))


def _gap(expected: Array, actual: Array) -> Array:
    return np.abs(np.asarray(expected, np.float64) - np.asarray(actual, np.float64))


METRICS: dict[str, Callable[[Any, Any], float]] = {
    function.__name__: function
    for function in (
        *(max_abs_error, mean_abs_error, cosine),
        *(argmax_agreement, top_5_agreement, mispredictions),
    )
}
"""The metrics that have a name."""
