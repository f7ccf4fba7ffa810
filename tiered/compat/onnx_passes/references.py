"""The reference of a configuration of onnx-passes: arrays, tolerances and metrics for outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

import tiered
from tiered.compat.onnx_passes.configuration import Configuration
from tiered.compat.onnx_passes.promises import metric_of
from tiered.context import PassContext
from tiered.extensions.debug.models import compare_models
from tiered.graph import Model
from tiered.passes import Pass
from tiered.runtime import Session
from tiered.support.amounts import counted
from tiered.support.errors import UsageError, VerificationError
from tiered.support.numerics import EXACT, Promise
from tiered.verify import pass_promises

Array = np.ndarray[Any, Any]


class OutputReference:
    """What the outputs of a model have to be.

    Reference outputs are judged by the metrics; without metrics by the tolerance; without both they
    are equal. Without reference outputs, those of the original model are the reference, on the
    reference inputs or on inputs that are made.

    Args:
        config: the configuration.
        original: the model before all passes.

    Raises:
        UsageError: there is no such metric.
    """

    def __init__(self, config: Configuration, original: onnx.ModelProto) -> None:
        self.config = config
        self.original = original
        self.metrics = [metric_of(name, limits) for name, limits in config.metrics.items()]

    def as_pass(self) -> Pass:
        """Return the pass that the name `verify` means in the command."""

        @tiered.module_pass(opt_level=None, analysis=True, name="verify")
        def verify(model: Model, ctx: PassContext) -> None:
            self.check(model.to_proto())
            if not self.has_arrays:
                for promise in self._promises():
                    found = compare_models(self.original, model.to_proto(), numerics=promise)
                    found.raise_if_different(model.label)

        return verify

    @property
    def has_arrays(self) -> bool:
        """Return whether files of inputs or outputs are named."""
        return bool(self.config.reference_inputs or self.config.reference_outputs)

    def check(self, made: onnx.ModelProto) -> None:
        """Hold the outputs of a model for the reference inputs against the reference.

        Raises:
            UsageError: there are other numbers of files than inputs or outputs.
            VerificationError: an output differs.
        """
        if not self.has_arrays:
            return
        session = Session(made)
        feeds = self.feeds(session.inputs)
        found = session.run(feeds)
        for name, right in self._expected(session.outputs, feeds).items():
            actual = np.asarray(found[name])
            if actual.shape != right.shape or actual.dtype != right.dtype:
                raise VerificationError(
                    f"{name} is not as the reference output: {actual.dtype}{list(actual.shape)} "
                    f"instead of {right.dtype}{list(right.shape)}"
                )
            self._judge(name, right, actual)

    def feeds(self, inputs: Sequence[str]) -> dict[str, Array]:
        """Return the reference inputs by name.

        Raises:
            UsageError: there is another number of files than inputs.
        """
        return self._arrays("inp", self.config.reference_inputs, inputs)

    def _expected(self, outputs: Sequence[str], feeds: dict[str, Array]) -> dict[str, Array]:
        if self.config.reference_outputs:
            return self._arrays("out", self.config.reference_outputs, outputs)
        found = Session(self.original).run(feeds)
        return {name: np.asarray(each) for name, each in found.items()}

    def _arrays(self, what: str, files: Sequence[str], names: Sequence[str]) -> dict[str, Array]:
        if len(files) != len(names):
            raise UsageError(
                f"reference.{what} has {counted(len(files), 'file')} for {', '.join(names)}"
            )
        return {name: _loaded(file) for name, file in zip(names, files, strict=True)}

    def _judge(self, name: str, right: Array, actual: Array) -> None:
        for promise in self.metrics:
            metric = promise.metric
            assert metric is not None
            found = metric.function(right, actual)
            if not metric.low <= found <= metric.high:
                raise VerificationError(
                    f"{name} is not as the reference output: {metric.name} is {found:g}, and not "
                    f"in [{metric.low:g}, {metric.high:g}]"
                )
        if not self.metrics and not self._is_near(right, actual):
            raise VerificationError(f"{name} is not as the reference output")

    def _is_near(self, right: Array, actual: Array) -> bool:
        limits = self.config.tolerance
        if limits and right.dtype.kind in "fciub":
            return np.allclose(actual, right, equal_nan=True, **limits)
        # np.allclose takes large integers as floats.
        return np.array_equal(actual, right, equal_nan=right.dtype.kind in "fc")

    def _promises(self) -> list[Promise]:
        if self.metrics:
            return self.metrics
        limits = self.config.tolerance
        return [pass_promises.tolerance(limits["rtol"], limits["atol"]) if limits else EXACT]


def _loaded(file: str) -> Array:
    """Return the array of a .npy file.

    Raises:
        UsageError: there is no such file, or it holds something else.
    """
    try:
        found = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UsageError(f"reference: cannot read {file}: {error}") from error
    if not isinstance(found, np.ndarray):
        raise UsageError(f"reference: {file} is no .npy file of one array")
    return found
