"""Compare two tensors: bit for bit, or within a stated tolerance, and describe the difference.

Tolerances. A float element agrees when

    |expected - actual| <= atol * M + rtol * |expected|

where M is the largest finite |expected| of that output, 1 where all are 0, and at least 1 where the
caller gave the atol: that of a class has no unit. A denormal number has the tolerance of the least
normal one, as the steps between both are the same. NaNs and infinities must be at the same places,
infinities with the same sign, in every class. Integers, booleans and strings must be equal
in every class, but that an integer of 8 bits or fewer may be a step off in `LOSSY`, or as many as
are promised, where it is the result of a quantisation. Defaults (rtol, atol), by dtype:

    class           float64        float32       float16       bfloat16      8 bits and narrower
    REASSOCIATING   1e-9, 1e-10    1e-4, 1e-5    1e-2, 1e-3    5e-2, 5e-3    2 eps, eps / 8
    APPROXIMATE     1e-2, 1e-3     1e-2, 1e-3    5e-2, 5e-3    1e-1, 1e-2    2 eps, eps / 4
    LOSSY           1e-1, 2e-2     1e-1, 2e-2    1e-1, 2e-2    2e-1, 4e-2    4 eps, eps / 2

float64 that was cast from float32, and float32 that was cast from float16, as their numbers show,
have the tolerances of that. So has a float that was computed from narrower ones, if the caller
knows it: onnxruntime drops Casts, so that numbers do not always show it.
eps is the distance from 1 to the next number of the dtype. complex64 and complex128 compare as
pairs of float32 and float64. With `min_cosine`, float outputs of `APPROXIMATE` and `LOSSY` are
judged by the cosine of the whole output instead, and with a metric, by that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from tiered.graph.core.dtypes import float_info, integer_info, is_float
from tiered.support.numerics import Metric, Numerics

Array = np.ndarray[Any, Any]

_TOLERANCES: dict[Numerics, dict[str, tuple[float, float]]] = {
    Numerics.REASSOCIATING: {
        "float64": (1e-9, 1e-10),
        "float32": (1e-4, 1e-5),
        "float16": (1e-2, 1e-3),
        "bfloat16": (5e-2, 5e-3),
    },
    Numerics.APPROXIMATE: {
        "float64": (1e-2, 1e-3),
        "float32": (1e-2, 1e-3),
        "float16": (5e-2, 5e-3),
        "bfloat16": (1e-1, 1e-2),
    },
    Numerics.LOSSY: {
        "float64": (1e-1, 2e-2),
        "float32": (1e-1, 2e-2),
        "float16": (1e-1, 2e-2),
        "bfloat16": (2e-1, 4e-2),
    },
}
# In units of eps, for the dtypes that the table above does not name.
_NARROW_TOLERANCES = {
    Numerics.REASSOCIATING: (2.0, 1 / 8),
    Numerics.APPROXIMATE: (2.0, 1 / 4),
    Numerics.LOSSY: (4.0, 1 / 2),
}
_ALL_NAN: Final = "not comparable: all its elements are NaN"
_ULP_DTYPES = ("float16", "bfloat16", "float32", "float64")


@dataclass(frozen=True)
class OutputDifference:
    """How one output of the second run differs from that of the first.

    Attributes:
        name: the output's name.
        ok: whether it is within the limits of the numeric class.
        max_abs: largest |expected - actual| of finite pairs; inf where an infinity moved.
        max_rel: largest |expected - actual| / |expected| of finite pairs with expected != 0.
        max_ulp: largest distance in representable numbers (float16, bfloat16, float32, float64);
            -0.0 and +0.0 are 0 apart.
        cosine: of the finite pairs, as two long vectors; None where it has no meaning.
        nan_mismatch: places where one is NaN and the other is not.
        reason: the difference, in a sentence; empty when ok.
        limit: the limits that held for differing floats; all limits if none held.
        note: why the numbers were not compared; "" where they were.
    """

    name: str
    ok: bool
    max_abs: float = 0.0
    max_rel: float = 0.0
    max_ulp: int | None = None
    cosine: float | None = None
    nan_mismatch: int = 0
    reason: str = ""
    limit: str = ""
    note: str = ""

    def __str__(self) -> str:
        if self.ok:
            return f"{self.name}: {self.note or 'ok'}"
        allowed = f" (allowed: {self.limit})" if self.limit else ""
        return f"{self.name}: {self.reason}{allowed}"


@dataclass(frozen=True)
class Limits:
    """The definition of equal: the class with the caller's limits, or the target's limits."""

    numerics: Numerics
    rtol: float | None
    atol: float | None
    min_cosine: float | None
    metric: Metric | None = None
    steps: int = 0
    target: Limits | None = None
    is_target: bool = False
    computed: np.dtype[Any] | None = None
    """A narrower dtype that the floats were computed in, as far as it is known."""

    def text(self, dtype: np.dtype[Any]) -> str:
        """Return the limits for a float dtype as a string; "" if it must be exact."""
        if self.numerics is Numerics.EXACT:
            return ""
        prefix = "the target's " if self.is_target else ""
        if self.metric is not None:
            return f"{prefix}{self.metric}"
        if self.min_cosine is not None:
            return f"{prefix}cosine from {self.min_cosine:g}"
        rtol, atol = self.tolerance(dtype)
        limits = f"{prefix}rtol {rtol:g}, atol {atol:g}"
        by_class = self.rtol is None or self.atol is None
        return f"{limits} of {self.numerics} {dtype.name}" if by_class else limits

    def tolerance(self, dtype: np.dtype[Any]) -> tuple[float, float]:
        """Return (rtol, atol) for a float dtype."""
        if self.numerics is Numerics.EXACT:
            return 0.0, 0.0
        default = _TOLERANCES[self.numerics].get(dtype.name)
        if default is None:
            eps = float(float_info(dtype).eps)
            rtol, atol = _NARROW_TOLERANCES[self.numerics]
            default = rtol * eps, atol * eps
        return (
            default[0] if self.rtol is None else self.rtol,
            default[1] if self.atol is None else self.atol,
        )


def compare_arrays(name: str, a: Array, b: Array, limits: Limits) -> OutputDifference:
    """Compare two tensors of any dtype; `a` is the expected one."""
    is_text = a.dtype.kind in "OUS"
    if is_text != (b.dtype.kind in "OUS") or (not is_text and a.dtype != b.dtype):
        one, other = ("string" if x.dtype.kind in "OUS" else x.dtype.name for x in (a, b))
        return OutputDifference(name, False, reason=f"dtype {one} became {other}")
    if a.shape != b.shape:
        reason = f"shape {list(a.shape)} became {list(b.shape)}"
        return OutputDifference(name, False, reason=reason)
    if is_text:
        return _compare_strings(name, a, b)
    if a.dtype.kind == "c":
        a, b = (np.stack([x.real, x.imag], axis=-1) for x in (a, b))
        return _compare_floats(name, a, b, limits)
    if is_float(a.dtype):
        return _compare_floats(name, a, b, limits)
    return _compare_integers(name, a, b, limits)


def _compare_strings(name: str, a: Array, b: Array) -> OutputDifference:
    texts = [
        np.char.decode(x, "utf-8").astype(object) if x.dtype.kind == "S" else x.astype(object)
        for x in (a, b)
    ]
    wrong = np.asarray(texts[0] != texts[1], dtype=bool)
    if not wrong.any():
        return OutputDifference(name, True)
    at = _first(wrong)
    reason = f"{_count(wrong)}, first {texts[0][at]!r} became {texts[1][at]!r} at {_place(at)}"
    return OutputDifference(name, False, reason=reason)


def _compare_integers(name: str, a: Array, b: Array, limits: Limits) -> OutputDifference:
    wrong = np.asarray(a != b, dtype=bool)
    if not wrong.any():
        return OutputDifference(name, True)
    gap = _integer_gap(a, b)
    max_abs = float(gap.max())
    magnitude = np.abs(a.astype(np.float64))
    nonzero = magnitude > 0
    max_rel = float((gap[nonzero] / magnitude[nonzero]).max(initial=0.0))
    found = OutputDifference(name, True, max_abs, max_rel)
    steps = max(limits.steps, int(limits.numerics is Numerics.LOSSY))
    if a.dtype != bool and _bits(a.dtype) <= 8:
        wrong = gap > steps
        if not wrong.any():
            return found
    return replace(found, ok=False, reason=_element_reason(wrong, gap))


def _integer_gap(a: Array, b: Array) -> Array:
    """Return |a - b|, exactly, for integers and booleans of any width."""
    if a.dtype.kind not in "iu":
        a, b = a.astype(np.int16), b.astype(np.int16)
    low, high = np.minimum(a, b), np.maximum(a, b)
    # Two's complement: the difference modulo 2^64 is the true one, as it is below 2^64.
    with np.errstate(over="ignore"):  # numpy warns for scalars, and not for arrays
        return np.asarray(high.astype(np.uint64) - low.astype(np.uint64))


def _bits(dtype: np.dtype[Any]) -> int:
    return int(integer_info(dtype).bits)


@dataclass(frozen=True)
class _FloatPairs:
    """Two float tensors of one shape, as float64, and how their elements differ.

    Attributes:
        a, b: the numbers; `a` is the expected one.
        unequal: where their bits differ.
        nan_a, nan_b: where each is NaN.
        finite: where both are finite.
        infinity_moved: where two numbers differ and one is infinite.
        gap: |a - b| of finite pairs; inf where an infinity moved, 0 where one is NaN.
    """

    a: Array
    b: Array
    unequal: Array
    nan_a: Array
    nan_b: Array
    finite: Array
    infinity_moved: Array
    gap: Array

    @property
    def nan_differs(self) -> Array:
        """Where one is NaN and the other is not."""
        return np.asarray(self.nan_a != self.nan_b)


def _compare_floats(name: str, a: Array, b: Array, limits: Limits) -> OutputDifference:
    if _is_all_nan(a) and _is_all_nan(b):
        return OutputDifference(name, True, note=_ALL_NAN)
    bits_a, bits_b = _bit_pattern(a), _bit_pattern(b)
    unequal = np.asarray(bits_a != bits_b, dtype=bool)
    has_ulp = a.dtype.name in _ULP_DTYPES
    if not unequal.any():
        return OutputDifference(name, True, max_ulp=0 if has_ulp else None, cosine=1.0)
    pairs = _pairs(a, b, unequal)
    numbers = ~(pairs.nan_a | pairs.nan_b)
    found = OutputDifference(
        name,
        True,
        max_abs=float(pairs.gap.max()),
        max_rel=_max_rel(pairs),
        max_ulp=_max_ulp(bits_a, bits_b, numbers & unequal) if has_ulp else None,
        cosine=_cosine(pairs),
        nan_mismatch=int(pairs.nan_differs.sum()),
    )
    return _within_limits(found, a, b, pairs, limits)


def _is_all_nan(x: Array) -> bool:
    """Return whether a tensor has elements, and none of them is a number."""
    with np.errstate(invalid="ignore"):  # what a signalling NaN would report
        first = x.ravel()[:1].astype(np.float64)
        return bool(np.isnan(first).any()) and bool(np.isnan(x.astype(np.float64)).all())


def _within_limits(
    found: OutputDifference, a: Array, b: Array, pairs: _FloatPairs, limits: Limits
) -> OutputDifference:
    """Return a difference with its verdict: one of the limits is enough."""
    dtype = limits.computed or _computed_in(pairs.a, pairs.b, a.dtype)
    first, said = "", []
    for each in (limits, limits.target):
        if each is None:
            continue
        text = each.text(dtype)
        fault = _fault((a, b), pairs, found.cosine, dtype, each)
        if not fault:
            return replace(found, limit=text)
        first = first or fault
        said += [text] if each.metric is None and text else []
    return replace(found, ok=False, reason=first, limit=", or ".join(said))


def _pairs(a: Array, b: Array, unequal: Array) -> _FloatPairs:
    with np.errstate(invalid="ignore"):  # what a signalling NaN would report
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    nan_a, nan_b = np.isnan(wide_a), np.isnan(wide_b)
    finite = np.isfinite(wide_a) & np.isfinite(wide_b)
    infinity_moved = ~(nan_a | nan_b) & ~finite & (wide_a != wide_b)
    with np.errstate(over="ignore", invalid="ignore"):
        gap = np.where(finite, np.abs(wide_a - wide_b), np.where(infinity_moved, np.inf, 0.0))
    return _FloatPairs(wide_a, wide_b, unequal, nan_a, nan_b, finite, infinity_moved, gap)


def _fault(
    given: tuple[Array, Array],
    pairs: _FloatPairs,
    cosine: float | None,
    dtype: np.dtype[Any],
    limits: Limits,
) -> str:
    """Return the difference in a sentence; "" if all is within the limits of a dtype."""
    wrong, metric = pairs.nan_differs | pairs.infinity_moved, limits.metric
    if limits.numerics is Numerics.EXACT:
        wrong = pairs.unequal & ~(pairs.nan_a & pairs.nan_b)
    elif metric is not None:
        measured = float(metric.function(*given))
        if not wrong.any() and not metric.low <= measured <= metric.high:
            return f"{metric.name} is {measured:g}, not in [{metric.low:g}, {metric.high:g}]"
    elif limits.min_cosine is not None and cosine is not None:
        if not wrong.any() and cosine < limits.min_cosine:
            return f"cosine {cosine:.6f} is below {limits.min_cosine:g}"
    else:
        wrong |= pairs.gap > _allowed(pairs, dtype, limits)
    return _float_reason(wrong, pairs) if wrong.any() else ""


def _allowed(pairs: _FloatPairs, dtype: np.dtype[Any], limits: Limits) -> Array:
    """Return how far apart each pair may be, if they were computed in a dtype."""
    rtol, atol = limits.tolerance(dtype)
    largest = float(np.abs(pairs.a[np.isfinite(pairs.a)]).max(initial=0.0)) or 1.0
    if limits.atol is not None:
        largest = max(1.0, largest)
    magnitude = np.abs(np.where(pairs.finite, pairs.a, 0.0))
    # Smaller numbers are as far apart as those from here on.
    magnitude = np.maximum(magnitude, float(float_info(dtype).tiny))
    return np.asarray(atol * largest + rtol * magnitude)


def _computed_in(wide_a: Array, wide_b: Array, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype that floats were cast from: no other ones are all numbers of it.

    Whole numbers are so in every dtype, and multiples of one step in float16: they tell nothing.
    """
    both = np.stack([wide_a, wide_b])
    both = both[np.isfinite(both)]
    if dtype == np.float64 and _are_of(both, np.float32) and (np.rint(both) != both).any():
        dtype = np.dtype(np.float32)
    if dtype == np.float32 and both.size and _are_of(both, np.float16):
        step = float(np.spacing(np.abs(both).max().astype(np.float16)))
        if (np.fmod(both, step) != 0).any():
            dtype = np.dtype(np.float16)
    return dtype


