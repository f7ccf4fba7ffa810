"""The reference check: onnx.reference runs the changed nodes if onnxruntime's outputs differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import onnx

from tiered.errors import ModelError, RuntimeFailure
from tiered.graph.core.tensor import Tensor
from tiered.runtime.compare.outputs import Comparison, compare
from tiered.runtime.deviations import explaining
from tiered.runtime.external_data import take_in
from tiered.support.numerics import Numerics, Promise
from tiered.verify.baseline import Runnable
from tiered.verify.changed_region import PREFIX, changed_region, with_outputs, with_types
from tiered.verify.sliced_session import open_model

if TYPE_CHECKING:
    from tiered.runtime import Worker

_MOST_READ: Final = 1 << 28
"""Bytes of weights on disk up to which onnx.reference is asked: it reads all of them."""
Outputs = dict[str, Any]


@dataclass(frozen=True)
class Opinion:
    """The result of the reference check.

    Attributes:
        is_excused: the pass is right, and the difference is a known deviation of onnxruntime.
        text: the reason, in a sentence.
    """

    is_excused: bool
    text: str


def reference_opinion(
    worker: Worker,
    before: Runnable,
    after: Runnable,
    feeds: Outputs,
    promise: Promise,
    found: Comparison,
) -> Opinion:
    """Explain a difference on onnxruntime by the changed nodes.

    Args:
        worker: where to run.
        before, after: the models.
        feeds: the inputs for which they differ.
        promise: the promise of the passes.
        found: the comparison that failed.
    """
    region = changed_region(before.proto, after.proto)
    if region is None:
        return Opinion(False, "onnxruntime alone: the changed nodes cannot be cut out")
    try:
        borders = borders_of(worker, before, feeds, region.reads)
        cuts = [with_types(model, borders) for model in region.cuts({})]
    except (RuntimeFailure, TypeError) as error:
        return Opinion(False, f"onnxruntime alone, as onnx.reference failed: {error}")
    runnable = Runnable(cuts[0], before.folder), Runnable(cuts[1], after.folder)
    return region_opinion(worker, runnable, borders, promise, found, (before.proto, after.proto))


def region_opinion(
    worker: Worker,
    cuts: tuple[Runnable, Runnable],
    borders: Outputs,
    promise: Promise,
    found: Comparison,
    models: tuple[onnx.ModelProto, onnx.ModelProto] | None = None,
) -> Opinion:
    """Explain a difference of a region; `models` are the whole models, if these differ."""
    if any(_bytes_on_disk(cut) > _MOST_READ for cut in cuts):
        return Opinion(False, "onnxruntime alone: the weights are too large for onnx.reference")
    try:
        results = [_run_reference(worker, cut, borders) for cut in cuts]
    except (RuntimeFailure, ModelError) as error:
        return Opinion(False, f"onnxruntime alone, as onnx.reference failed: {error}")
    by_reference = compare(results[0], results[1], promise)
    try:
        ran = [run_cut(worker, cut, borders) for cut in cuts]
    except RuntimeFailure as error:
        return Opinion(False, f"onnxruntime does not run the changed nodes alone: {error}")
    unchanged = compare(results[0], ran[0], Numerics.REASSOCIATING)
    if not by_reference.ok:
        return Opinion(False, _wrong(by_reference, unchanged))
    by_onnxruntime = compare(ran[0], ran[1], promise)
    small = cuts[0].proto, cuts[1].proto
    return _excuse(models or small, small, by_onnxruntime, found, unchanged)


def _excuse(
    models: tuple[onnx.ModelProto, onnx.ModelProto],
    cuts: tuple[onnx.ModelProto, onnx.ModelProto],
    by_onnxruntime: Comparison,
    found: Comparison,
    unchanged: Comparison,
) -> Opinion:
    """Return whether a known deviation explains a difference that onnx.reference does not show."""
    if by_onnxruntime.ok:
        # It shows only together with nodes around, which onnxruntime runs in another precision.
        failing, where = found.outputs, models
    else:
        failing, where = by_onnxruntime.outputs, cuts
    known = explaining(where, [output for output in failing if not output.ok])
    if known:
        reasons = "; ".join(f"{each.name}: {each.what}" for each in known)
        reason = "equal on onnx.reference, not on onnxruntime, as is known"
        return Opinion(True, f"{reason} ({reasons})")
    if not unchanged.ok:
        return Opinion(False, _disagreement(unchanged))
    return Opinion(False, "equal on onnx.reference, but not on onnxruntime, for no known reason")


def _wrong(by_reference: Comparison, unchanged: Comparison) -> str:
    if not unchanged.ok:
        return _disagreement(unchanged)
    worst = next(output for output in by_reference.outputs if not output.ok)
    return f"onnx.reference agrees: the changed nodes compute another {worst}"


def _disagreement(unchanged: Comparison) -> str:
    worst = next(output for output in unchanged.outputs if not output.ok)
    return f"onnxruntime and onnx.reference disagree on the unchanged model already: {worst}"


def borders_of(
    worker: Worker, before: Runnable, feeds: Outputs, reads: Sequence[str]
) -> Outputs:
    """Return the operands of the changed nodes, computed by the model before."""
    inner = [name for name in reads if name not in feeds]
    if not inner:
        return {name: feeds[name] for name in reads}
    with open_model(worker, with_outputs(before.proto, inner), folder=before.folder) as session:
        found = session.run(feeds, inner)
    return {name: feeds[name] if name in feeds else found[name] for name in reads}


def run_cut(worker: Worker, cut: Runnable, borders: Outputs) -> Outputs:
    """Return the results of a cut by the names that they have in the model.

    Raises:
        RuntimeFailure: it does not run by itself.
    """
    with open_model(worker, cut.proto, folder=cut.folder) as session:
        return unprefixed(session.run({name: borders[name] for name in session.inputs}))


def _run_reference(worker: Worker, cut: Runnable, borders: Outputs) -> Outputs:
    whole = onnx.ModelProto()
    whole.CopyFrom(cut.proto)
    with open_model(worker, take_in(whole, cut.folder), reference=True) as session:
        return unprefixed(session.run({name: borders[name] for name in session.inputs}))


def unprefixed(results: Outputs) -> Outputs:
    """Return results by the names that they have in the model."""
    return {name.removeprefix(PREFIX): value for name, value in results.items()}


def _bytes_on_disk(cut: Runnable) -> int:
    tensors = cut.proto.graph.initializer
    return sum(Tensor(t).nbytes for t in tensors if t.data_location == t.EXTERNAL)
