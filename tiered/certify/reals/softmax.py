"""Softmax over the reals: what is added to all elements of a row changes nothing."""

from __future__ import annotations

import numpy as np

from tiered.certify.evaluation.call import EvaluatedCall, Results, axis_of
from tiered.certify.evaluation.forms import SumsToOne
from tiered.certify.evaluation.values import numpy_dtype
from tiered.certify.reals.lifting import Rule
from tiered.certify.reals.real_arithmetic import Summands, total


def without_shifts(rule: Rule) -> Rule:
    """Return a rule of Softmax that does not see summands that are the same along its axis."""

    def shifted(call: EvaluatedCall) -> Results:
        x = call.operand(0)
        if x.known is not None:
            return rule(call)
        axis = axis_of(call.get("axis", -1 if call.opset >= 13 else 1), x.rank)
        is_last = axis == x.rank - 1
        if isinstance(x.form, Summands) and (call.opset >= 13 or is_last):
            kept = [part for part in x.form.parts if _varies(part.shape, axis - x.rank)]
            if not kept:
                return [call.constant(np.ones(x.shape, numpy_dtype(x.dtype)), x.dtype)]
            shapes = [part.shape for part in kept]
            if len(kept) < len(x.form.parts) and np.broadcast_shapes(*shapes, ()) == x.shape:
                (rest,) = total(call, kept)
                assert rest is not None
                x = rest
        inner = EvaluatedCall(call.node, [x], call.opset, call.domain, call.scope)
        inner.axioms = call.axioms
        (made,) = rule(inner)
        assert made is not None
        if is_last:
            made.form = SumsToOne()
        return [made]

    return shifted


def _varies(shape: tuple[int, ...], axis: int) -> bool:
    """Return whether a tensor may have other elements along an axis, counted from the end."""
    return len(shape) >= -axis and shape[axis] != 1
