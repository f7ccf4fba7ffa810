"""Pools over the reals: means of windows, and largest elements beside pads that are not larger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from tiered.certify.domains.element_arrays import of_atoms
from tiered.certify.domains.terms import Array, listed, mix, seed_of
from tiered.certify.evaluation.call import EvaluatedCall, NoRule, Results
from tiered.certify.evaluation.forms import Dequantized
from tiered.certify.evaluation.values import MOST_ELEMENTS, CheckedTensor, class_of
from tiered.certify.reals.lifting import Rule, domain_of
from tiered.certify.reals.real_extrema import BoundedElements
from tiered.certify.rules.kernel_windows import KernelWindows, window_of
from tiered.certify.rules.moves import MOVES, widths_of


@dataclass(frozen=True)
class Padded:
    """A tensor with a number around it.

    Attributes:
        base: the tensor.
        number: what is around it.
        inside: where the elements of the tensor are.
    """

    base: CheckedTensor
    number: float
    inside: Array


def pad(call: EvaluatedCall) -> Results:
    (made,) = MOVES["Pad"](call)
    assert made is not None
    x = call.operand(0)
    filler = call.operand(2).known if call.has(2) else np.asarray(call.get("value", 0.0))
    is_float = class_of(x.dtype) == "float"
    is_plain = call.get("mode", "constant") == "constant" and filler is not None and is_float
    if made is not x and x.known is None and is_plain:
        assert filler is not None
        inside = np.pad(np.ones(x.shape, bool), widths_of(call, x))
        made.form = Padded(x, float(filler.reshape(())), inside)
    return [made]


def _windows(call: EvaluatedCall, x: CheckedTensor) -> tuple[KernelWindows, tuple[int, ...]]:
    """Return where a pool of floats reads, and the shape of its result."""
    if class_of(x.dtype) != "float" or x.known is not None or len(call.node.output) > 1:
        raise NoRule
    windows = window_of(call, x.shape, call.attributes["kernel_shape"])
    shape = (*x.shape[:2], *windows.counts)
    if windows.places.size * x.shape[0] * x.shape[1] > MOST_ELEMENTS:
        raise NoRule
    return windows, shape


def average_pool(call: EvaluatedCall) -> Results:
    x, domain = call.operand(0), domain_of(call)
    windows, shape = _windows(call, x)
    if call.get("ceil_mode", 0):
        raise NoRule
    reads_pads = bool(call.get("count_include_pad", 0))
    counts = ((windows.places >= 0) | reads_pads).sum(axis=1)
    if not counts.all():
        raise NoRule

    def make() -> Array:
        lists = windows.lists(x.terms, domain.constant(np.zeros(())))
        return domain.scaled(domain.total(lists), 1 / counts).reshape(shape)

    return [call.made(x.dtype, shape, make)]


def max_pool(call: EvaluatedCall) -> Results:
    """The largest of each window: a number around it is a pad, if no element is below it."""
    x, domain = call.operand(0), domain_of(call)
    if isinstance(x.form, Dequantized):
        raise NoRule
    windows, shape = _windows(call, x)
    inside = _seen(x)
    if not windows.lists(inside, np.asarray(False)).any(axis=-1).all():
        inside = np.ones(x.shape, bool)
    seed = seed_of("largest", call.get("ceil_mode", 0))
    marker = mix(seed_of("pad"), domain.plain(domain.constant(np.zeros(()))))

    def make() -> Array:
        terms = np.where(inside, domain.plain(x.terms), marker)
        return of_atoms(listed(seed, windows.lists(terms, marker)).reshape(shape))

    return [call.made(x.dtype, shape, make)]


def _seen(x: CheckedTensor) -> Array:
    """Return where elements are that may be the largest."""
    held = x.form
    if isinstance(held, Padded):
        form = held.base.form
        if held.number == -np.inf:
            return held.inside
        if isinstance(form, BoundedElements) and bool((form.low >= held.number).all()):
            return held.inside
    return np.ones(x.shape, bool)


POOLS: Final[dict[str, Rule]] = {"AveragePool": average_pool, "MaxPool": max_pool, "Pad": pad}