def _are_of(numbers: Array, dtype: Any) -> bool:
    """Return whether a float dtype has all of some numbers."""
    with np.errstate(over="ignore"):
        return bool((numbers.astype(dtype).astype(np.float64) == numbers).all())


def _bit_pattern(x: Array) -> Array:
    """Return the elements' bits as unsigned integers."""
    bits = np.asarray(x, order="C").view(f"u{x.dtype.itemsize}")
    width = int(float_info(x.dtype).bits)
    return bits if width >= 8 else np.asarray(bits & np.uint8((1 << width) - 1))


def _max_rel(pairs: _FloatPairs) -> float:
    nonzero = pairs.finite & (pairs.a != 0)
    with np.errstate(over="ignore"):
        return float((pairs.gap[nonzero] / np.abs(pairs.a[nonzero])).max(initial=0.0))


def _max_ulp(bits_a: Array, bits_b: Array, where: Array) -> int:
    """Return the largest number of steps between two floats, given as their bits."""
    width = bits_a.dtype.itemsize * 8
    a, b = bits_a[where].astype(np.uint64), bits_b[where].astype(np.uint64)
    magnitude = np.uint64((1 << (width - 1)) - 1)
    size_a, size_b = a & magnitude, b & magnitude
    same_sign = (a > magnitude) == (b > magnitude)
    apart = np.maximum(size_a, size_b) - np.minimum(size_a, size_b)
    return int(np.where(same_sign, apart, size_a + size_b).max(initial=0))


