"""The second instance: onnx.reference on the changed nodes, where onnxruntime says "different"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tiered.errors import RuntimeFailure
from tiered.runtime.compare import Comparison, compare
from tiered.runtime.deviations import explaining
from tiered.runtime.numerics import Numerics, Promise
from tiered.verify.region import Region, changed_region, with_outputs, with_types

if TYPE_CHECKING:
    import onnx

    from tiered.runtime import Worker

Outputs = dict[str, Any]


@dataclass(frozen=True)
class Opinion:
    """What the second instance says.

    Attributes:
        is_excused: the pass is right, and onnxruntime deviates as it is known to.
        text: in a sentence.
    """

    is_excused: bool
    text: str


def second_opinion(
    worker: Worker,
    before: onnx.ModelProto,
    after: onnx.ModelProto,
    feeds: Outputs,
    promise: Promise,
    found: Comparison,
) -> Opinion:
    """Judge a difference that onnxruntime shows, on the changed nodes.

    Args:
        worker: where to run.
        before, after: the models.
        feeds: the inputs for which they differ.
        promise: what was promised.
        found: the comparison that failed.
    """
    region = changed_region(before, after)
    if region is None:
        return Opinion(False, "onnxruntime alone: the changed nodes cannot be cut out")
    try:
        borders = _borders(worker, before, feeds, region)
        cuts = with_types(region.before, borders), with_types(region.after, borders)
        said = [_run(worker, cut, borders, reference=True) for cut in cuts]
    except (RuntimeFailure, TypeError) as error:
        return Opinion(False, f"onnxruntime alone, as the second instance failed: {error}")
    by_reference = compare(said[0], said[1], promise)
    try:
        ran = [_run(worker, cut, borders, reference=False) for cut in cuts]
    except RuntimeFailure as error:
        return Opinion(False, f"onnxruntime does not run the changed nodes alone: {error}")
    unchanged = compare(said[0], ran[0], Numerics.REASSOCIATING)
    if not by_reference.ok:
        return Opinion(False, _wrong(by_reference, unchanged))
    return _excuse((before, after), region, compare(ran[0], ran[1], promise), found, unchanged)


def _excuse(
    models: tuple[onnx.ModelProto, onnx.ModelProto],
    region: Region,
    by_onnxruntime: Comparison,
    found: Comparison,
    unchanged: Comparison,
) -> Opinion:
    """Say whether onnxruntime is known to be wrong where onnx.reference sees no difference."""
    if by_onnxruntime.ok:
        # It shows only together with nodes around, which onnxruntime runs in another precision.
        failing, where = found.outputs, models
    else:
        failing, where = by_onnxruntime.outputs, (region.before, region.after)
    known = explaining(where, [output for output in failing if not output.ok])
    if known:
        reasons = "; ".join(f"{each.name}: {each.what}" for each in known)
        said = "equal on onnx.reference, not on onnxruntime, as is known"
        return Opinion(True, f"{said} ({reasons})")
    if not unchanged.ok:
        return Opinion(False, _disagreement(unchanged))
    return Opinion(False, "equal on onnx.reference, but not on onnxruntime, for no known reason")


def _wrong(by_reference: Comparison, unchanged: Comparison) -> str:
    if not unchanged.ok:
        return _disagreement(unchanged)
    worst = next(output for output in by_reference.outputs if not output.ok)
    return f"onnx.reference agrees: the changed nodes give another {worst}"


def _disagreement(unchanged: Comparison) -> str:
    worst = next(output for output in unchanged.outputs if not output.ok)
    return f"onnxruntime and onnx.reference disagree on the unchanged model already: {worst}"


def _borders(
    worker: Worker, before: onnx.ModelProto, feeds: Outputs, region: Region
) -> Outputs:
    """Return what the changed nodes read, as the model before computes it."""
    inner = [name for name in region.reads if name not in feeds]
    if not inner:
        return {name: feeds[name] for name in region.reads}
    with worker.open(with_outputs(before, inner)) as session:
        found = session.run(feeds, inner)
    return {name: feeds[name] if name in feeds else found[name] for name in region.reads}


def _run(worker: Worker, cut: onnx.ModelProto, borders: Outputs, *, reference: bool) -> Outputs:
    with worker.open(cut, reference=reference) as session:
        results = session.run({name: borders[name] for name in session.inputs})
    return {name.removeprefix("border "): value for name, value in results.items()}
