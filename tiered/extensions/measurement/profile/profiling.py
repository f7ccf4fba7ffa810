"""Profile models on onnxruntime, one or two side by side."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Final

import onnx

from tiered.extensions.measurement.latency_bench import How
from tiered.extensions.measurement.profile.executed import ExecutedPlaces, named
from tiered.extensions.measurement.profile.executed_work import Work, machine_of, probe, probe_feeds
from tiered.extensions.measurement.profile.kernel_events import Events, read_events
from tiered.extensions.measurement.profile.model_profile import Machine, NodeTime, Profile
from tiered.extensions.measurement.profile.pairs import Profiles
from tiered.extensions.measurement.subjects import (
    MeasuredModel,
    ModelLike,
    open_subject,
    samples_of,
    sizes_of_inputs,
    subject,
)
from tiered.extensions.measurement.trials import order
from tiered.graph import Model
from tiered.runtime.inputs.given_inputs import Given
from tiered.runtime.inputs.samples import Source
from tiered.runtime.opening import CPU, Opening, RuntimeLevel
from tiered.runtime.worker.client import SECONDS, Worker, WorkerSession
from tiered.support.errors import ModelError, RuntimeFailure, UsageError, words_of

RUNS: Final = 30
"""The default: medians of a node's times are steady from about there on."""
_WARM: Final = 3
_MOST_EVENTS: Final = 900_000
"""Events that onnxruntime keeps: it drops those after a million."""
_LARGEST: Final = 1 << 30
"""Bytes of a model from which the graph that onnxruntime executes is not written."""


@dataclass(frozen=True)
class Traced:
    """The profile of a model, as onnxruntime wrote it, and the graph that it executed."""

    subject: MeasuredModel
    events: Events
    file: str
    executed: onnx.ModelProto | None


def profile(
    *models: ModelLike,
    inputs: Iterable[Source] = (),
    seed: int = 0,
    dims: Mapping[str, int | str] | None = None,
    input_shapes: Mapping[str, Sequence[int | str]] | None = None,
    provider: str = CPU,
    threads: int = 1,
    runtime_level: RuntimeLevel = "all",
    runs: int = RUNS,
    roofline: bool = False,
    perfetto: str | os.PathLike[str] | None = None,
) -> Profiles:
    """Return where the time of a model goes, or that of two side by side.

    Args:
        models: one or two: files, so that external data is found, or protos.
        inputs: files, folders or arrays, one after the other; by default inputs are made for the
            first model.
        seed: of the inputs that are made.
        dims, input_shapes: sizes of dynamic dims, where inputs are made.
        provider: the execution provider: its name, in full or short ("cuda").
        threads: that a node may use; 0 leaves the number to onnxruntime.
        runtime_level: onnxruntime's own optimisations: "off", "basic", "extended" or "all".
        runs: how many are measured of each model.
        roofline: measure what the machine does at most, and set each node beside it.
        perfetto: a file for onnxruntime's own trace, which Perfetto and chrome://tracing open.

    Raises:
        UsageError: an argument is wrong, or models take different inputs.
        ModelError: a file holds no model, or the trace cannot be written.
        RuntimeFailure: onnxruntime does not open or run a model.
    """
    how = How(provider, threads, runtime_level)
    return profiled(
        models,
        how,
        runs,
        inputs=inputs,
        seed=seed,
        dims=dims or {},
        input_shapes=input_shapes or {},
        roofline=roofline,
        perfetto=None if perfetto is None else os.fspath(perfetto),
    )


def profiled(
    models: Sequence[ModelLike],
    how: How,
    runs: int,
    *,
    inputs: Iterable[Source],
    seed: int,
    dims: Mapping[str, int | str],
    input_shapes: Mapping[str, Sequence[int | str]],
    roofline: bool,
    perfetto: str | None,
    say: Callable[[str], None] = lambda text: None,
) -> Profiles:
    """Do as `profile`, with the progress.

    Raises:
        UsageError, ModelError, RuntimeFailure: as `profile`.
    """
    check(len(models), runs, perfetto)
    opening = how.opening()
    subjects = [_with_names(subject(model)) for model in models]
    samples, feeds = samples_of(
        subjects,
        opening,
        inputs=inputs,
        seed=seed,
        sizes=sizes_of_inputs(subjects, input_shapes, dims),
        seconds=SECONDS,
    )
    with tempfile.TemporaryDirectory(prefix="tiered-profile-") as folder:
        traced = _traced(subjects, opening, feeds, runs, folder, say)
        if perfetto is not None:
            _save(traced[0].file, perfetto)
        machine = None
        if roofline:
            say("measuring the machine")
            machine = _machine(opening, folder)
    said = tuple(map(str, samples))
    return Profiles(tuple(_profile(each, opening, said, machine, runs) for each in traced))


def check(count: int, runs: int, perfetto: str | None) -> None:
    """Check the arguments of a profile.

    Raises:
        UsageError: one is wrong.
    """
    if count not in (1, 2):
        raise UsageError(f"profile takes one model or two, not {count}")
    if runs < 1:
        raise UsageError(f"runs are 1 or more, not {runs}")
    if perfetto is not None and count > 1:
        raise UsageError("a trace for Perfetto is that of one model, not of two")
    if perfetto is not None and not perfetto.endswith(".json"):
        raise UsageError(f"a trace for Perfetto ends in .json, not {perfetto!r}")
    if perfetto is not None and not os.path.isdir(os.path.dirname(perfetto) or "."):
        raise UsageError(f"cannot write {perfetto!r}: no such folder")


