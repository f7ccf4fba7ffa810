"""Baselines: a model at one moment, with its outputs for each sample."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import onnx

from tiered.graph import Model, Stamp
from tiered.graph.core.dtypes import bits_of
from tiered.graph.io.export import export_model
from tiered.runtime.deviations import has_halves
from tiered.runtime.external_data import MOST_READ, bytes_on_disk, take_in, with_files
from tiered.runtime.inputs.samples import Sample, Wanted, samples_for
from tiered.runtime.session import label_of
from tiered.support.errors import Crashed, MissingOperator, OutOfMemory, RuntimeFailure, TimedOut
from tiered.verify.live_extract import part_of
from tiered.verify.part_extraction import GraphPart
from tiered.verify.random_values import random_outputs
from tiered.verify.sliced_session import SlicedSession, open_model

if TYPE_CHECKING:
    from tiered.runtime import Worker
    from tiered.runtime.opening import Setting
    from tiered.runtime.session import Runner

Outputs = dict[str, Any]
RECORDED: Final = 1 << 28
"""Bytes of the values of one run that are kept, the smallest ones first."""


@dataclass(frozen=True)
class RunnableModel:
    """A model in the form that a runtime opens; weights on disk stay there.

    Attributes:
        proto: the model.
        folder: the folder of its external data, "" if it has none.
    """

    proto: onnx.ModelProto
    folder: str = ""

    @classmethod
    def of(cls, model: Model) -> RunnableModel:
        """Return a model as it is now.

        Raises:
            ModelError: it cannot be written, or a file of weights is not as it was.
        """
        proto = export_model(model, is_bare=True)
        return cls(proto, with_files(proto, model.folder))

    def content(self) -> bytes:
        """Return the model as bytes.

        Raises:
            RuntimeFailure: it is larger than a protobuf message may be.
        """
        try:
            return bytes(self.proto.SerializeToString(deterministic=True))
        except Exception as error:  # protobuf's EncodeError, or ValueError beyond 2 GiB
            raise RuntimeFailure(f"the model is too large for protobuf: {error}") from error

    def inlined(self) -> RunnableModel:
        """Return a copy with its weights inside.

        Raises:
            ModelError: a file of weights is not as it should be.
        """
        whole = onnx.ModelProto()
        whole.CopyFrom(self.proto)
        return RunnableModel(take_in(whole, self.folder))


@dataclass
class Baseline:
    """A model at one moment; it runs when its outputs are first asked for.

    Attributes:
        stamp: the moment.
        runnable: the model; `content` are its bytes.
        samples: the samples that it runs on.
        outputs: its outputs, for each sample.
        random: outputs that differ from run to run, and are not compared.
        is_referred: whether onnx.reference runs it, as onnxruntime does not.
        refused: why onnxruntime does not load the original, where onnx.reference runs it instead.
        was_said: whether a remark has the reason.
    """

    stamp: Stamp
    runnable: RunnableModel
    content: bytes
    samples: list[Sample] = field(default_factory=list)
    outputs: list[Outputs] = field(default_factory=list)
    random: frozenset[str] = frozenset()
    is_referred: bool = False
    refused: str = ""
    was_said: bool = False

    @classmethod
    def of(cls, model: Model) -> Baseline:
        """Return the baseline of a model as it is now, without outputs."""
        runnable = RunnableModel.of(model)
        return cls(model.journal.stamp(), runnable, runnable.content())

    def run(self, worker: Worker, wanted: Wanted) -> None:
        """Find samples for the model and run it on them, unless that was done.

        Numbers that a lossy pass cannot hold prove nothing of it: it gets others.

        It is the original: later baselines have the samples of earlier ones. Where onnxruntime does
        not load it, onnx.reference runs it, and what passes make of it.

        Raises:
            RuntimeFailure: neither runs it.
            UsageError: the user's inputs do not fit it.
        """
        is_varied = any(sample.inputs.is_varied for sample in self.samples)
        if self.samples and (wanted.varied or not is_varied):
            return
        with self._opened_original(worker) as session:
            memory = Remembering(session)
            self.samples = samples_for(self.runnable.proto, memory, wanted)
            self.outputs = [memory.outputs_for(sample.inputs.feeds) for sample in self.samples]
            feeds = [sample.inputs.feeds for sample in self.samples]
            self.random = random_outputs(self.runnable.proto, session, feeds, self.outputs)

    @contextmanager
    def _opened_original(self, worker: Worker) -> Iterator[Runner]:
        with ExitStack() as stack:
            try:
                session = stack.enter_context(self.opened(worker))
            except (MissingOperator, Crashed, TimedOut, OutOfMemory):
                raise
            except RuntimeFailure as error:
                try:
                    session = stack.enter_context(self.referred(worker))
                except RuntimeFailure as other:
                    raise RuntimeFailure(
                        f"neither runtime runs the original: {error}; {other}"
                    ) from error
                self.refused = str(error)
            yield session

    @contextmanager
    def referred(self, worker: Worker) -> Iterator[Runner]:
        """Open the model on onnx.reference, in a worker.

        Raises:
            RuntimeFailure: it does not load it, or the weights are too large for it.
            ModelError: a file of weights is not as it should be.
        """
        if bytes_on_disk(self.runnable.proto) > MOST_READ:
            raise RuntimeFailure("the weights are too large for onnx.reference")
        with open_model(worker, self.runnable.inlined().proto, reference=True) as session:
            self.is_referred = True
            yield session

    @contextmanager
    def opened(self, worker: Worker, setting: Setting = "reproducible") -> Iterator[Runner]:
        """Open the model in a worker, where it stays open meanwhile.

        With the reproducible setting, onnx.reference runs a model of 16-bit floats that onnxruntime
        does not open: it has hardly any kernels of bfloat16.

        Raises:
            RuntimeFailure: onnxruntime does not open it.
            ModelError: a file of weights is not as it should be.
        """
        label = label_of(self.runnable.proto)
        folder = self.runnable.folder
        with ExitStack() as stack:
            try:
                whole = open_model(
                    worker, self.content, folder=folder, label=label, setting=setting
                )
                session = stack.enter_context(whole)
            except MissingOperator:
                raise
            except RuntimeFailure as error:
                if setting != "reproducible" or not self._is_for_reference():
                    raise
                with suppress(RuntimeFailure):
                    session = stack.enter_context(self.referred(worker))
                if not self.is_referred:
                    raise error
            yield session

    def _is_for_reference(self) -> bool:
        proto = self.runnable.proto
        return has_halves(proto)


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
        """Return the outputs for the feeds, from an earlier run of them if there is one."""
        known = (results for fed, results in reversed(self._known) if fed is feeds)
        return next(known, None) or self._session.run(feeds)


@dataclass
class RecordedBaseline:
    """A model at one moment, as a part to extract regions from.

    Attributes:
        stamp: the moment.
        part: the model.
        samples: the samples that it ran on; empty if it did not run.
        values: of each of these runs, by name.
    """

    stamp: Stamp
    part: GraphPart
    samples: list[Sample] = field(default_factory=list)
    values: list[dict[str, Any]] = field(default_factory=list)


def recorded_baseline(
    model: Model, worker: Worker, wanted: Wanted, budget: int
) -> tuple[RecordedBaseline, str]:
    """Return the baseline of a model and ""; without values, and why, if no run fits the budget.

    Raises:
        RuntimeFailure: onnxruntime does not run it.
        UsageError: the user's inputs do not fit it.
    """
    state = RecordedBaseline(model.journal.stamp(), part_of(model))
    try:
        session = SlicedSession(state.part, model.folder, worker, budget // 2)
        state.samples = samples_for(_without_external(model), session, wanted)
        sizes = _sizes(model)
        for sample in state.samples:
            feeds = sample.inputs.feeds
            names = [*_smallest(sizes, sample.inputs.dims), *state.part.outputs]
            state.values.append({**feeds, **session.run(feeds, names)})
    except OutOfMemory as error:
        return RecordedBaseline(state.stamp, state.part), str(error)
    return state, ""


def _without_external(model: Model) -> onnx.ModelProto:
    """Return a model for which inputs can be made: external data is not read."""
    return export_model(model, is_bare=True)


def weights_of(model: Model) -> int:
    """Return the bytes of the initializers of the main graph."""
    tensors = (value.default for value in model.main.initializers)
    return sum(tensor.nbytes for tensor in tensors if tensor is not None)


def _sizes(model: Model) -> dict[str, tuple[int, tuple[Any, ...]]]:
    """Return the bits of an element and the dims of values with a known type."""
    found = {}
    for node in model.main.topological_order():
        for value in node.outputs:
            if value is None or value.dtype is None or value.shape is None:
                continue
            if value.dtype != onnx.TensorProto.STRING and not value.is_graph_output:
                found[value.name] = (bits_of(value.dtype), tuple(value.shape))
    return found


def _smallest(sizes: dict[str, tuple[int, tuple[Any, ...]]], dims: dict[str, int]) -> list[str]:
    """Return the names of the smallest values that may be kept."""
    nbytes: dict[str, float] = {}
    for name, (bits, shape) in sizes.items():
        bound = [dim if isinstance(dim, int) else dims.get(str(dim)) for dim in shape]
        known = [dim for dim in bound if dim is not None]
        if len(known) == len(bound):
            nbytes[name] = math.prod(known) * bits / 8
    kept, total = list[str](), 0.0
    for name in sorted(nbytes, key=nbytes.__getitem__):
        total += nbytes[name]
        if total > RECORDED:
            break
        kept.append(name)
    return kept
