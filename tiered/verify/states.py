"""A model at one moment, open in the worker, with its outputs for each sample."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import onnx

from tiered.graph import Model, Stamp
from tiered.runtime.compare import compare
from tiered.verify.samples import Sample, Wanted, samples_for

if TYPE_CHECKING:
    from tiered.runtime import Worker, WorkerSession

Outputs = dict[str, Any]

MAX_READ = 1 << 30
"""Bytes of weights in other files up to which they are handed over to the worker."""
FILE = "model.onnx"

_RANDOM: Final = (
    "Bernoulli",
    "Dropout",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
)


@dataclass
class State:
    """A model at one moment.

    Attributes:
        stamp: the moment.
        runnable: the model.
        session: the model as it is open.
        samples: what it was run on.
        outputs: what it gave, for each sample.
        unstable: outputs that differ from run to run, and so say nothing.
    """

    stamp: Stamp
    runnable: Runnable
    session: WorkerSession
    samples: list[Sample]
    outputs: list[Outputs]
    unstable: frozenset[str] = frozenset()

    def close(self) -> None:
        """Free what the worker holds."""
        self.session.close()
        self.runnable.close()


def first_state(model: Model, worker: Worker, wanted: Wanted) -> State:
    """Open and run a model as it is, on samples that are found for it.

    Raises:
        RuntimeFailure: onnxruntime does not run it.
        UsageError: the user's inputs do not fit it.
    """
    runnable = Runnable.of(model)
    session = worker.open(runnable.source)
    memory = _Remembering(session)
    samples = samples_for(runnable.proto, memory, wanted)
    outputs = [memory.outputs_for(sample.inputs.feeds) for sample in samples]
    state = State(model.journal.stamp(), runnable, session, samples, outputs)
    if is_random(model):
        again = [session.run(sample.inputs.feeds) for sample in samples]
        differs = (compare(one, two) for one, two in zip(outputs, again, strict=True))
        state.unstable = frozenset(o.name for each in differs for o in each.outputs if not o.ok)
    return state


@dataclass
class Runnable:
    """A model as a runtime can open it.

    Attributes:
        proto: the model; without the weights of other files if it stands in a file itself.
        folder: where that file is, if the model is too large to be handed over.
    """

    proto: onnx.ModelProto
    folder: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    def of(cls, model: Model) -> Runnable:
        """Return what runs of a model as it is now; weights of other files are read or copied."""
        tensors = {v.name: v.default for v in model.main.initializers if v.default is not None}
        external = {name: tensor for name, tensor in tensors.items() if tensor.is_external}
        proto = model.to_proto()
        if sum(tensor.nbytes for tensor in external.values()) > MAX_READ:
            folder = tempfile.TemporaryDirectory(prefix="tiered-verify-")
            model.save(os.path.join(folder.name, FILE))
            return cls(proto, folder)
        if external:
            for stored in proto.graph.initializer:
                if stored.name in external:
                    array = external[stored.name].numpy()
                    stored.CopyFrom(onnx.numpy_helper.from_array(array, stored.name))
            onnx.external_data_helper.load_external_data_for_model(proto, model.folder)
        return cls(proto)

    @property
    def source(self) -> onnx.ModelProto | str:
        """What a worker opens."""
        return self.proto if self.folder is None else os.path.join(self.folder.name, FILE)

    def close(self) -> None:
        """Remove the file, if there is one."""
        if self.folder is not None:
            self.folder.cleanup()


def is_random(model: Model) -> bool:
    """Tell whether a model, at any depth, draws random numbers."""
    return any(graph.nodes_of(op_type) for graph in model.graphs() for op_type in _RANDOM)


def without(outputs: Mapping[str, Any], names: frozenset[str]) -> Outputs:
    """Return the outputs but for some."""
    return {name: value for name, value in outputs.items() if name not in names}


class _Remembering:
    """A session that keeps its results: finding inputs has run the model on them already."""

    def __init__(self, session: WorkerSession) -> None:
        self.inputs = session.inputs
        self.outputs = session.outputs
        self._session = session
        self._known: list[tuple[object, Outputs]] = []

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> Outputs:
        results = self._session.run(feeds, outputs)
        self._known.append((feeds, results))
        return results

    def outputs_for(self, feeds: Mapping[str, Any]) -> Outputs:
        """Return what the feeds gave, or give now."""
        known = (results for fed, results in reversed(self._known) if fed is feeds)
        return next(known, None) or self._session.run(feeds)
