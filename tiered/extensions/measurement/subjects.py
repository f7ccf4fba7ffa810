"""The models of a measurement, and the inputs that all of them run on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import onnx

from tiered.extensions.measurement.trials import ModelProcess
from tiered.graph import Model
from tiered.graph.io.save import tensors_of
from tiered.graph.shape_inference.set_input_shapes import check_shapes, with_dims
from tiered.runtime.inputs.given_inputs import Given, check_fits
from tiered.runtime.inputs.samples import (
    Sample,
    Source,
    Wanted,
    in_dtypes_of,
    read_samples,
    samples_for,
)
from tiered.runtime.opening import Opening
from tiered.runtime.session import as_proto, label_of
from tiered.runtime.worker.client import Worker, WorkerSession
from tiered.support.amounts import counted
from tiered.support.errors import MissingOperator, UsageError
from tiered.verify.custom_ops import open_defined

ModelLike = onnx.ModelProto | str | os.PathLike[str]


class MeasuredModel(NamedTuple):
    """A model that is measured, and its name in messages; `proto` lacks external data.

    `folder` is where the external data of a source is that is no file.
    """

    source: ModelLike
    name: str
    proto: onnx.ModelProto
    folder: str = ""

    @property
    def data_files(self) -> list[str]:
        """The files of the external data."""
        folder = self.folder
        if not isinstance(self.source, onnx.ModelProto):
            folder = os.path.dirname(os.path.abspath(self.source))
        named = {
            entry.value
            for tensor in tensors_of(self.proto)
            if tensor.data_location == onnx.TensorProto.EXTERNAL
            for entry in tensor.external_data
            if entry.key == "location"
        }
        return [os.path.join(folder, name) for name in sorted(named)] if folder else []

    @property
    def file_bytes(self) -> int:
        """The size of the file with its external data; of a proto, the size of its bytes."""
        data = sum(map(os.path.getsize, self.data_files))
        if isinstance(self.source, onnx.ModelProto):
            return self.source.ByteSize() + data
        return os.path.getsize(self.source) + data


def subject(source: ModelLike) -> MeasuredModel:
    """Return a model to measure.

    Raises:
        ModelError: the file holds no model.
    """
    proto = as_proto(source)
    name = label_of(source) if isinstance(source, onnx.ModelProto) else os.fspath(source)
    return MeasuredModel(source, name, proto)


def sizes_of_inputs(
    subjects: Sequence[MeasuredModel],
    shapes: Mapping[str, Sequence[int | str]],
    dims: Mapping[str, int | str],
) -> dict[str, Sequence[int | str]]:
    """Return the dims of the inputs that are made: those that are given or that a model fixes.

    Raises:
        UsageError: the first model has no such dim or input, or an input has another rank.
        ShapeError: an input has another fixed size, or one name would have two.
        ModelError: the file holds no model.
    """
    first = subjects[0].proto
    found: dict[str, Sequence[int | str]] = {}
    if shapes or dims:
        model = Model.from_proto(first)
        found = with_dims(model, shapes, dims)
        inputs = {value.name: value for value in model.main.inputs}
        unknown = [name for name in found if name not in inputs]
        if unknown:
            there = f"it has {', '.join(inputs) or 'none'}"
            raise UsageError(f"{subjects[0].name} has no input {unknown[0]!r}; {there}")
        for name, given in found.items():
            rank = inputs[name].rank
            if rank is not None and rank != len(given):
                raise UsageError(
                    f"{subjects[0].name}: input {name!r} has {counted(rank, 'dim')} "
                    f"({inputs[name].type}), not {len(given)}"
                )
        check_shapes(model, found)
    fixed: dict[str, list[int]] = {}
    for each in subjects[1:]:
        for info in each.proto.graph.input:
            sizes = [dim.dim_value or -1 for dim in info.type.tensor_type.shape.dim]
            known = fixed.setdefault(info.name, sizes)
            fixed[info.name] = [max(pair) for pair in zip(known, sizes, strict=False)]
    for name, sizes in fixed.items():
        given = found.get(name, [-1] * len(sizes))
        found[name] = [
            old if isinstance(old, int) and old > 0 else new
            for old, new in zip(given, sizes, strict=False)
        ]
    return found


def samples_of(
    subjects: Sequence[MeasuredModel],
    opening: Opening,
    *,
    inputs: Iterable[Source],
    seed: int,
    sizes: Mapping[str, Sequence[int | str]],
    seconds: float,
) -> tuple[list[Sample], list[list[Given]]]:
    """Open and run each model once; return the samples, and the feeds of each model.

    Args:
        subjects: the models.
        opening: how they are opened.
        inputs: files, folders or arrays; without any, inputs are made for the first model.
        seed: of the inputs that are made.
        sizes: of the dims of made inputs, by name of the input.
        seconds: the limit of one request.

    Raises:
        UsageError: models take different inputs, or a sample does not fit one.
        RuntimeFailure: onnxruntime does not open or run one.
    """
    wanted = Wanted(given=read_samples(inputs), bindings=1, seed=seed, varied=False, shapes=sizes)
    samples: list[Sample] = []
    feeds: list[list[Given]] = []
    names: set[str] = set()
    for each in subjects:
        with Worker(seconds=seconds) as worker:
            session = open_subject(worker, each, opening)
            if each is subjects[0]:
                samples, names = samples_for(each.proto, session, wanted), {*session.inputs}
            if names != {*session.inputs}:
                raise UsageError(_other_inputs(subjects[0].name, names, each.name, session.inputs))
            feeds.append([in_dtypes_of(each.proto, sample.inputs.feeds) for sample in samples])
            for sample, fed in zip(samples, feeds[-1], strict=True):
                check_fits(each.proto.graph.input, fed, f"{sample.label} for {each.name}")
                session.run(fed)
    return samples, feeds


@contextmanager
def opened(
    each: MeasuredModel, opening: Opening, feeds: Sequence[Given], seconds: float
) -> Iterator[ModelProcess]:
    """Open a model in a process of its own, with the feeds that its timed runs take."""
    with Worker(seconds=seconds) as worker:
        worker.ready()
        session = open_subject(worker, each, opening)
        session.hold(feeds)
        yield session


def open_subject(worker: Worker, each: MeasuredModel, opening: Opening) -> WorkerSession:
    """Open a model in a worker.

    Raises:
        MissingOperator: onnxruntime has no such operator.
        RuntimeFailure: it does not open the model.
    """
    try:
        return open_defined(worker, each.source, setting=opening, folder=each.folder)
    except MissingOperator as error:  # it names the operator, but no model
        raise MissingOperator(f"{each.name}: {error}") from error


def _other_inputs(first: str, names: Iterable[str], second: str, others: Iterable[str]) -> str:
    only = [
        f"only {name} takes {', '.join(map(repr, found))}"
        for name, found in (
            (first, sorted({*names} - {*others})),
            (second, sorted({*others} - {*names})),
        )
        if found
    ]
    return (
        f"{first} and {second} have different inputs: {'; '.join(only)}; models are compared on "
        "the same inputs"
    )
