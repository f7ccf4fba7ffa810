"""One pipeline on one model, run as often as is needed: up to any rewrite, or with some of them.

The same number is the same rewrite in every run, so a run can be repeated and cut short.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import onnx

from tiered.context import PassContext
from tiered.extensions.debug.time_limit import TimeLimit
from tiered.graph import Model
from tiered.graph.io.export import export_model
from tiered.graph.io.save import tensors_of
from tiered.passes import Pass
from tiered.passes.execution import execute
from tiered.passes.interface.pass_info import PassInfo, Place
from tiered.pipeline import get_pass
from tiered.pipeline.optimize import pipeline_of
from tiered.pipeline.pipeline_base import Pipeline
from tiered.runtime.external_data import with_files
from tiered.runtime.inputs.make import Inputs
from tiered.runtime.inputs.samples import Source, Wanted, read_samples, samples_for
from tiered.runtime.session import Runner, as_proto
from tiered.runtime.worker.client import shared_worker
from tiered.support.errors import TieredError
from tiered.support.loading import paused_collector
from tiered.verify.sliced_session import open_model

ModelLike = onnx.ModelProto | str | os.PathLike[str]

Key = tuple[str, str]
"""What a rewrite is called in every run: its pass, and the node or graph that it is anchored at."""


@dataclass(frozen=True)
class Attempt:
    """What one run of the pipeline made.

    Attributes:
        model: the result; where a pass raised, as it was before the whole pipeline.
        changed_by: the passes that changed something.
        error: the error of a pass.
        rewrites: how many rewrites were made, until then.
    """

    model: Model
    changed_by: Sequence[PassInfo]
    rewrites: int
    error: TieredError | None = None


@dataclass(frozen=True)
class Subject:
    """A model and the pipeline that is run on it.

    Args:
        source: a file, or a proto, which is not changed.
        passes: as for `tiered.optimize`; None is the default pipeline.
        settings: of the context; no instruments.
        folder: where the external data of a proto is.
        edits: of the pipeline, as for `tiered.optimize`.
    """

    source: ModelLike
    passes: Any = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    folder: str = ""
    edits: Sequence[Any] = ()

    @cached_property
    def pipeline(self) -> Pipeline:
        return pipeline_of(self.passes, self.context().target, self.edits)

    def load(self) -> Model:
        """Return a view of the model as it is before any pass."""
        return load(self.source, self.folder)

    def context(self, limit: int | None = None, instruments: Sequence[object] = ()) -> PassContext:
        """Return a context of the settings.

        Raises:
            UsageError: a wrong name or argument among them.
        """
        settings = dict(self.settings)
        return PassContext.isolated(**settings, rewrite_limit=limit, instruments=instruments)

    def run(
        self,
        limit: int | None = None,
        *,
        chosen: Collection[Key] | None = None,
        instruments: Sequence[object] = (),
    ) -> Attempt:
        """Run the pipeline on a new view of the model.

        Args:
            limit: the last rewrite that is let through.
            chosen: the only rewrites that are let through.
            instruments: that watch.
        """
        context = self.context(limit, [*instruments, TimeLimit()])
        error = None
        with paused_collector():
            model = self.load()
            if chosen is not None:
                model.gate.chosen = frozenset(chosen).__contains__
            try:
                with context:
                    execute(self.pipeline, model, context, Place(asked=self.passes is not None))
            except TieredError as raised:
                error = raised
        changed = context.report.changing()
        return Attempt(model, changed, model.gate.count, error)

    def pass_of(self, text: str) -> Pass | None:
        """Return the pass of the pipeline with this text, None if it is a dependency of one."""
        pending: list[Pass] = [self.pipeline]
        while pending:
            pass_ = pending.pop()
            if isinstance(pass_, Pipeline):
                pending += pass_.passes
            elif pass_.text == text:
                return pass_
        return None


def shaped(
    source: ModelLike, shapes: Mapping[str, Sequence[int | str]] | None
) -> tuple[ModelLike, str]:
    """Return a model with inputs of given shapes, and the folder of its external data.

    Other shapes are another interface, so results are compared with the model of these shapes.
    """
    if not shapes:
        return source, ""
    model = load(source)
    dims = {name: [*sizes] for name, sizes in shapes.items()}
    get_pass("const_input_shape", shape=dims).apply(model, PassContext.isolated())
    return export_model(model, is_bare=True), model.folder


def load(source: ModelLike, folder: str = "") -> Model:
    """Return a view of a file, or of a proto with its external data in a folder."""
    if isinstance(source, onnx.ModelProto):
        return Model.from_proto(source, folder=folder)
    return Model.load(source)


def opened(source: ModelLike, folder: str = "") -> AbstractContextManager[Runner]:
    """Open a model in the worker, where it can do no harm.

    Args:
        source: a file, or a proto.
        folder: where the external data of a proto is.

    Raises:
        RuntimeFailure: onnxruntime refuses the model.
        ModelError: a file of weights is not as it should be.
    """
    if isinstance(source, onnx.ModelProto) and _is_on_disk(source):
        own = onnx.ModelProto()
        own.CopyFrom(source)
        return open_model(shared_worker(), own, folder=with_files(own, folder))
    return open_model(shared_worker(), source)


def folder_of(source: ModelLike) -> str:
    """Return the folder of a file; "" for a proto."""
    if isinstance(source, onnx.ModelProto):
        return ""
    return os.path.dirname(os.path.abspath(os.fspath(source)))


def samples_of(
    source: ModelLike,
    session: Runner,
    given: Iterable[Source] = (),
    seed: int = 0,
    *,
    varied: bool = True,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
) -> list[Inputs]:
    """Return the samples of a model: the user's, else two made sets, the second one varied.

    Made ones have the dims of `shapes`, by name of the input, as far as these are sizes.

    Raises:
        UsageError: a file has no input to go to.
        RuntimeFailure: no inputs were found that the model accepts.
    """
    wanted = Wanted(read_samples(given), seed=seed, varied=varied, shapes=shapes or {})
    found = samples_for(as_proto(source), session, wanted)
    return [sample.inputs for sample in found]


def _is_on_disk(proto: onnx.ModelProto) -> bool:
    return any(tensor.data_location == tensor.EXTERNAL for tensor in tensors_of(proto))
