"""The error of a model: its outputs beside those of the model that it was loaded from."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from tiered.graph import Model
from tiered.graph.io.export import export_model
from tiered.graph.shape_inference.set_input_shapes import declared_dims
from tiered.numerics.precision.budget import Budget
from tiered.numerics.precision.narrowed_runs import ITSELF, NarrowedRuns, Outputs
from tiered.runtime.deviations import has_narrow_floats
from tiered.runtime.inputs.samples import Source
from tiered.support.errors import RuntimeFailure, VerificationError

MOST_MEASURED: Final = 1 << 28
"""Bytes of weights up to which a model is run without being asked."""


def measured_error(
    model: Model,
    *,
    inputs: Iterable[Source] = (),
    seed: int = 0,
    samples: int = 2,
    max_bytes: int = MOST_MEASURED,
    budget: Budget | None = None,
) -> str:
    """Return how far the outputs of a model are from those as it was loaded, or why not, in words.

    A small model with floats of 16 bits or fewer runs on onnx.reference, if that computes the
    original as onnxruntime does; any other on onnxruntime with Casts that round each value.

    Args:
        model: all edits that this makes are undone. It gets a note if an output of floats is not
            finite where that of the original is.
        inputs: files or arrays; made without any.
        seed: of generated inputs.
        samples: how many are made.
        max_bytes: a model with more bytes of weights is not run, if there is no budget.
        budget: how far the outputs may be from those of the original; None for any distance.

    Raises:
        ModelError: a file of inputs cannot be read.
        UsageError: a file of inputs belongs to no input.
        VerificationError: the budget does not hold.
        RuntimeFailure: there is a budget, and onnxruntime does not run one of the models.
    """
    if model.origin is None:
        return "error not measured: the model was not loaded"
    original = Model.from_proto(model.origin, folder=model.folder)
    try:
        _set_shapes(original, model)
        if budget is None and original.nbytes > max_bytes:
            return f"error not measured: more than {max_bytes:,} bytes of weights"
        trials = NarrowedRuns.of(original, inputs, seed=seed, made=samples)
        return f"error on {trials} by {_judged(model, original, trials, budget)}"
    except RuntimeFailure as error:
        if budget is not None:
            raise
        return f"error not measured: {str(error).partition(chr(10))[0]}"
    finally:
        original.close()


def _set_shapes(original: Model, model: Model) -> None:
    """Set dims of the original that are fixed or renamed in the model: both get the same inputs."""
    now, shapes = declared_dims(model), dict[str, list[int | str]]()
    for name, then in declared_dims(original).items():
        dims = now.get(name, ())
        is_narrower = len(dims) == len(then) and all(
            old == new or not isinstance(old, int) for old, new in zip(then, dims, strict=True)
        )
        if is_narrower and dims != then:
            shapes[name] = [-1 if dim is None else dim for dim in dims]
    if shapes:
        original.set_input_shapes(shapes)


def _judged(model: Model, original: Model, trials: NarrowedRuns, budget: Budget | None) -> str:
    """Return the runtime that judges, and the metrics; note outputs that are no longer finite."""
    judge, found = _run(model, original, trials)
    if budget is not None:
        _check(budget, trials.measure(budget, found), f"{trials} by {judge}")
    lost = trials.not_finite_in(found)
    if lost:
        model.note(
            f"{', '.join(map(repr, lost))}: NaN or infinite where the original output is finite; "
            "keep operators in float (--keep-ops), or convert with --to mixed or --to bf16"
        )
    said = f"{judge}: {trials.describe(found, budget)}"
    if not _is_narrow(model):
        return said
    with suppress(RuntimeFailure):  # it has no kernels of the type
        itself = trials.outputs(model, is_emulated=False)
        if trials.is_worse_deployed(itself, [trials.relative_error(found)]):
            said += f"; by {ITSELF}: {trials.describe(itself, budget)}"
    return said


def _is_narrow(model: Model) -> bool:
    """Return whether a model has floats of 16 bits or fewer."""
    return has_narrow_floats(export_model(model, is_bare=True))


def _check(budget: Budget, measured: float | None, where: str) -> None:
    """Raise if a budget does not hold.

    Raises:
        VerificationError: it does not, or nothing was measured.
    """
    if measured is None:
        raise VerificationError(
            f"the budget {budget} cannot be checked: no output has an element that can be compared"
        )
    if not budget.holds(measured):
        raise VerificationError(
            f"the budget {budget} does not hold for the result: {budget.metric} is "
            f"{measured:.6g} on {where}"
        )


def _run(model: Model, original: Model, trials: NarrowedRuns) -> tuple[str, list[Outputs]]:
    if _is_narrow(model) and trials.is_small(model) and trials.trusts_reference(original):
        with suppress(RuntimeFailure):  # onnx.reference lacks some operators
            return "onnx.reference", trials.outputs(model, by_reference=True)
    return "onnxruntime", trials.outputs(model)
