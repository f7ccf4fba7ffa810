"""Two models that run on the same inputs, and their changed nodes as two models of their own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import onnx

from tiered.runtime.compare.outputs import Comparison, compare
from tiered.support.numerics import Promise
from tiered.verify.baseline import RunnableModel
from tiered.verify.changed_region import PREFIX, changed_region, with_outputs, with_types
from tiered.verify.sliced_session import feeds_for, open_model

if TYPE_CHECKING:
    from tiered.runtime import Worker

Outputs = dict[str, Any]


@dataclass(frozen=True)
class ModelPair:
    """The models before and after passes, with inputs on which they differ.

    Attributes:
        worker: where they run.
        feeds: the inputs.
        promise: of the passes.
        size: how many nodes are changed, where it is the models of the changed nodes alone.
    """

    worker: Worker
    before: RunnableModel
    after: RunnableModel
    feeds: Outputs
    promise: Promise
    size: int = 0

    @property
    def protos(self) -> tuple[onnx.ModelProto, onnx.ModelProto]:
        return self.before.proto, self.after.proto

    @cached_property
    def changed(self) -> ModelPair | None:
        """The changed nodes, on the values that they read; None if they cannot be cut out.

        Raises:
            RuntimeFailure: the model before does not compute these values.
            TypeError: one of them is no value of a model.
        """
        region = changed_region(*self.protos)
        if region is None:
            return None
        feeds = self._values(region.reads)
        before, after = (with_types(model, feeds) for model in region.cuts({}))
        return ModelPair(
            self.worker,
            RunnableModel(before, self.before.folder),
            RunnableModel(after, self.after.folder),
            feeds,
            self.promise,
            region.size,
        )

    @cached_property
    def ran(self) -> tuple[Outputs, Outputs]:
        """The outputs of both on onnxruntime.

        Raises:
            RuntimeFailure: one does not run.
        """
        return self._run(self.before), self._run(self.after)

    def compared(self) -> Comparison:
        """Compare the outputs of both on onnxruntime.

        Raises:
            RuntimeFailure: one does not run.
        """
        return compare(*self.ran, self.promise)

    def run_reference(self) -> tuple[Outputs, Outputs]:
        """Return the outputs of both on onnx.reference.

        Raises:
            RuntimeFailure: one does not run.
            ModelError: a file of weights is not as it should be.
        """
        return self._run(self.before.inlined(), reference=True), self._run(
            self.after.inlined(), reference=True
        )

    def _run(self, model: RunnableModel, **how: Any) -> Outputs:
        with open_model(self.worker, model.proto, folder=model.folder, **how) as session:
            return unprefixed(session.run(feeds_for(model.proto, self.feeds)))

    def _values(self, names: tuple[str, ...]) -> Outputs:
        """Return values of the model before."""
        inner = [name for name in names if name not in self.feeds]
        found = dict(self.feeds)
        if inner:
            probe = with_outputs(self.before.proto, inner)
            with open_model(self.worker, probe, folder=self.before.folder) as session:
                found |= session.run(feeds_for(probe, self.feeds), inner)
        return {name: found[name] for name in names}


def unprefixed(results: Outputs) -> Outputs:
    """Return results by the names that they have in the model."""
    return {name.removeprefix(PREFIX): value for name, value in results.items()}
