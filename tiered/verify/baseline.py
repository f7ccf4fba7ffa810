"""A model at one moment, with its outputs for each sample: of the whole of it, in the worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import onnx

from tiered.errors import RuntimeFailure
from tiered.graph import Model, Stamp
from tiered.graph.io.export import export_model
from tiered.graph.io.protos import nodes_of
from tiered.graph.queries.op_traits import RANDOM
from tiered.runtime.compare.outputs import compare
from tiered.runtime.external_data import with_files
from tiered.runtime.session import label_of
from tiered.verify.opening import open_model
from tiered.verify.samples import Sample, Wanted, samples_for

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tiered.runtime import Worker
    from tiered.runtime.session import Runner, Setting

    Opened = AbstractContextManager[Runner]

Outputs = dict[str, Any]


@dataclass(frozen=True)
class Runnable:
    """A model as a runtime can open it; weights that are on disk stay there.

    Attributes:
        proto: the model.
        folder: where onnxruntime finds the weights that are not in it, "" if all are.
    """

    proto: onnx.ModelProto
    folder: str = ""

    @classmethod
    def of(cls, model: Model) -> Runnable:
        """Return what runs of a model as it is now.

        Raises:
            ModelError: it cannot be written, or a file of weights is not as it was.
        """
        proto = export_model(model, is_bare=True)
        return cls(proto, with_files(proto, model.folder))

    def content(self) -> bytes:
        """Return the model as bytes, which are handed over.

        Raises:
            RuntimeFailure: it is larger than a protobuf message can be.
        """
        try:
            return bytes(self.proto.SerializeToString(deterministic=True))
        except Exception as error:  # protobuf's EncodeError, or ValueError beyond 2 GiB
            raise RuntimeFailure(f"the model is too large to be handed over: {error}") from error


@dataclass
class Baseline:
    """A model at one moment; it runs when its outputs are first asked for.

    Attributes:
        stamp: the moment.
        runnable: the model; `content` are its bytes.
        samples: what it runs on.
        outputs: what it gave, for each sample.
        is_random: whether it draws random numbers.
        unstable: outputs that differ from run to run, and so say nothing.
    """

    stamp: Stamp
    runnable: Runnable
    content: bytes
    is_random: bool
    samples: list[Sample] = field(default_factory=list)
    outputs: list[Outputs] = field(default_factory=list)
    unstable: frozenset[str] = frozenset()

    @classmethod
    def of(cls, model: Model) -> Baseline:
        """Return a model as it is now, which has not run."""
        runnable = Runnable.of(model)
        graphs = list(model.graphs())
        is_random = any(graph.nodes_of(op_type) for graph in graphs for op_type in RANDOM)
        return cls(model.journal.stamp(), runnable, runnable.content(), is_random)

    def run(self, worker: Worker, wanted: Wanted) -> None:
        """Open the model and run it on samples that are found for it, unless that was done.

        Raises:
            RuntimeFailure: onnxruntime does not run it.
            UsageError: the user's inputs do not fit it.
        """
        if self.samples:
            return
        with self.opened(worker) as session:
            memory = Remembering(session)
            self.samples = samples_for(self.runnable.proto, memory, wanted)
            self.outputs = [memory.outputs_for(sample.inputs.feeds) for sample in self.samples]
            if self.is_random:
                again = [session.run(sample.inputs.feeds) for sample in self.samples]
                self.unstable = unstable_names(self.outputs, again)

    def opened(self, worker: Worker, setting: Setting = "reproducible") -> Opened:
        """Return the model as it is open in a worker.

        Raises:
            RuntimeFailure: onnxruntime does not open it.
        """
        label = label_of(self.runnable.proto)
        folder = self.runnable.folder
        return open_model(
            worker, self.content, folder=folder, label=label, setting=setting
        )


def is_random(proto: onnx.ModelProto) -> bool:
    """Tell whether a model, at any depth, draws random numbers."""
    return any(node.op_type in RANDOM for node in nodes_of(proto))


def unstable_names(outputs: Sequence[Outputs], again: Sequence[Outputs]) -> frozenset[str]:
    """Return the outputs that differ between two runs of the same."""
    differs = (compare(one, two) for one, two in zip(outputs, again, strict=True))
    return frozenset(o.name for each in differs for o in each.outputs if not o.ok)


def without(outputs: Mapping[str, Any], names: frozenset[str]) -> Outputs:
    """Return the outputs but for some."""
    return {name: value for name, value in outputs.items() if name not in names}


class Remembering:
    """A session that keeps its results: finding inputs has run the model on them already."""

    def __init__(self, session: Runner) -> None:
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
