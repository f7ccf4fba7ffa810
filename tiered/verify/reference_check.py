"""The reference check: onnx.reference runs the changed nodes if onnxruntime's outputs differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tiered.graph.core.tensor import Tensor
from tiered.graph.io.save import tensors_of
from tiered.runtime.compare.outputs import Comparison, compare
from tiered.runtime.deviations import explaining
from tiered.runtime.external_data import MOST_READ, bytes_on_disk
from tiered.support.errors import ModelError, RuntimeFailure
from tiered.support.numerics import Numerics, Promise
from tiered.verify.model_pair import ModelPair, Outputs
from tiered.verify.sliced_session import feeds_for, open_model

if TYPE_CHECKING:
    import onnx

    from tiered.runtime import Worker
    from tiered.verify.baseline import RunnableModel
    from tiered.verify.refitted import Refitting

_MOST_RULED: Final = 1 << 24
"""Bytes that changed nodes read, up to which onnx.reference rules on halves: numpy is slow."""


@dataclass(frozen=True)
class Opinion:
    """The result of the reference check.

    Attributes:
        is_excused: the pass is right, and the difference is a known deviation of onnxruntime.
        text: the reason, in a sentence.
    """

    is_excused: bool
    text: str


def reference_opinion(models: ModelPair, found: Comparison) -> Opinion:
    """Explain a difference on onnxruntime by the changed nodes; `found` failed."""
    try:
        changed = models.changed
    except (RuntimeFailure, TypeError) as error:
        return Opinion(False, f"onnxruntime alone, as onnx.reference failed: {error}")
    if changed is None:
        return Opinion(False, "onnxruntime alone: the changed nodes cannot be cut out")
    return region_opinion(changed, found, models)


def region_opinion(changed: ModelPair, found: Comparison, models: ModelPair) -> Opinion:
    """Explain a difference of models by their changed nodes.

    Args:
        changed: the models of the changed nodes.
        found: the comparison that failed.
        models: the models that differ; `changed` itself, if only these ran.
    """
    if any(bytes_on_disk(proto) > MOST_READ for proto in changed.protos):
        return Opinion(False, "onnxruntime alone: the weights are too large for onnx.reference")
    try:
        before, after = changed.run_reference()
    except (RuntimeFailure, ModelError) as error:
        return Opinion(False, f"onnxruntime alone, as onnx.reference failed: {error}")
    by_reference = compare(before, after, changed.promise)
    try:
        unchanged = compare(before, changed.ran[0], _close(changed.promise))
    except RuntimeFailure as error:
        return Opinion(False, f"onnxruntime does not run the changed nodes alone: {error}")
    if not by_reference.ok:
        return Opinion(False, _wrong(by_reference, unchanged))
    by_onnxruntime = changed.compared()
    # If these agree, it shows only together with nodes around, which run in another precision.
    failing, where = (found, models) if by_onnxruntime.ok else (by_onnxruntime, changed)
    known = explaining(where.protos, [output for output in failing.outputs if not output.ok])
    if known:
        reasons = "; ".join(f"{each.name}: {each.what}" for each in known)
        reason = "equal on onnx.reference, not on onnxruntime, as is known"
        return Opinion(True, f"{reason} ({reasons})")
    if not unchanged.ok:
        return Opinion(False, _disagreement(unchanged))
    return Opinion(False, "equal on onnx.reference, but not on onnxruntime, for no known reason")


def _close(promise: Promise) -> Promise:
    """Return what two runtimes owe to each other on a model: another order of its operations."""
    return Promise(Numerics.REASSOCIATING, computed=promise.computed)


@dataclass(frozen=True)
class Ruling:
    """What onnx.reference says of a pass on a model with 16-bit floats.

    onnxruntime computes most of them in 32 bits, so it hides overflow and rounding.

    Attributes:
        is_asked: whether onnx.reference was asked, and can be believed.
        failed: how what it ran differs; None if it does not.
        what: what it ran, in words.
    """

    is_asked: bool
    failed: Comparison | None = None
    what: str = ""


_NOT_ASKED: Final = Ruling(False)


def ruling_on_halves(models: ModelPair) -> Ruling:
    """Run the changed nodes on onnx.reference, where they are small enough.

    It is believed where it computes for the nodes before about what onnxruntime does, and where
    onnxruntime finds that the changed nodes agree: values inside a model may differ for good.
    Where they do not run on their own, the whole models run.
    """
    try:
        changed = models.changed
        return _NOT_ASKED if changed is None else _ruled(changed, "the changed nodes")
    except (RuntimeFailure, ModelError, TypeError):
        pass
    # Nodes of equal content may compute in another type, which the values between do not have.
    try:
        return _ruled(models, "both models")
    except (RuntimeFailure, ModelError, TypeError):
        return _NOT_ASKED


def _ruled(models: ModelPair, what: str) -> Ruling:
    """Return what onnx.reference says of two models.

    Raises:
        RuntimeFailure: one of them does not run.
        ModelError: a file of weights is not as it should be.
    """
    if _work(models) > _MOST_RULED or not models.compared().ok:
        return _NOT_ASKED
    before, after = models.run_reference()
    if not compare(before, models.ran[0], _close(models.promise)).ok:
        return _NOT_ASKED
    found = compare(before, after, models.promise)
    return Ruling(True, None if found.ok else found, what)


def ruling_on_refitted(
    refitting: Refitting,
    number: int,
    after: RunnableModel,
    feeds: Outputs,
    known: Outputs,
    promise: Promise,
    worker: Worker,
) -> Ruling:
    """Run two models with different interfaces on onnx.reference, where they are small enough.

    It is believed where it computes for the model before about what onnxruntime does.

    Args:
        refitting: the model before.
        number: of the sample.
        after: the model after.
        feeds: its inputs.
        known: the outputs that onnxruntime computes for the model before.
        promise: of the passes.
        worker: where the model after runs.
    """
    try:
        if _bytes_read(after.proto, feeds) > _MOST_RULED:
            return _NOT_ASKED
        before = refitting.expected_by_reference(number)
        again = {name: before[name] for name in known}
        if not compare(known, again, _close(promise)).ok:
            return _NOT_ASKED
        whole = after.inlined()
        with open_model(worker, whole.proto, folder=whole.folder, reference=True) as session:
            outputs = session.run(feeds_for(whole.proto, feeds))
    except (RuntimeFailure, ModelError, TypeError):
        return _NOT_ASKED
    expected = {name: before[name] for name in known}
    found = compare(expected, {name: outputs[name] for name in known}, promise)
    return Ruling(True, None if found.ok else found, "both models")


def _work(changed: ModelPair) -> int:
    """Return the bytes that the changed nodes read: of the run, and of weights."""
    before, after = changed.protos
    return _bytes_read(before, changed.feeds) + _bytes_read(after, {})


def _bytes_read(proto: onnx.ModelProto, feeds: Outputs) -> int:
    fed = sum(np.asarray(value).nbytes for value in feeds.values())
    return fed + sum(Tensor(each).nbytes for each in tensors_of(proto))


def _wrong(by_reference: Comparison, unchanged: Comparison) -> str:
    if not unchanged.ok:
        return _disagreement(unchanged)
    worst = next(output for output in by_reference.outputs if not output.ok)
    return f"onnx.reference agrees: the changed nodes compute another {worst}"


def _disagreement(unchanged: Comparison) -> str:
    worst = next(output for output in unchanged.outputs if not output.ok)
    return f"onnxruntime and onnx.reference disagree on the unchanged model already: {worst}"