def _cosine(pairs: _FloatPairs) -> float | None:
    a, b = pairs.a[pairs.finite], pairs.b[pairs.finite]
    if not a.size:
        return None
    # Scaled first, so that squares neither overflow nor vanish.
    scale_a, scale_b = float(np.abs(a).max()), float(np.abs(b).max())
    if scale_a == 0 or scale_b == 0:
        return 1.0 if scale_a == scale_b else 0.0
    a, b = a / scale_a, b / scale_b
    # Not np.dot: its threads take longer to start than sums of this size.
    dots = [float((x * y).sum()) for x, y in ((a, b), (a, a), (b, b))]
    return dots[0] / math.sqrt(dots[1] * dots[2])


def _float_reason(wrong: Array, pairs: _FloatPairs) -> str:
    nan_differs = pairs.nan_differs
    if nan_differs.any():
        at = _first(nan_differs)
        became = "NaN became a number" if pairs.nan_a[at] else "a number became NaN"
        others = int((wrong & ~nan_differs).sum())
        also = f"; {others} others differ" if others else ""
        return f"{became} at {_place(at)} ({_count(nan_differs)} in being NaN{also})"
    if not (pairs.gap[wrong] > 0).any():
        return f"{_count(wrong)} in the sign of zero, first at {_place(_first(wrong))}"
    return _element_reason(wrong, pairs.gap)


def _element_reason(wrong: Array, gap: Array) -> str:
    masked = np.where(wrong, gap, gap.dtype.type(0))
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(masked)), gap.shape))
    largest = f"{gap[at]}" if gap.dtype.kind == "u" else f"{gap[at]:.1e}"
    return f"{_count(wrong)}, max abs {largest} at {_place(at)}"


def _count(wrong: Array) -> str:
    return f"{int(wrong.sum())} of {wrong.size} elements differ"


def _first(wrong: Array) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))


def _place(at: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, at))}]"
