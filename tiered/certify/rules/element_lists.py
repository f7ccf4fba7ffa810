"""Operators whose elements depend on lists of elements: pools, reductions, rows.

The standard does not say in which order a runtime adds. So two such operators are the same bits if
they read the same tensors. That an element depends on its own list alone is an axiom of the runtime
(`call.scope.trusts_runtime`), but for Max, Min and integers, where no order matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import onnx

from tiered.certify.domains.terms import Array, Seed, flipped, leaf, listed, mix, seed_of
from tiered.certify.evaluation.call import EvaluatedCall, NoRule, Results, axis_of
from tiered.certify.evaluation.forms import Dequantized
from tiered.certify.evaluation.values import CheckedTensor, Unproved, class_of, numpy_dtype
from tiered.certify.rules.bit_elementwise import broadcast, known
from tiered.certify.rules.kernel_windows import KernelWindows, window_of
from tiered.certify.rules.known_numbers import REDUCED
from tiered.certify.rules.product_terms import needs_runtime
from tiered.certify.rules.quantized_bits import INT8, unsigned
from tiered.graph.core.types import tensor_type

Rule = Callable[[EvaluatedCall], Results]


def pool(call: EvaluatedCall) -> list[CheckedTensor]:
    """MaxPool and AveragePool: a list of elements for each place, with markers for pads."""
    x = call.operand(0)
    if len(call.node.output) > 1:
        raise Unproved("MaxPool with indices")
    needs_runtime(call, "one-list-for-each-element")
    windows = window_of(call, x.shape, call.attributes["kernel_shape"])
    shape = (*x.shape[:2], *windows.counts)
    if call.op == "MaxPool" and x.dtype == INT8:
        # Integers plus 128 are in the same order.
        made = _pooled(call, unsigned(call, x), windows, shape)
        return [call.made(INT8, shape, lambda: flipped(made.terms))]
    return [_pooled(call, x, windows, shape)]


def _pooled(
    call: EvaluatedCall, x: CheckedTensor, windows: KernelWindows, shape: Sequence[int]
) -> CheckedTensor:
    how = call.get("count_include_pad", 0), call.get("ceil_mode", 0), call.get("p", 2)
    # A mean counts pads, but not what ceil_mode reads beyond them.
    edges = tuple(windows.pads) if call.op == "AveragePool" and how[0] and how[1] else ()
    seed = seed_of(call.op, x.dtype, *how, *edges)

    def make() -> Array:
        pad = mix(seed_of("pad"), np.zeros((), x.terms.dtype))
        return listed(seed, windows.lists(x.terms, pad)).reshape(shape)

    made = call.made(x.dtype, shape, make)
    held = x.form
    if call.op == "MaxPool" and isinstance(held, Dequantized) and _is_monotone(held, windows):
        call.axioms.add("quantized-again")
        inner = EvaluatedCall(call.node, [held.integers], call.opset, call.domain, call.scope)
        (integers,) = pool(inner)
        made.form = replace(held, integers=integers)
    return made


def _is_monotone(held: Dequantized, windows: KernelWindows) -> bool:
    """Return whether the largest number is that of the largest integer, in each window."""
    is_one = held.scale.size == 1 and bool(np.isfinite(held.scale).all() and (held.scale > 0).all())
    return is_one and bool((windows.places >= 0).any(axis=1).all())


def _whole(call: EvaluatedCall, shape: Sequence[int], dtype: int, *how: object) -> Results:
    """Return results that are functions of the whole operands: no axiom is needed.

    Args:
        call: the node.
        shape: of the result.
        dtype: of the result.
        how: what it does, in one form for all ways to say it, as axes counted from the front.
    """
    held = (None if x is None else x.key for x in call.inputs)
    key = ("whole", call.op, *how, *held)
    return [call.scope.free(tensor_type(dtype, tuple(shape)), key)]


# --- reductions -----------------------------------------------------------------------------------


def reduce(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    axes = reduced_axes(call, x)
    if axes is None:
        # The others compute something of each single element.
        if call.op not in _PLAIN:
            raise NoRule
        return [x]
    kept = keeps_dims(call)
    shape = reduced_shape(x.shape, axes, keeps=kept)
    is_whole = class_of(x.dtype) != "float"
    if _is_of_one(call.op, x, axes):
        return [call.moved(x, lambda a: a.reshape(shape), shape)]
    if x.known is not None and is_whole and call.op in REDUCED:
        with np.errstate(all="ignore"):
            made = REDUCED[call.op](x.known, axis=tuple(axes), keepdims=kept, **_of(call.op, x))
        return [call.constant(np.asarray(made).astype(x.known.dtype), x.dtype)]
    if x.known is not None:
        return [known(call, [x.known], x.dtype)]
    is_free = is_whole and call.op in REDUCED
    if not is_free and not call.scope.trusts_runtime:
        call.inputs = [x]
        return _whole(call, shape, x.dtype, tuple(axes))
    if is_free:
        call.axioms.add("sum-of-integers")
    else:
        needs_runtime(call, "one-list-for-each-element")
    seed = seed_of(call.op, x.dtype)

    def make() -> Array:
        return listed(seed, lanes(x.terms, axes), is_ordered=not is_free).reshape(shape)

    return [call.made(x.dtype, shape, make)]


def keeps_dims(call: EvaluatedCall) -> bool:
    """Return whether reduced dims stay.

    Raises:
        Unproved: the attribute is neither 0 nor 1: the standard gives it no meaning.
    """
    found = call.get("keepdims", 1)
    if found not in (0, 1):
        raise Unproved(f"keepdims of {found}")
    return bool(found)


def _is_of_one(op: str, x: CheckedTensor, axes: Sequence[int]) -> bool:
    """Return whether a reduction is over single elements, and is each of them.

    A sum of floats begins with 0.0, which takes the sign of a zero away; onnxruntime computes sums
    and products of int64 in floats.
    """
    if any(x.shape[at] != 1 for at in axes):
        return False
    kind = numpy_dtype(x.dtype)
    is_plain = kind.kind in "iu" and kind.itemsize == 4
    if op == "ReduceProd":
        return is_plain or class_of(x.dtype) == "float"
    return op in ("ReduceMax", "ReduceMin") or (op in ("ReduceSum", "ReduceMean") and is_plain)


def _of(op: str, x: CheckedTensor) -> dict[str, Any]:
    assert x.known is not None
    return {"dtype": x.known.dtype} if op in ("ReduceSum", "ReduceProd") else {}


def reduced_axes(call: EvaluatedCall, x: CheckedTensor) -> list[int] | None:
    """Return the axes that a reduction is over; None if it is over none."""
    axes = call.integers("axes", 1)
    if not axes:
        return None if call.get("noop_with_empty_axes", 0) else list(range(x.rank))
    return sorted({axis_of(axis, x.rank) for axis in axes})


def reduced_shape(shape: Sequence[int], axes: Sequence[int], *, keeps: bool) -> list[int]:
    """Return the shape without some axes, or with sizes of 1 there."""
    if keeps:
        return [1 if at in axes else size for at, size in enumerate(shape)]
    return [size for at, size in enumerate(shape) if at not in axes]


def lanes(elements: Array, axes: Sequence[int]) -> Array:
    """Return elements with some axes as one, the last."""
    rest = [at for at in range(elements.ndim) if at not in axes]
    outer = [elements.shape[at] for at in rest]
    inner = math.prod(elements.shape[at] for at in axes)
    return elements.transpose(*rest, *axes).reshape(*outer, inner)


def arg_extremum(call: EvaluatedCall) -> Results:
    x, axis = call.operand(0), axis_of(call.get("axis", 0), call.operand(0).rank)
    shape = reduced_shape(x.shape, [axis], keeps=keeps_dims(call))
    to, is_last = int(onnx.TensorProto.INT64), call.get("select_last_index", 0)
    if not call.scope.trusts_runtime:
        return _whole(call, shape, to, axis, is_last)
    call.axioms.add("one-list-for-each-element")
    seed = seed_of(call.op, class_of(x.dtype), is_last)
    return [call.made(to, shape, lambda: listed(seed, lanes(x.terms, [axis])).reshape(shape))]


# --- rows: an element depends on the elements beside it ------------------------------------------


def softmax(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    axis = axis_of(call.get("axis", -1 if call.opset >= 13 else 1), x.rank)
    axes = [axis] if call.opset >= 13 else list(range(axis, x.rank))
    return _rows(call, x, axes, seed_of(call.op, x.dtype))


def cumsum(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    axis = axis_of(call.operand(1).integers("axis of CumSum")[0], x.rank)
    seed = seed_of(call.op, x.dtype, call.get("exclusive", 0), call.get("reverse", 0))
    return _rows(call, x, [axis], seed, has_places=True)


def _rows(
    call: EvaluatedCall,
    x: CheckedTensor,
    axes: Sequence[int],
    seed: Seed,
    *,
    has_places: bool = False,
) -> Results:
    if not call.scope.trusts_runtime:
        return _whole(call, x.shape, x.dtype, tuple(axes), seed)
    call.axioms.add("one-list-for-each-element")
    shape = [1 if at in axes else size for at, size in enumerate(x.shape)]

    def make() -> Array:
        whole = listed(seed, lanes(x.terms, axes)).reshape(shape)
        if not has_places:
            return mix(seed, whole, x.terms)
        places = _places(x.shape, axes)
        return mix(seed, np.broadcast_to(whole, x.shape), places)

    return [call.made(x.dtype, x.shape, make)]


def _places(shape: Sequence[int], axes: Sequence[int]) -> Array:
    sizes = [size if at in axes else 1 for at, size in enumerate(shape)]
    return leaf(seed_of("place"), sizes)


def layer_normalization(call: EvaluatedCall) -> Results:
    x, scale = call.operand(0), call.operand(1)
    if len([name for name in call.node.output if name]) > 1:
        raise NoRule
    axis = axis_of(call.get("axis", -1), x.rank)
    axes = range(axis, x.rank)
    shape = [1 if at in axes else size for at, size in enumerate(x.shape)]
    others = [each for each in (scale, call.operand(2) if call.has(2) else None) if each]
    if broadcast([x, *others]) != x.shape:
        raise Unproved(f"{call.op} with a scale that does not fit")
    how = axis, call.get("epsilon", 1e-5), call.get("stash_type", 1)
    if not call.scope.trusts_runtime:
        return _whole(call, x.shape, x.dtype, *how)
    call.axioms.add("one-list-for-each-element")
    # The axis is the number of axes from the end: a leading axis more changes nothing.
    seed = seed_of(call.op, x.dtype, len(axes), *how[1:], call.has(2))

    def make() -> Array:
        rows = listed(seed, lanes(x.terms, axes)).reshape(shape)
        return mix(seed, rows, x.terms, *(each.terms for each in others))

    return [call.made(x.dtype, x.shape, make)]


def batch_normalization(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    names = call.node.output
    if call.get("training_mode", 0) or (call.opset < 14 and len([n for n in names if n]) > 1):
        raise Unproved("BatchNormalization in training")
    shape = (x.shape[1], *[1] * (x.rank - 2)) if x.rank > 1 else (1,)
    others = [call.operand(at) for at in range(1, 5)]
    seed = seed_of(call.op, x.dtype, call.get("epsilon", 1e-5))
    return [
        call.made(
            x.dtype,
            x.shape,
            lambda: mix(seed, x.terms, *(each.terms.reshape(shape) for each in others)),
        ),
        *[None] * (len(names) - 1),
    ]


_PLAIN: Final = frozenset(("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"))
"""Reductions that over no axes change nothing."""
_REDUCTIONS: Final = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"),
    *("ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
)
LISTS: Final[dict[str, Rule]] = {
    **dict.fromkeys(_REDUCTIONS, reduce),
    "ArgMax": arg_extremum,
    "ArgMin": arg_extremum,
    "AveragePool": pool,
    "BatchNormalization": batch_normalization,
    "CumSum": cumsum,
    "LayerNormalization": layer_normalization,
    "LogSoftmax": softmax,
    "LpPool": pool,
    "MaxPool": pool,
    "RMSNormalization": layer_normalization,
    "Softmax": softmax,
}
