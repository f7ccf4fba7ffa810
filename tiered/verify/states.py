"""A model at one moment, open in the worker, with its outputs for each sample."""

from __future__ import annotations

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
        proto: the model.
        session: the model as it is open.
        samples: what it was run on.
        outputs: what it gave, for each sample.
        unstable: outputs that differ from run to run, and so say nothing.
    """

    stamp: Stamp
    proto: onnx.ModelProto
    session: WorkerSession
    samples: list[Sample]
    outputs: list[Outputs]
    unstable: frozenset[str] = frozenset()

    def close(self) -> None:
        """Free what the worker holds."""
        self.session.close()


def first_state(model: Model, worker: Worker, wanted: Wanted) -> State:
    """Open and run a model as it is, on samples that are found for it.

    Raises:
        RuntimeFailure: onnxruntime does not run it.
        UsageError: the user's inputs do not fit it.
    """
    proto = runnable(model)
    session = worker.open(proto)
    memory = _Remembering(session)
    samples = samples_for(proto, memory, wanted)
    outputs = [memory.outputs_for(sample.inputs.feeds) for sample in samples]
    state = State(model.journal.stamp(), proto, session, samples, outputs)
    if is_random(model):
        again = [session.run(sample.inputs.feeds) for sample in samples]
        differs = (compare(one, two) for one, two in zip(outputs, again, strict=True))
        state.unstable = frozenset(o.name for each in differs for o in each.outputs if not o.ok)
    return state


def runnable(model: Model) -> onnx.ModelProto:
    """Return a model with all that it needs to run; weights of other files are read."""
    proto = model.to_proto()
    external = {v.name: v.default for v in model.main.initializers if v.default is not None}
    for stored in proto.graph.initializer:
        tensor = external[stored.name]
        if tensor.is_external:
            stored.CopyFrom(onnx.numpy_helper.from_array(tensor.numpy(), stored.name))
    onnx.external_data_helper.load_external_data_for_model(proto, model.folder)
    return proto


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
