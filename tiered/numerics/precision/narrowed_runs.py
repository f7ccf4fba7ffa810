"""Trials: a model and narrower versions of it, run on the same inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from tiered.graph import Model
from tiered.graph.core.dtypes import is_float
from tiered.graph.io.export import export_model
from tiered.numerics.calibration.calibrate import SampledModel
from tiered.numerics.precision.budget import Budget, budget_of, is_less_finite
from tiered.numerics.precision.emulation import emulate
from tiered.numerics.precision.narrowing import Narrowing
from tiered.numerics.precision.plan_rewrite import convert_precision
from tiered.runtime import shared_worker
from tiered.runtime.external_data import take_in
from tiered.runtime.inputs.samples import Source, in_dtypes_of
from tiered.support.amounts import counted
from tiered.support.errors import RuntimeFailure
from tiered.verify.random_values import random_values
from tiered.verify.sliced_session import open_model

Outputs = Mapping[str, Any]

_MOST_REFERRED: Final = 1 << 24
"""Bytes of weights and inputs up to which onnx.reference is asked."""


class NarrowedRuns(NamedTuple):
    """Inputs, and what the model of floats computes for them.

    Attributes:
        feeds: the inputs of each run.
        expected: the outputs of each run, but those that depend on random draws.
        is_made: whether the inputs were made, because the user gave none.
    """

    feeds: tuple[Mapping[str, Any], ...]
    expected: tuple[Outputs, ...]
    is_made: bool

    @classmethod
    def of(cls, model: Model, inputs: Iterable[Source], *, seed: int, made: int) -> NarrowedRuns:
        """Run a model.

        Args:
            model: it is not edited.
            inputs: files, folders or arrays; without any, inputs are made.
            seed: of generated inputs.
            made: how many are made.

        Raises:
            ModelError: a file cannot be read.
            UsageError: a file belongs to no input.
            RuntimeFailure: onnxruntime does not run the model.
        """
        given = list(inputs)
        with SampledModel.of(model) as running:
            feeds = tuple(running.samples(given, seed=seed, count=made))
            runs = [running.run(each) for each in feeds]
        drawn = random_values(export_model(model, is_bare=True))
        expected = ({name: run[name] for name in run if name not in drawn} for run in runs)
        return cls(feeds, tuple(expected), not given)

    def outputs(
        self, model: Model, *, by_reference: bool = False, is_emulated: bool = True
    ) -> list[Outputs]:
        """Return the outputs of each run of a narrower version of the model.

        Nodes of 16-bit floats compute in float on onnxruntime, and what they return is rounded.

        Args:
            model: all edits of it are undone.
            by_reference: onnx.reference computes in the narrower type instead.
            is_emulated: whether onnxruntime rounds what each node returns; else it runs the model
                as it is.

        Raises:
            RuntimeFailure: the runtime does not run the model.
        """
        mark = model.mark()
        try:
            if is_emulated and not by_reference:
                emulate(model)
            proto = export_model(model, is_bare=True)
        finally:
            model.undo_to(mark)
        if by_reference:
            take_in(proto, model.folder)
        with open_model(
            shared_worker(), proto, folder=model.folder, reference=by_reference
        ) as session:
            return [session.run(in_dtypes_of(proto, each)) for each in self.feeds]

    def narrowed_outputs(
        self,
        model: Model,
        narrowing: Narrowing,
        *,
        keeps_io: bool,
        by_reference: bool = False,
        is_emulated: bool = True,
    ) -> list[Outputs]:
        """Return the outputs of each run in narrower types; all edits of the model are undone.

        Args:
            model: that of floats.
            narrowing, keeps_io: as of `convert_precision`.
            by_reference, is_emulated: as of `outputs`.

        Raises:
            RuntimeFailure: the runtime does not run the converted model.
        """
        mark = model.mark()
        try:
            convert_precision(model, narrowing, keeps_io=keeps_io)
            return self.outputs(model, by_reference=by_reference, is_emulated=is_emulated)
        finally:
            model.undo_to(mark)

    def is_small(self, model: Model) -> bool:
        """Return whether onnx.reference, which is slow, runs the model in seconds."""
        fed = sum(getattr(array, "nbytes", 0) for feeds in self.feeds for array in feeds.values())
        return model.nbytes + fed <= _MOST_REFERRED

    def trusts_reference(self, model: Model) -> bool:
        """Return whether onnx.reference computes the same as onnxruntime for the model of floats.

        One of the two computes some operators wrong: then what it measures is not the error of a
        narrower type.

        Args:
            model: that of floats.
        """
        try:
            found = self.outputs(model, by_reference=True)
        except RuntimeFailure:
            return False
        error = self.measure(_AGREEMENT, found)
        return error is not None and _AGREEMENT.holds(error)

    def measure(self, budget: Budget, found: Iterable[Outputs]) -> float | None:
        """Return the metric of a budget for the worst run; None if nothing can be compared."""
        pairs = zip(self.expected, found, strict=True)
        return budget.worst_of([budget.measure(expected, actual) for expected, actual in pairs])

    def is_worse_deployed(self, deployed: Iterable[Outputs], judged: Iterable[float]) -> bool:
        """Return whether onnxruntime itself is further off than judges that round each value.

        Args:
            deployed: its outputs, without Casts that round.
            judged: the errors on the judges, as of `relative_error`.
        """
        return self.relative_error(deployed) > max(_DIFFERENCE.limit, 2 * max(judged))

    def relative_error(self, found: Iterable[Outputs]) -> float:
        """Return the L2 error / L2 norm of the worst run; 0 if nothing can be compared."""
        return self.measure(_DIFFERENCE, found) or 0.0

    def not_finite_in(self, found: Iterable[Outputs]) -> list[str]:
        """Return the outputs that are NaN or infinite where the model of floats is finite."""
        return sorted(
            {
                name
                for expected, actual in zip(self.expected, found, strict=True)
                for name, value in expected.items()
                if name in actual and is_less_finite(value, actual[name])
            }
        )

    def describe(self, found: Iterable[Outputs], budget: Budget | None = None) -> str:
        """Return the metrics of outputs, that of a budget first, in words."""
        outputs = list(found)
        reported = _REPORTED if self._has_floats() else _REPORTED[1:]
        metrics = {each.metric: each for each in ([budget] if budget else []) + reported}
        measured = {name: self.measure(each, outputs) for name, each in metrics.items()}
        known = [f"{name} {found:.6g}" for name, found in measured.items() if found is not None]
        return ", ".join(known) or "no output has an element that can be compared"

    def _has_floats(self) -> bool:
        """Return whether an output is of floats; the elements that differ have no cosine."""
        return any(
            isinstance(value, np.ndarray) and is_float(value.dtype)
            for run in self.expected
            for value in run.values()
        )

    def __str__(self) -> str:
        return input_count(len(self.feeds), is_made=self.is_made)


def input_count(count: int, *, is_made: bool) -> str:
    """Return how many inputs there are, in words."""
    kind = "generated" if is_made else "given"
    return counted(count, f"{kind} input")


_AGREEMENT: Final = budget_of("relative<=1e-3")
"""How far two runtimes may be apart on the model of floats."""

_DIFFERENCE: Final = budget_of("relative<=1e-4")
"""onnxruntime itself differs if its error is twice that of the judges, and larger than this."""

ITSELF: Final = "onnxruntime itself, which rounds less"
"""The name of onnxruntime without Casts that round each value, as a judge."""

_REPORTED: Final = [budget_of("cosine>=0"), budget_of("relative<=0")]
