"""Compare the outputs of two runs by name: tensors, sequences, maps and optionals."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from tiered.graph.core.dtypes import is_float
from tiered.runtime.compare.tensors import Limits, OutputDifference, compare_arrays
from tiered.support.amounts import counted
from tiered.support.errors import UsageError
from tiered.support.numerics import Numerics, Promise

__all__ = ["RANDOM_DRAW", "Comparison", "Numerics", "OutputDifference", "compare", "left_out"]

RANDOM_DRAW: Final = "not comparable: random"
"""The note on an output that differs from run to run."""


@dataclass(frozen=True)
class Comparison:
    """Two runs of a model, output by output."""

    outputs: list[OutputDifference]
    numerics: Numerics

    @property
    def ok(self) -> bool:
        return all(output.ok for output in self.outputs)

    @property
    def is_empty(self) -> bool:
        """Whether the numbers of no output were compared."""
        return all(output.note for output in self.outputs)

    @property
    def not_comparable(self) -> tuple[str, ...]:
        """The outputs that were not compared, each with the reason."""
        return tuple(f"{output.name} ({output.note})" for output in self.outputs if output.note)

    @property
    def worst(self) -> OutputDifference | None:
        """The failing output that differs most, else None."""
        failing = [output for output in self.outputs if not output.ok]
        return max(failing, key=lambda output: output.max_abs, default=None)

    def __str__(self) -> str:
        if self.ok:
            largest = max((output.max_abs for output in self.outputs), default=0.0)
            many = counted(len(self.outputs), "output")
            left = f"; {', '.join(self.not_comparable)}" if self.not_comparable else ""
            return f"{many} agree ({self.numerics}, max abs {largest:.1e}){left}"
        return "\n".join(str(output) for output in self.outputs if not output.ok)

    def _repr_html_(self) -> str:
        """Return the outputs as a table, for a notebook."""
        from tiered.support.pages.render import fragment, short
        from tiered.support.pages.sections import Table

        rows = [
            (
                short(output.name),
                f"{output.max_abs:.1e}",
                f"{output.max_rel:.1e}",
                output.note or "ok" if output.ok else f"differs: {output.reason}",
            )
            for output in self.outputs
        ]
        headers = ("output", "max abs", "max rel", "verdict")
        title = "The outputs agree" if self.ok else "The outputs differ"
        return fragment(title, Table(f"allowed: {self.numerics}", headers, rows))


def left_out(comparisons: Iterable[Comparison]) -> tuple[str, ...]:
    """Return the outputs without compared numbers in any comparison, each with the reason."""
    notes: dict[str, str] = {}
    for output in (output for comparison in comparisons for output in comparison.outputs):
        notes[output.name] = output.note and notes.get(output.name, output.note)
    return tuple(f"{name} ({note})" for name, note in notes.items() if note)


def compare(
    expected: Mapping[str, Any],
    actual: Mapping[str, Any],
    numerics: Promise | Numerics | str = Numerics.EXACT,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    min_cosine: float | None = None,
    random: Collection[str] = (),
) -> Comparison:
    """Compare two runs' outputs by name; shapes must be the same in every class, and dtypes too.

    But for LOSSY, which may return a float in fewer bits: it is compared in the expected dtype.

    EXACT compares bits: -0.0 is not +0.0, and every NaN equals every NaN. The docstring of
    `tiered.runtime.compare.tensors` has the rules and default tolerances of the other classes.
    Sequences (lists), maps (dicts) and optionals (None) compare element by element.

    Args:
        expected, actual: output name to value, as `Session.run` returns them.
        numerics: the promise: a class, or one with limits of its own.
        rtol, atol: override those limits and the class's defaults, for every float output.
        min_cosine: judge float outputs by their cosine instead (APPROXIMATE and LOSSY only).
        random: the outputs that differ from run to run: of these the dtypes alone are compared.

    Raises:
        UsageError: a tolerance was given for EXACT, or a cosine for a class that has none, or one
            that no numbers have.
    """
    promise = numerics if isinstance(numerics, Promise) else Promise(Numerics(numerics))
    numerics = promise.numerics
    if numerics is Numerics.EXACT and (rtol is not None or atol is not None):
        raise UsageError("exact outputs have no tolerance; choose another numeric class")
    if min_cosine is not None and numerics in (Numerics.EXACT, Numerics.REASSOCIATING):
        raise UsageError(f"{numerics} outputs are judged by element, not by cosine")
    if min_cosine is not None and not -1 <= min_cosine <= 1:
        raise UsageError(f"a cosine is from -1 to 1, not {min_cosine}")
    limits = Limits(
        numerics,
        promise.rtol if rtol is None else rtol,
        promise.atol if atol is None else atol,
        min_cosine,
        promise.metric,
        promise.steps,
    )
    if promise.target is not None:
        target = promise.target
        beside = Limits(numerics, target.rtol, target.atol, None, target.metric, is_target=True)
        limits = replace(limits, target=beside)
    outputs, computed = [], dict(promise.computed)
    for name, value in expected.items():
        if name in actual and name in random:
            outputs.append(_compare_draws(name, value, actual[name]))
        elif name in actual:
            own = replace(limits, computed=computed.get(name))
            outputs.append(_compare_values(name, value, actual[name], own))
        else:
            outputs.append(OutputDifference(name, False, reason="is missing"))
    for name in actual:
        if name not in expected:
            outputs.append(OutputDifference(name, False, reason="was not there before"))
    return Comparison(outputs, numerics)


def _compare_values(name: str, a: Any, b: Any, limits: Limits) -> OutputDifference:
    kind = _kind(a)
    if kind != (other := _kind(b)):
        return OutputDifference(name, False, reason=f"{kind} became {other}")
    if a is None:
        return OutputDifference(name, True)
    if kind == "a sequence":
        if len(a) != len(b):
            return OutputDifference(name, False, reason=f"length {len(a)} became {len(b)}")
        parts = {f"element {i}": pair for i, pair in enumerate(zip(a, b, strict=True))}
    elif kind == "a map":
        if set(a) != set(b):
            return OutputDifference(name, False, reason=_keys_reason(a, b))
        parts = {f"key {key!r}": (a[key], b[key]) for key in a}
    else:
        expected, actual = np.asarray(a), np.asarray(b)
        if limits.numerics is Numerics.LOSSY and _is_narrower(actual.dtype, expected.dtype):
            actual = actual.astype(expected.dtype)
        return compare_arrays(name, expected, actual, limits)
    found = {where: _compare_values(name, x, y, limits) for where, (x, y) in parts.items()}
    return _merge(name, found)


def _compare_draws(name: str, a: Any, b: Any) -> OutputDifference:
    """Compare two draws of random numbers: their kinds and dtypes."""
    kinds = [
        str(np.asarray(value).dtype) if _kind(value) == "a tensor" else _kind(value)
        for value in (a, b)
    ]
    if kinds[0] != kinds[1]:
        return OutputDifference(name, False, reason=f"{kinds[0]} became {kinds[1]}")
    return OutputDifference(name, True, note=RANDOM_DRAW)


def _is_narrower(dtype: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Return whether both are floats, and one has fewer bits."""
    return is_float(dtype) and is_float(other) and dtype.itemsize < other.itemsize


