"""optimize: a model in, an optimised one out, from a file or a ModelProto."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast, overload

import onnx

from tiered.context import OnError, PassContext
from tiered.graph import Model
from tiered.passes import Pass
from tiered.passes.execution import execute
from tiered.passes.interface.hooks import TraceHook
from tiered.passes.interface.pass_info import Place
from tiered.passes.lookup import pass_named
from tiered.passes.validity import check_result
from tiered.pipeline.edits import edited, pipeline_for
from tiered.pipeline.idle import check_asked, check_met, note_idle
from tiered.pipeline.named_passes import get_pass
from tiered.pipeline.pipeline_base import Pipeline
from tiered.pipeline.result import ModelStatistics, OptimizeResult, OptimizeSummary, summary_of
from tiered.pipeline.sequential import Sequential, parse_pipeline
from tiered.support.errors import UsageError
from tiered.support.loading import paused_collector
from tiered.support.records import Record
from tiered.support.setting_names import unknown_setting

if TYPE_CHECKING:
    from tiered.certify.certify_instrument import Certify
    from tiered.pipeline.expectations import Expectation
    from tiered.runtime.inputs.samples import Source
    from tiered.targets import Backend
    from tiered.targets.any_runtime import AnyRuntime
    from tiered.targets.pipeline_edits import PipelineEdit
    from tiered.verify.methods import How
    from tiered.verify.verify_instrument import Verify

Path = str | os.PathLike[str]


class Settings(TypedDict, total=False):
    """How to optimise: what `PassContext` takes, and what `optimize` describes."""

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
    edits: Iterable[PipelineEdit | str]
    input_shapes: Mapping[str, Sequence[int | str]] | None
    dims: Mapping[str, int | str] | None
    verify: bool | How
    certify: bool | str
    inputs: Iterable[Source]
    test_shapes: Mapping[str, Sequence[int | str]] | None
    expect: Iterable[str]


@overload
def optimize(
    model: Path | onnx.ModelProto, out: None = None, **settings: Unpack[Settings]
) -> onnx.ModelProto: ...
@overload
def optimize(model: bytes, out: None = None, **settings: Unpack[Settings]) -> bytes: ...
@overload
def optimize(model: Any, out: None = None, **settings: Unpack[Settings]) -> Any: ...
@overload
def optimize(model: Any, out: Path, **settings: Unpack[Settings]) -> OptimizeSummary: ...
def optimize(model: Any, out: Path | None = None, **settings: Unpack[Settings]) -> Any:
    """Return the optimised model; or write it to `out`, and return what changed.

    Args:
        model: a file or a ModelProto: the result is a ModelProto; or bytes, an `onnx_ir.Model` or a
            `torch.onnx.ONNXProgram`: the result is another one. It is not changed.
        out: the file to write: whole, or not at all.

    The settings of `PassContext` (opt_level, required, disabled, trace, instruments, config,
    backend, on_error, strict, rewrite_limit) are described there.

    Keyword Args:
        passes: a pipeline instead of the backend's, as text or a list; all that it lists runs.
        edits: changes of the pipeline: "drop fuse_gelu", "after fold_constant: my_pass".
        input_shapes: dims by name of the input: {"x": [1, 3, "h", -1]}; -1 keeps one. This changes
            the interface.
        dims: sizes or new names by name of the dim, wherever it occurs: {"batch": 1}.
        verify: run the model after each pass (True), or "region", "final", "structure"; an error
            is raised before anything is written. See `tiered.verify.Verify`.
        certify: prove each rewrite (True); "strict" raises if one of levels 0 to 2 is not proved; a
            name that ends in .json is the file of the certificate, "strict,FILE" both. See
            docs/certificates.md.
        inputs: samples for verification: files, folders, dicts of arrays, each of all inputs;
            without any, they are generated.
        test_shapes: dims of the generated inputs, by name of the input; the model keeps its own.
        expect: expectations of the result, or `TargetError` is raised and nothing is written:
            "Gelu>=12", "com.microsoft::BiasGelu", "nodes<=500", "bytes<=90MB", "parameters<1000".

    Raises:
        ModelError: the model is malformed, or a file cannot be read or written.
        UsageError: a wrong name or option, or `out` is the file that is read.
        VerificationError: outputs changed more than the passes promise; nothing is written.
        TargetError: an expectation of the result does not hold, or nothing that `verify` asks for
            could be compared; nothing is written.
        PassError: a pass failed.
    """
    if out is not None:
        _check_output(model, out)
    with paused_collector():
        view, source, back = _opened(model)
        before = None if out is None else ModelStatistics.of(view, file=_size(source))
        run = _run(view, settings)
        made: Any
        if out is None or before is None:
            made = back(view.to_proto())
        else:
            view.save(out)
            after = ModelStatistics.of(view, file=_size(out))
            path = os.fspath(out)
            made = summary_of(run.context, before, after, run.seconds, run.verify, path)
        if run.certify is not None and run.certify.file is not None:
            from tiered.certify.certificate import write_certificate

            write_certificate(run.certify.file, run.certify.findings, source, out)
        if not run.context.watchers:
            # Left to the collector, it would stay for long. A pass that kept it gets an error.
            view.close()
        return made


def optimize_model(model: Any, **settings: Unpack[Settings]) -> OptimizeResult:
    """Return the optimised model with its pipeline, context, statistics and times.

    A `Model` is edited in place; for the rest see `optimize`.
    """
    with paused_collector():
        view = model if isinstance(model, Model) else _opened(model)[0]
        before = ModelStatistics.of(view)
        run = _run(view, settings)
        return OptimizeResult(
            model=view,
            pipeline=run.pipeline,
            context=run.context,
            before=before,
            after=ModelStatistics.of(view),
            seconds=run.seconds,
            verify=run.verify,
            certify=run.certify,
        )


def _size(model: Path | onnx.ModelProto) -> int:
    """Return the bytes of a model file, without external data."""
    return model.ByteSize() if isinstance(model, onnx.ModelProto) else os.path.getsize(model)


class _OptimizeRun(Record):
    pipeline: Pipeline
    context: PassContext
    seconds: float
    verify: Verify | None
    certify: Certify | None


def _run(model: Model, settings: Settings) -> _OptimizeRun:
    """Run the pipeline on the view, and verify it if that is asked for."""
    _check_settings(settings)
    context_settings = cast(dict[str, Any], dict(settings))
    passes = context_settings.pop("passes", None)
    if isinstance(passes, Iterator):
        passes = tuple(passes)  # it is read again after the run
    edits = context_settings.pop("edits", ())
    expectations = _expectations(context_settings.pop("expect", ()))
    shapes = context_settings.pop("input_shapes", None)
    dims = context_settings.pop("dims", None)
    if dims:
        from tiered.graph.shape_inference.set_input_shapes import with_dims

        shapes = with_dims(model, shapes or {}, dims)
    given = context_settings.pop("inputs", ())
    own = context_settings.pop("test_shapes", None) or {}
    if own:
        from tiered.graph.shape_inference.set_input_shapes import check_shapes

        check_shapes(model, own)
    tested = {**(shapes or {}), **own}
    verify = _verify(context_settings.pop("verify", False), given, tested)
    if verify is None:
        _check_samples(model, given)
    else:
        watching = context_settings.get("instruments", ())
        context_settings["instruments"] = (*watching, verify)
    certify = _certify(context_settings.pop("certify", False))
    if certify is not None:
        context_settings["instruments"] = (*context_settings.get("instruments", ()), certify)
    # Made before the context: entries of the context may name groups of the pipeline.
    asked = None if passes is None else _listed(passes)
    made_settings = settings_with_shapes(context_settings, shapes, dims)
    context = PassContext(**made_settings)
    pipeline = shaped(pipeline_of(asked, context.target, edits), shapes, dims)
    if asked is None and context.names_backend:
        from tiered.pipeline.quantized_models import choose_form

        pipeline = choose_form(model, pipeline, context, made_settings)
    unjudged = frozenset[str]()
    if expectations:
        from tiered.pipeline.expectations import check_expectations, check_names

        unjudged = check_names(expectations, model, context.backend, pipeline)
    started = time.perf_counter()
    before = model.journal.stamp()
    with context:
        execute(pipeline, model, context, Place(asked=passes is not None))
        if model.journal.moved_since(before):
            _check_result(model, context, pipeline)
        check_met(context)
    taken = time.perf_counter() - started
    note_idle(context, edits, settings.get("required") or ())
    check_asked(context, settings.get("required") or (), asked, passes, edits, model)
    if verify is not None:
        verify.verdict.raise_if_not()
    if expectations:
        after = ModelStatistics.of(model)
        check_expectations(expectations, after, pipeline, context.remarks, unjudged)
    return _OptimizeRun(pipeline, context, taken, verify, certify)


def _expectations(entries: Iterable[str]) -> tuple[Expectation, ...]:
    if entries == ():
        return ()
    from tiered.pipeline.expectations import parse_expectations

    return parse_expectations(entries)


def _check_settings(settings: Settings) -> None:
    """Check the names of the settings; the error suggests the right name.

    Raises:
        UsageError: there is no such setting.
    """
    known = Settings.__annotations__
    for name in settings:
        if name not in known:
            raise unknown_setting("optimize", name, known)


def _check_result(model: Model, context: PassContext, pipeline: Pipeline) -> None:
    """Check the result of a pipeline without `final_check`, unless that pass is disabled.

    Raises:
        ModelError: it is not a valid model.
    """
    # By its canonical name, which needs no look into the folders of passes.
    final = pass_named("final_check")
    if all(leaf.name != final.name for leaf in pipeline.leaves()) and context.decide(final):
        check_result(model, context)


def _verify(
    how: bool | How, inputs: Iterable[Source], shapes: Mapping[str, Sequence[int | str]] | None
) -> Verify | None:
    """Return the instrument that was asked for, if any."""
    if how is False or how == "off":
        return None
    from tiered.verify import Verify

    return Verify(how, inputs=inputs, shapes=shapes)


def _certify(how: bool | str) -> Certify | None:
    """Return the instrument that was asked for, if any.

    Raises:
        UsageError: it is neither a mode nor the name of a certificate.
    """
    if how is False:
        return None
    from tiered.certify.certify_instrument import certify_of

    return certify_of(how)


def _check_samples(model: Model, inputs: Iterable[Source]) -> None:
    """Check samples that no verification reads: passes may, if they find something to do.

    Raises:
        UsageError: they are no samples of the model.
    """
    given = tuple(inputs)
    if given:
        from tiered.runtime.inputs.samples import check_given, read_samples

        check_given(model, read_samples(given))


Shapes = Mapping[str, Sequence[int | str]]
Dims = Mapping[str, int | str]


def shaped(pipeline: Pipeline, shapes: Shapes | None, dims: Dims | None = None) -> Pipeline:
    """Return a pipeline that first sets the shapes of inputs, and last those of outputs."""
    if not shapes and not dims:
        return pipeline
    first, last = shaping(shapes, dims)
    present = {leaf.name for leaf in pipeline.leaves()}
    if first.name in present:
        pipeline = pipeline.replace(first.name, first)
    else:
        pipeline = Sequential([first, pipeline])
    return pipeline if last.name in present else Sequential([pipeline, last])


def settings_with_shapes(
    settings: dict[str, Any], shapes: Shapes | None, dims: Dims | None = None
) -> dict[str, Any]:
    """Return the settings of a context that requires the passes that set these shapes."""
    if not shapes and not dims:
        return settings
    required = settings.get("required") or ()
    if isinstance(required, str):
        return settings
    return {**settings, "required": [*required, *shaping(shapes, dims)]}


def shaping(shapes: Shapes | None, dims: Dims | None) -> tuple[Pass, Pass]:
    """Return the pass that sets the shapes of inputs, and the one for those of outputs."""
    options: dict[str, Any] = {}
    if shapes:
        options["shape"] = {name: [*given] for name, given in shapes.items()}
    if dims:
        options["dim"] = dict(dims)
    return get_pass("const_input_shape", **options), get_pass("const_output_shape")


def pipeline_of(
    passes: str | Iterable[Pass | str] | None,
    backend: Backend | AnyRuntime | None = None,
    edits: Iterable[PipelineEdit | str] = (),
) -> Pipeline:
    """Return the given pipeline, or that of a string or list, after edits.

    Args:
        passes: None for the default pipeline with the edits of the backend.
        backend: the target; that of the context by default.
        edits: the user's.

    Raises:
        PassNotFoundError: an unknown name.
        PipelineSyntaxError: text that does not parse.
    """
    if passes is None:
        return pipeline_for(backend or PassContext.current().target, edits)
    return edited(_listed(passes), edits)


def _listed(passes: str | Iterable[Pass | str]) -> Pipeline:
    if isinstance(passes, Pipeline):
        return passes
    if isinstance(passes, Pass):
        return Sequential([passes])
    return parse_pipeline(passes) if isinstance(passes, str) else Sequential(passes)


def _opened(
    model: Any,
) -> tuple[Model, Path | onnx.ModelProto, Callable[[onnx.ModelProto], Any]]:
    """Return the view of a model, its file or proto, and what makes the like of it of a result."""
    if isinstance(model, onnx.ModelProto):
        return Model.from_proto(model), model, _as_it_is
    if isinstance(model, str | os.PathLike):
        return Model.load(model), model, _as_it_is
    from tiered.pipeline.held import held

    found = held(model)
    if found is None:
        raise UsageError(
            "optimize takes a path, an onnx.ModelProto, bytes, an onnx_ir.Model or a "
            f"torch.onnx.ONNXProgram, not {type(model).__name__}"
        )
    return Model.from_proto(found.proto, folder=found.folder), found.proto, found.back


def _as_it_is(proto: onnx.ModelProto) -> onnx.ModelProto:
    return proto


def _check_output(model: Any, out: Path) -> None:
    if not isinstance(out, str | os.PathLike):
        raise UsageError(
            f"optimize writes to `out`, a path, not {out!r}; passes are named: passes=[...]"
        )
    if not isinstance(model, str | os.PathLike):
        return
    if os.path.realpath(os.fspath(model)) == os.path.realpath(os.fspath(out)):
        raise UsageError(f"{os.fspath(out)!r} is the model that is read; write to another file")
