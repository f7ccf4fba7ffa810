"""Clip, Relu, Max and Min over the reals: scales and offsets of elements move through bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from tiered.certify.domains.affine_elements import Affine
from tiered.certify.domains.element_arrays import AFFINE, affine, is_number
from tiered.certify.domains.terms import Array, joined, mix, seed_of
from tiered.certify.evaluation.call import EvaluatedCall, NoRule, Results
from tiered.certify.evaluation.values import CheckedTensor, class_of

Rule = Callable[[EvaluatedCall], Results]


@dataclass(frozen=True)
class BoundedElements:
    """Elements between numbers."""

    base: CheckedTensor
    low: Array
    high: Array


def between(domain: Affine, x: Array, low: Array, high: Array) -> Array:
    """Return elements between numbers, low ones at most high ones.

    With x = s * a + o, it is s times a between (low - o) / s and (high - o) / s, plus o.
    """
    x, low, high = np.broadcast_arrays(x, low, high)
    fixed = is_number(x)
    scale = np.where(fixed, 1.0, x["s"])
    with np.errstate(all="ignore"):
        one, other = (low - x["o"]) / scale, (high - x["o"]) / scale
    least, most = np.minimum(one, other), np.maximum(one, other)
    ends = [domain.canonical(end).view(np.uint64) for end in (least, most)]
    term = mix(seed_of("between"), joined(x["a"], x["b"]), joined(*ends))
    made = affine(term["a"], term["b"], scale, x["o"])
    made = np.where(np.isneginf(least) & np.isposinf(most), x.astype(AFFINE), made)
    numbers = affine(np.zeros(x.shape), np.zeros(x.shape), 0.0, np.clip(x["o"], low, high))
    return np.where(fixed, numbers, made)


def bounded(call: EvaluatedCall, x: CheckedTensor, low: Array, high: Array) -> CheckedTensor:
    """Return a tensor between numbers; of a tensor that is one already, both are one."""
    domain = call.domain
    assert isinstance(domain, Affine)
    form = x.form if isinstance(x.form, BoundedElements) else BoundedElements(x, *_none())
    low = np.minimum(low, high)
    first, last = (np.clip(bound, low, high) for bound in (form.low, form.high))
    shape = np.broadcast_shapes(x.shape, first.shape, last.shape)

    def make() -> Array:
        return np.broadcast_to(between(domain, form.base.terms, first, last), shape)

    made = call.made(x.dtype, shape, make)
    made.form = BoundedElements(form.base, first, last)
    return made


def _none() -> tuple[Array, Array]:
    return np.asarray(-np.inf), np.asarray(np.inf)


def _is_open(x: CheckedTensor) -> bool:
    return x.known is None and class_of(x.dtype) == "float"


def relu(call: EvaluatedCall) -> Results:
    if not _is_open(call.operand(0)):
        raise NoRule
    return [bounded(call, call.operand(0), np.asarray(0.0), np.asarray(np.inf))]


def clip(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    if not _is_open(x):
        raise NoRule
    ends = []
    for at, (name, none) in enumerate(zip(("min", "max"), _none(), strict=True), 1):
        if name in call.attributes:
            ends.append(np.asarray(call.attributes[name], np.float64))
        elif call.has(at):
            ends.append(call.operand(at).numbers("a bound of Clip").astype(np.float64))
        else:
            ends.append(none)
    if any(np.isnan(end).any() for end in ends):
        raise NoRule
    return [bounded(call, x, *ends)]


def extremum(call: EvaluatedCall) -> Results:
    """Max or Min of one tensor and numbers."""
    tensors = [x for x in call.inputs if x is not None]
    parts = [x for x in tensors if x.known is None]
    if len(parts) != 1 or len(tensors) == 1 or not _is_open(parts[0]):
        raise NoRule
    join = np.maximum if call.op == "Max" else np.minimum
    bound = np.asarray(-np.inf if call.op == "Max" else np.inf)
    for x in tensors:
        if x.known is not None:
            bound = join(bound, x.known.astype(np.float64))
    if np.isnan(bound).any():
        raise NoRule
    low, high = _none()
    low, high = (bound, high) if call.op == "Max" else (low, bound)
    return [bounded(call, parts[0], *np.broadcast_arrays(low, high))]


BETWEEN: Final[dict[str, Rule]] = {"Clip": clip, "Max": extremum, "Min": extremum, "Relu": relu}