def _kind(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, (list, tuple)):
        return "a sequence"
    return "a map" if isinstance(value, Mapping) else "a tensor"


def _keys_reason(a: Mapping[Any, Any], b: Mapping[Any, Any]) -> str:
    gone = sorted(map(repr, set(a) - set(b)))
    new = sorted(map(repr, set(b) - set(a)))
    return "; ".join(
        f"{what} {', '.join(keys)}" for what, keys in (("lost key", gone), ("new key", new)) if keys
    )


def _merge(name: str, parts: Mapping[str, OutputDifference]) -> OutputDifference:
    """Sum the elements of a sequence or map up as one output."""
    if not parts:
        return OutputDifference(name, True)
    cosines = [p.cosine for p in parts.values() if p.cosine is not None]
    ulps = [p.max_ulp for p in parts.values() if p.max_ulp is not None]
    reasons = [f"{where}: {p.reason}" for where, p in parts.items() if not p.ok]
    notes = dict.fromkeys(p.note for p in parts.values())
    return OutputDifference(
        name,
        ok=not reasons,
        max_abs=max(p.max_abs for p in parts.values()),
        max_rel=max(p.max_rel for p in parts.values()),
        max_ulp=max(ulps, default=None),
        cosine=min(cosines, default=None),
        nan_mismatch=sum(p.nan_mismatch for p in parts.values()),
        reason=reasons[0] if reasons else "",
        note=next(iter(notes)) if all(notes) else "",
    )
