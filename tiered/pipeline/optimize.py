"""optimize: a model in, an optimised one out, from a file or a ModelProto."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack, cast, overload

import onnx

from tiered.context import OnError, PassContext
from tiered.control.decision import Place
from tiered.control.hooks import TraceHook
from tiered.errors import UsageError
from tiered.graph import Model
from tiered.passes import Pass
from tiered.passes.execution import execute
from tiered.pipeline.base import Pipeline
from tiered.pipeline.default import default_pipeline
from tiered.pipeline.result import OptimizeResult, Statistics
from tiered.pipeline.sequential import Sequential
from tiered.pipeline.text import parse_pipeline
from tiered.pipeline.verification import verify as verify_model

if TYPE_CHECKING:
    from tiered.backends import Backend
    from tiered.runtime import Comparison

Path = str | os.PathLike[str]


class Settings(TypedDict, total=False):
    """How to optimise; all but the last two are those of `PassContext`."""

    opt_level: int | None
    required: Iterable[Pass | str]
    disabled: Iterable[Pass | str]
    trace: TraceHook | None
    instruments: Iterable[object]
    config: Mapping[str, Any] | None
    backend: Backend | str | None
    on_error: OnError | None
    strict: bool | None
    rewrite_limit: int | None
    passes: str | Iterable[Pass | str] | None
    """A pipeline instead of the default one; all that it lists runs, whatever its level."""
    verify: bool
    """Run model and result on onnxruntime; raise before anything is written if they differ."""


@overload
def optimize(
    model: Path | onnx.ModelProto, out: None = None, **settings: Unpack[Settings]
) -> onnx.ModelProto: ...
@overload
def optimize(model: Path | onnx.ModelProto, out: Path, **settings: Unpack[Settings]) -> None: ...
def optimize(
    model: Path | onnx.ModelProto, out: Path | None = None, **settings: Unpack[Settings]
) -> onnx.ModelProto | None:
    """Return the optimised model, or write it to `out`.

    Args:
        model: a file, or a ModelProto, which is not changed.
        out: the file to write: whole, or not at all.
        settings: see `Settings`.

    Raises:
        ModelError: the model is malformed, or a file cannot be read or written.
        UsageError: a wrong name or option, or `out` is the file that is read.
        VerificationError: outputs changed more than the passes promise; nothing is written.
        PassError: a pass failed.
    """
    if out is not None:
        _check_output(model, out)
    with _paused_gc():
        view = _view(model)
        _run(view, model, settings)
        if out is None:
            return view.to_proto()
        view.save(out)
        return None


def optimize_model(
    model: Path | onnx.ModelProto | Model, **settings: Unpack[Settings]
) -> OptimizeResult:
    """Return the optimised model with all that there is to say about it.

    A `Model` is edited in place; for the rest see `optimize`.
    """
    with _paused_gc():
        view = model if isinstance(model, Model) else _view(model)
        before = Statistics.of(view)
        run = _run(view, model, settings)
        return OptimizeResult(
            model=view,
            pipeline=run.pipeline,
            context=run.context,
            before=before,
            after=Statistics.of(view),
            seconds=run.seconds,
            verified=run.verified,
        )


class _Run(NamedTuple):
    pipeline: Pipeline
    context: PassContext
    seconds: float
    verified: tuple[Comparison, ...] | None


def _run(model: Model, given: Path | onnx.ModelProto | Model, settings: Settings) -> _Run:
    """Run the pipeline on the view of what was given, and verify it if that is asked for."""
    context_settings = cast(dict[str, Any], dict(settings))
    passes = context_settings.pop("passes", None)
    must_verify = context_settings.pop("verify", False)
    pipeline = pipeline_of(passes)
    context = PassContext(**context_settings)
    original = _runnable(given) if must_verify else None
    started = time.perf_counter()
    with context:
        execute(pipeline, model, context, Place(asked=passes is not None))
    seconds = time.perf_counter() - started
    if original is None:
        return _Run(pipeline, context, seconds, None)
    seed = context.config["verify.seed"]
    verified = verify_model(original, model, context.report.changing(), seed=seed)
    return _Run(pipeline, context, seconds, verified)


def pipeline_of(passes: str | Iterable[Pass | str] | None) -> Pipeline:
    """Return the pipeline of a text, of a list, the one given, or the default one for None.

    Raises:
        PassNotFoundError: an unknown name.
        PipelineSyntaxError: text that does not parse.
    """
    if passes is None:
        return default_pipeline()
    if isinstance(passes, Pipeline):
        return passes
    if isinstance(passes, Pass):
        return Sequential([passes])
    return parse_pipeline(passes) if isinstance(passes, str) else Sequential(passes)


def _view(model: Path | onnx.ModelProto) -> Model:
    if isinstance(model, onnx.ModelProto):
        return Model.from_proto(model)
    if isinstance(model, str | os.PathLike):
        return Model.load(model)
    raise UsageError(f"optimize takes a path or an onnx.ModelProto, not {type(model).__name__}")


def _runnable(given: Path | onnx.ModelProto | Model) -> onnx.ModelProto | str:
    """Return the original as onnxruntime can open it; a file, so that it finds its weights."""
    if isinstance(given, Model):
        return given.to_proto()
    return given if isinstance(given, onnx.ModelProto) else os.fspath(given)


def _check_output(model: Path | onnx.ModelProto, out: Path) -> None:
    if isinstance(model, onnx.ModelProto):
        return
    if os.path.realpath(os.fspath(model)) == os.path.realpath(os.fspath(out)):
        raise UsageError(f"{os.fspath(out)!r} is the model that is read; write to another file")


@contextmanager
def _paused_gc() -> Iterator[None]:
    """Pause the garbage collector: it would visit every node of a large graph, again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
