"""prepare: a model in, one for production out: all steps in one run, and one file or none."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tiered.extensions.preparation.done_step import DoneStep
from tiered.extensions.preparation.precisions import PrecisionOptions, is_lossy
from tiered.extensions.preparation.preparation_options import (
    LEVEL,
    Dims,
    PrepareOptions,
    Shapes,
    target_of,
)
from tiered.extensions.preparation.preparation_result import Prepared, changes_of
from tiered.extensions.preparation.preparation_steps import SAMPLES, PreparationStep, steps_of
from tiered.graph import Model
from tiered.numerics.calibration.calibrate import MADE, SampledModel
from tiered.numerics.precision.budget import budget_of
from tiered.numerics.precision.measurement import measured_error
from tiered.pipeline.optimize import optimize_model
from tiered.pipeline.result import ModelStatistics
from tiered.support.errors import (
    RuntimeFailure,
    TieredError,
    UsageError,
    VerificationError,
)
from tiered.verify.methods import How, how_of

if TYPE_CHECKING:
    import onnx

    from tiered.extensions.preparation.precisions import Order, Processor
    from tiered.runtime.inputs.samples import Source
    from tiered.targets import Backend

OnStep = Callable[[str], None]

_RANGED: Final = ("int8", "fp8")
"""Conversions that measure ranges."""
_UNSEEN: Final = 4
"""Generated inputs for the verification of measured ranges."""


def prepare(
    model: str | os.PathLike[str] | onnx.ModelProto,
    out: str | os.PathLike[str] | None = None,
    *,
    to: str | Iterable[str] = (),
    backend: Backend | str | None = None,
    dims: Dims | None = None,
    input_shapes: Shapes | None = None,
    opset: int | None = None,
    ir: int | None = None,
    expand: bool = False,
    opt_level: int = LEVEL,
    inputs: Iterable[Source] = (),
    strip: str | Iterable[str] = (),
    budget: str = "",
    order: Order = "auto",
    keep_ops: Iterable[str] = (),
    keep_nodes: Iterable[str] = (),
    bounds: Iterable[str] = (),
    processor: Processor | None = None,
    verify: bool | How = "final",
    host: bool = False,
) -> Prepared:
    """Prepare a model for production; the steps and their order follow from what is asked for.

    Args:
        model: a file, or a ModelProto, which is not changed.
        out: the file to write: whole, or not at all.
        to: precisions, as of the command line: fp16, bf16, mixed, fp8, int8, int8-dynamic,
            int8-weights, int4-weights, int32; several are applied in the order that works.
        backend: the target: a `Backend`, a name that `tiered backends` lists, or a TOML file.
        dims: sizes or new names by name of the dim, wherever it occurs: {"batch": 1}.
        input_shapes: dims by name of the input: {"x": [1, 3, "h", -1]}.
        opset, ir: versions of the result.
        expand: replace operators that the opset lacks by their function bodies.
        opt_level: of the optimisations, 0 to 4.
        inputs: samples: files, folders, dicts of arrays; generated without any.
        strip: texts to remove: metadata, names, docs or all.
        budget: how far the outputs may move, as cosine>=0.999: of each conversion, and of the
            whole.
        order: what returns to float for it first.
        keep_ops, keep_nodes: what stays float: operators, and globs of names of nodes.
        bounds: of int32: the ranges of inputs, as ids=0:30000.
        processor: of int8: where the result runs.
        verify: of each step: "final" compares the model before and after it, True or "each" after
            each pass; "region", "structure", "off".
        host: whether nodes that the target refuses may stay.

    Raises:
        ModelError: the model is malformed, or a file cannot be read or written.
        UsageError: a wrong name or option, or options that do not go together.
        OpsetError: nodes have no form at the opset.
        VerificationError: a step moved the outputs further than it promises, or the budget does
            not hold; nothing is written.
        TargetError: the target does not take the result, or a conversion had nothing to convert;
            nothing is written.
    """
    if out is not None:
        _check_out(model, out)
    with _in_files(inputs) as samples:
        options = PrepareOptions(
            to=_texts(to),
            backend=backend,
            dims=dims or {},
            input_shapes=input_shapes or {},
            opset=opset,
            ir=ir,
            expand=expand,
            opt_level=opt_level,
            strip=_texts(strip),
            precision=PrecisionOptions(
                budget=budget,
                order=order,
                inputs=samples,
                keep_ops=_texts(keep_ops),
                keep_nodes=_texts(keep_nodes),
                bounds=_texts(bounds),
                processor=processor,
            ),
        )
        made = prepare_model(_view(model), options, verify=verify)
    if not host:
        made.check_target()
    if isinstance(model, str | os.PathLike):
        made = replace(made, source=os.fspath(model))
    if out is None:
        return made
    made.model.save(out)
    return replace(made, out=os.fspath(out))


def prepare_model(
    model: Model,
    options: PrepareOptions,
    *,
    verify: bool | How = "final",
    measures: bool | None = None,
    on_step: OnStep = lambda text: None,
) -> Prepared:
    """Prepare a model: run and verify each step; `Prepared.check_target` is left to the caller.

    Each step begins as its command does, with the model as the one before wrote it: so the
    commands make the same bytes.

    Args:
        model: it is edited.
        options: what it is prepared for.
        verify: each step.
        measures: whether the error of the whole is measured; None for if steps are verified.
        on_step: called with each step, for progress.

    Raises:
        TieredError: as of `prepare`; a note names the step.
    """
    steps, how, samples = steps_of(options), how_of(verify), options.precision.inputs
    target = None if options.backend is None else target_of(options.backend)
    origin, before, started = model.origin, ModelStatistics.of(model), time.perf_counter()
    done: list[DoneStep] = []
    for number, step in enumerate(steps, 1):
        on_step(f"step {number} of {len(steps)}: {step.name} {step.what}".rstrip())
        view = model if number == 1 else model.copy()
        with _named(step, number, len(steps), options):
            is_ranged = step.precision in _RANGED and how not in ("off", "structure")
            inputs = samples or (inputs_like_calibration(view) if is_ranged else [])
            result = optimize_model(view, **step.settings(), verify=how, inputs=inputs)
            coverage = None if target is None else target.coverage(view)
            done.append(DoneStep.of(step, result, coverage))
        model = view
    error = ""
    if measures is None:
        measures = bool(options.precision.budget) or how not in ("off", "structure")
    if measures and any(is_lossy(each.step.precision) for each in done if each.is_conversion):
        on_step("measuring the whole")
        budget = options.precision.budget
        model.origin = origin
        error = measured_error(model, inputs=samples, budget=budget_of(budget) if budget else None)
    return Prepared(
        model=model,
        options=options,
        done=tuple(done),
        before=before,
        after=ModelStatistics.of(model),
        seconds=time.perf_counter() - started,
        coverage=None if target is None else target.coverage(model),
        error=error,
        interface=changes_of(model, origin),
    )


def inputs_like_calibration(model: Model, seed: int = 0) -> list[Mapping[str, Any]]:
    """Return generated inputs to verify measured ranges on; none if the model does not run.

    They are of the kind that calibration generates, and none of those that it has: ranges hold for
    inputs like the samples alone.
    """
    try:
        with SampledModel.of(model) as running:
            return list(running.samples(seed=seed + MADE, count=_UNSEEN))
    except RuntimeFailure:
        return []  # whatever runs it next says why


@contextmanager
def _named(
    step: PreparationStep, number: int, count: int, options: PrepareOptions
) -> Iterator[None]:
    """Add the step to an error."""
    try:
        yield
    except TieredError as error:
        is_of_accuracy = isinstance(error, VerificationError) and is_lossy(step.precision)
        if is_of_accuracy and not options.precision.budget:
            error.add_note("--budget states how far the outputs may move, as cosine>=0.99")
        error.add_note(f"in step {number} of {count} of the preparation: {step.name}")
        raise


def _view(model: str | os.PathLike[str] | onnx.ModelProto) -> Model:
    if isinstance(model, str | os.PathLike):
        return Model.load(model)
    return Model.from_proto(model)


def _check_out(model: object, out: str | os.PathLike[str]) -> None:
    if not isinstance(model, str | os.PathLike):
        return
    if os.path.realpath(os.fspath(model)) == os.path.realpath(os.fspath(out)):
        raise UsageError(f"{os.fspath(out)!r} is the model that is read; write to another file")


def _texts(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


@contextmanager
def _in_files(inputs: Iterable[Source]) -> Iterator[tuple[str, ...]]:
    """Yield samples as files, which passes take; arrays get files while the preparation runs."""
    given = tuple(inputs)
    samples = [each for each in given if isinstance(each, Mapping)]
    files = [os.fspath(each) for each in given if not isinstance(each, Mapping)]
    if not samples:
        yield tuple(files)
        return
    with tempfile.TemporaryDirectory(prefix=SAMPLES) as folder:
        for number, feeds in enumerate(samples):
            path = os.path.join(folder, f"{number:06}.npz")
            arrays: dict[str, Any] = {name: np.asarray(array) for name, array in feeds.items()}
            np.savez(path, **arrays)
        yield (*files, folder)
