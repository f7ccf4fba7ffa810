"""The range analysis of a model: bodies are iterated to a fixed point, and widened before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from tiered.graph import Model, Tensor
from tiered.graph.core.analysis import Analysis
from tiered.graph.core.edit import RENAMES, Edit, Entry
from tiered.graph.core.value import Value
from tiered.graph.intervals.interval import ZERO, Interval, of_tensor, whole
from tiered.graph.intervals.propagation import Propagation
from tiered.graph.intervals.rules import Counts

LARGEST_DIM: Final = (1 << 31) - 1
"""The largest size of a dim that is not declared: kernels index with 32 bits."""

UNKNOWN_DIMS: Final = Counts(0, LARGEST_DIM)
"""The bounds of a dim that is not declared."""


class Ranges:
    """The intervals of the values of a model."""

    def __init__(self, found: Propagation) -> None:
        self._found = found

    def __getitem__(self, value: Value) -> Interval:
        """Return the interval of all elements of a value; that of its dtype if nothing is known."""
        return self._found.of(value)

    def has_proof(self, value: Value) -> bool:
        """Return whether more is known of a value than its dtype."""
        return self[value] != whole(value.dtype)


@dataclass(frozen=True)
class RangeAnalysis(Analysis[Ranges]):
    """What ranges are computed from: `model.analysis(ranges)`, or `ranges.with_inputs(...)`.

    Every element of a value is inside its interval, whatever is fed, as long as the model runs
    without an error: an index is inside of the axis that it selects from. Nothing is assumed of
    unknown operators, nor inside of local functions.

    Attributes:
        inputs: what the user declares of graph inputs, by name.
        observed: what calibration measured of values, by name; not a proof.
        dims: the bounds of each dim that is not a number.
        trusts_indices: whether an index counts as being inside of its axis.
    """

    inputs: tuple[tuple[str, Interval], ...] = ()
    observed: tuple[tuple[str, Interval], ...] = ()
    dims: Counts = UNKNOWN_DIMS
    trusts_indices: bool = True

    def with_inputs(self, inputs: Mapping[str, Interval]) -> RangeAnalysis:
        """Return the analysis with declared ranges of inputs; all finite numbers there."""
        return replace(self, inputs=tuple(sorted(inputs.items())))

    def with_observed(self, observed: Mapping[str, Interval]) -> RangeAnalysis:
        """Return the analysis with measured ranges of values."""
        return replace(self, observed=tuple(sorted(observed.items())))

    def with_dims(self, least: int, most: int) -> RangeAnalysis:
        """Return the analysis with other bounds of unknown dims."""
        return replace(self, dims=Counts(least, most))

    def without_trust(self) -> RangeAnalysis:
        """Return the analysis for edits after which an index that is an error may be none."""
        return replace(self, trusts_indices=False)

    @property
    def survives(self) -> frozenset[Edit]:
        """New names, unless ranges are given by name."""
        return _NAMELESS if not self.inputs and not self.observed else frozenset()

    def __call__(self, model: Model) -> Ranges:
        """Compute the ranges; `model.analysis` keeps them, and follows most edits."""
        found = self._propagation(model)
        found.run(trusts_indices=self.trusts_indices)
        return Ranges(found)

    def renewed(self, model: Model, result: Ranges, edits: Sequence[Entry]) -> Ranges | None:
        """Return the ranges after edits that change them only from some nodes on."""
        before, found = result._found, self._propagation(model)
        found.known, found.required = dict(before.known), before.required
        found.indexed = before.indexed
        return Ranges(found) if found.follow(edits) else None

    def _propagation(self, model: Model) -> Propagation:
        return Propagation(model, self.dims, dict(self.inputs), dict(self.observed))


ranges: Final = RangeAnalysis()

_NAMELESS: Final = RENAMES | {Edit.SET_IR_VERSION, Edit.SET_ORDER}


def measured(array: np.ndarray[Any, Any]) -> Interval:
    """Return the interval of the elements of an array, which calibration has run."""
    return of_tensor(Tensor(None, array)) if array.size else ZERO