def _save(trace: str, path: str) -> None:
    """Copy the trace to its place.

    Raises:
        ModelError: it cannot be written.
    """
    try:
        shutil.copyfile(trace, path)
    except OSError as error:
        raise ModelError(f"cannot write {path!r}: {words_of(error)}") from error


def _with_names(each: MeasuredModel) -> MeasuredModel:
    """Return a model in which each node has a name of its own, by which its time is known."""
    proto = named(each.proto)
    if proto is each.proto:
        return each
    folder = "" if isinstance(each.source, onnx.ModelProto) else os.path.dirname(
        os.path.abspath(each.source)
    )  # fmt: skip
    return MeasuredModel(proto, each.name, proto, folder)


def _traced(
    subjects: Sequence[MeasuredModel],
    opening: Opening,
    feeds: Sequence[Sequence[Given]],
    runs: int,
    folder: str,
    say: Callable[[str], None],
) -> list[Traced]:
    """Run the models alternately, each in a process of its own, and return their profiles."""
    with ExitStack() as stack:
        opened = []
        for place, each in enumerate(subjects):
            own = os.path.join(folder, str(place))
            os.mkdir(own)
            opened.append(stack.enter_context(_opened(each, opening, feeds[place], own)))
        for session, _ in opened:
            session.time(0, _WARM, 0)
        count = min(runs, *(_most_runs(each) for each in subjects))
        for run in range(count):
            say(f"run {run + 1} of {count}")
            for place in order(len(subjects), run):
                opened[place][0].time(run % len(feeds[place]), 1, 0)
        files = [session.end_profile() for session, _ in opened]
    return [
        Traced(each, read_events(file, _WARM), file, _read(executed))
        for each, file, (_, executed) in zip(subjects, files, opened, strict=True)
    ]


def _most_runs(each: MeasuredModel) -> int:
    """Return how many runs the profile holds, if bodies run a few times each."""
    return max(1, _MOST_EVENTS // max(1, 2 * len(each.proto.graph.node)) - _WARM)


@contextmanager
def _opened(
    each: MeasuredModel, opening: Opening, feeds: Sequence[Given], folder: str
) -> Iterator[tuple[WorkerSession, str]]:
    """Open a model with a profile; also return the file of the graph that is executed, or ""."""
    executed = os.path.join(folder, "executed.onnx") if each.file_bytes < _LARGEST else ""
    with Worker(seconds=SECONDS) as worker:
        try:
            watched = replace(opening, profile=folder, executed=executed)
            session = open_subject(worker, each, watched)
        except RuntimeFailure:
            # Providers that compile nodes cannot write their graph; other faults occur again.
            executed = ""
            session = open_subject(worker, each, replace(opening, profile=folder))
        session.hold(feeds)
        yield session, executed


def _read(path: str) -> onnx.ModelProto | None:
    if not os.path.exists(path):
        return None
    return onnx.load(path, load_external_data=False)


def _machine(opening: Opening, folder: str) -> Machine:
    own = os.path.join(folder, "probe")
    os.mkdir(own)
    with Worker(seconds=SECONDS) as worker:
        session = worker.open(probe(), setting=replace(opening, level="off", profile=own))
        session.hold([probe_feeds()])
        session.time(0, 8, 1)
        return machine_of(read_events(session.end_profile(), 1))


def _profile(
    traced: Traced,
    opening: Opening,
    inputs: tuple[str, ...],
    machine: Machine | None,
    asked: int,
) -> Profile:
    places = ExecutedPlaces(traced.subject.proto, traced.executed)
    graph = traced.subject.proto if traced.executed is None else traced.executed
    work, events = Work(Model.from_proto(graph)), traced.events
    nodes: list[NodeTime] = []
    for key, kernel in events.kernels.items():
        calls = round(statistics.median(run.calls.get(key, 0) for run in events.runs))
        seconds = statistics.median(run.nodes.get(key, 0.0) for run in events.runs)
        nbytes, products = work.nbytes(kernel) * calls, work.of(kernel) * calls
        nodes.append(
            NodeTime(
                kernel.name,
                kernel.op_type,
                kernel.provider,
                places.of(kernel.name, kernel.op_type),
                max(0.0, seconds),
                calls,
                kernel.inputs,
                kernel.outputs,
                nbytes,
                products,
                None if machine is None else machine.least(products, nbytes),
            )
        )
    notes: list[str] = []
    if traced.executed is None:
        notes.append(
            "the graph that onnxruntime executes is unknown: nodes are known by their names"
        )
    if len(events.runs) < asked:
        notes.append(f"{len(events.runs)} of {asked} runs: onnxruntime keeps a million events")
    return Profile(
        traced.subject.name,
        tuple(nodes),
        statistics.median(run.seconds for run in events.runs),
        len(events.runs),
        opening,
        inputs,
        machine,
        tuple(notes),
    )
