"""The verification of a quantised model: the ratio of its outputs to those of the original."""

from __future__ import annotations

from typing import Final

import onnx

from tiered.graph import Model
from tiered.graph.io.export import export_model
from tiered.numerics.precision.budget import Budget
from tiered.numerics.precision.noise import FloatReference
from tiered.numerics.quantization.quantization_result import QuantizationResult
from tiered.support.amounts import counted
from tiered.support.errors import TargetError, VerificationError
from tiered.verify.verdict import Verdict

PROMISE: Final = Budget("sqnr", 20.0)
"""What quantisation promises without a budget: an error of a tenth, as of lossy passes."""


def verified_ratio(
    original: onnx.ModelProto, model: Model, found: QuantizationResult, budget: Budget | None
) -> Verdict:
    """Compare a quantised model with the file that it was made from, on the samples of its ratio.

    Ranges hold for inputs like the samples alone, so varied inputs would prove nothing.

    Args:
        original: the model as it was read.
        model: the quantised one, as it will be written.
        found: what quantisation did.
        budget: how far the outputs may move; None for `PROMISE`.

    Raises:
        VerificationError: the outputs moved further.
        TargetError: no output has an element to compare.
        RuntimeFailure: onnxruntime runs one of the models no more.
    """
    if not found.unseen:
        return Verdict("nothing to verify", "nothing was quantised")
    promise = PROMISE if budget is None else budget
    reference = FloatReference(original, model.folder, found.unseen)
    measured = reference.metric(export_model(model, is_bare=True), promise)
    if measured is None:
        raise TargetError("not verified: no output has an element to compare")
    if not promise.holds(measured):
        text = "" if budget is not None else "; --budget states another promise"
        raise VerificationError(
            f"quantize changed the outputs of {model.label}: {promise.metric} {measured:.6g}, "
            f"promised: lossy ({promise}){text}"
        )
    sets = counted(len(found.unseen), "set of inputs", "sets of inputs")
    return Verdict("yes", f"lossy, {promise}; {sets}, {promise.metric} {measured:.6g}")
