"""Operators that move elements: terms go where numbers would go. No axiom is needed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx

from tiered.certify.domains.terms import Array, listed, mix, seed_of
from tiered.certify.evaluation.call import EvaluatedCall, NoRule, Results, axis_of
from tiered.certify.evaluation.forms import Dequantized
from tiered.certify.evaluation.values import CheckedTensor, Misfit, Unproved, broadcast_of

INT64 = onnx.TensorProto.INT64
Rule = Callable[[EvaluatedCall], Results]


def identity(call: EvaluatedCall) -> Results:
    return [call.operand(0)]


def reshape(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    wanted = call.integers("shape", 1)
    assert wanted is not None
    if not call.get("allowzero", 0):
        if 0 in wanted[x.rank :]:
            raise Unproved("a 0 of Reshape copies a dim that is not there")
        wanted = [x.shape[at] if size == 0 else size for at, size in enumerate(wanted)]
    return [_reshaped(call, x, wanted)]


def _reshaped(call: EvaluatedCall, x: CheckedTensor, wanted: Sequence[int]) -> CheckedTensor:
    sizes = list(wanted)
    if -1 in sizes:
        rest = math.prod(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = x.size // rest if rest else -1
    if any(size < 0 for size in sizes) or math.prod(sizes) != x.size:
        raise _not_reshaped(x, wanted)
    return call.moved(x, lambda a: a.reshape(sizes), sizes)


def _not_reshaped(x: CheckedTensor, wanted: Sequence[int]) -> Misfit:
    """Return why a tensor has no other shape, and which size would make it fit."""
    there, rest = x.size, math.prod(size for size in wanted if size != -1)
    repairs = []
    if rest > 0:
        repairs = [(size, size * rest // there) for size in x.shape if there and
                   size * rest % there == 0]  # fmt: skip
        repairs += [(size, size * there // rest) for size in wanted if size * there % rest == 0]
    return Misfit(f"{list(x.shape)} is reshaped to {list(wanted)}", repairs)


def flatten(call: EvaluatedCall) -> Results:
    x, axis = call.operand(0), call.get("axis", 1)
    return [_reshaped(call, x, [math.prod(x.shape[:axis]), math.prod(x.shape[axis:])])]


def squeeze(call: EvaluatedCall) -> Results:
    x, axes = call.operand(0), call.integers("axes", 1)
    if axes is None:
        gone = {at for at, size in enumerate(x.shape) if size == 1}
    else:
        gone = {axis_of(axis, x.rank) for axis in axes}
        if any(x.shape[axis] != 1 for axis in gone):
            raise Unproved(f"Squeeze of axes {axes} of {list(x.shape)}")
    return [_reshaped(call, x, [size for at, size in enumerate(x.shape) if at not in gone])]


def unsqueeze(call: EvaluatedCall) -> Results:
    x, axes = call.operand(0), call.integers("axes", 1) or []
    rank = x.rank + len(axes)
    new = {axis_of(axis, rank) for axis in axes}
    if len(new) < len(axes):
        raise Unproved(f"Unsqueeze of axes {axes}")
    rest = iter(x.shape)
    return [_reshaped(call, x, [1 if at in new else next(rest) for at in range(rank)])]


def transpose(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    perm = call.get("perm", range(x.rank)[::-1])
    if sorted(perm) != list(range(x.rank)):
        raise Unproved(f"Transpose by {list(perm)} of rank {x.rank}")
    return [call.moved(x, lambda a: a.transpose(perm), [x.shape[axis] for axis in perm])]


def concat(call: EvaluatedCall) -> list[CheckedTensor]:
    parts = [part for part in call.inputs if part is not None]
    axis = axis_of(call.get("axis", 1), parts[0].rank)  # the default before opset 4
    shapes = {(*part.shape[:axis], *part.shape[axis + 1 :]) for part in parts}
    if len(shapes) != 1:
        dims = zip(*shapes, strict=False)
        repairs = [pair for each in dims for pair in itertools.permutations(dict.fromkeys(each), 2)]
        raise Misfit("Concat of tensors that do not fit", repairs)
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    held = [part.known for part in parts]
    if all(part is not None for part in held):
        numbers = np.concatenate([part for part in held if part is not None], axis)
        return [call.constant(numbers, parts[0].dtype)]
    exact = {part.exact for part in parts}
    made = call.made(
        parts[0].dtype,
        shape,
        lambda: np.concatenate([part.terms for part in parts], axis),
        exact=exact.pop() if len(exact) == 1 else None,
    )
    made.form = _joined_integers(call, parts)
    return [made]


def _joined_integers(call: EvaluatedCall, parts: Sequence[CheckedTensor]) -> Dequantized | None:
    """Return the integers of a Concat whose parts have one scale and one zero point."""
    forms = [part.form for part in parts if isinstance(part.form, Dequantized)]
    if len(forms) < len(parts) or any(not forms[0].is_scaled_as(form) for form in forms):
        return None
    whole = EvaluatedCall(
        call.node, [form.integers for form in forms], call.opset, call.domain, call.scope
    )
    (integers,) = concat(whole)
    return replace(forms[0], integers=integers)


def split(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    axis = axis_of(call.get("axis", 0), x.rank)
    count = len(call.node.output)
    sizes = call.integers("split", 1)
    if sizes is None:
        part = -(-x.shape[axis] // count)
        sizes = [max(0, min(part, x.shape[axis] - part * at)) for at in range(count)]
    if len(sizes) != count or sum(sizes) != x.shape[axis]:
        raise Unproved("Split into sizes that do not fit")
    ends = np.cumsum(sizes)
    parts = [slice(int(end) - size, int(end)) for end, size in zip(ends, sizes, strict=True)]
    return [cut(call, x, axis, part) for part in parts]


def cut(call: EvaluatedCall, x: CheckedTensor, axis: int, part: slice) -> CheckedTensor:
    index = (*[slice(None)] * axis, part)
    shape = list(x.shape)
    shape[axis] = len(range(*part.indices(x.shape[axis])))
    return call.moved(x, lambda a: a[index], shape)


def slice_(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    starts, ends = call.integers("starts", 1), call.integers("ends", 2)
    assert starts is not None
    assert ends is not None
    axes = call.integers("axes", 3)
    axes = list(range(len(starts))) if axes is None else [axis_of(axis, x.rank) for axis in axes]
    steps = call.integers("steps", 4) or [1] * len(starts)
    index = [slice(None)] * x.rank
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        index[axis] = range_of(start, end, step, x.shape[axis])
    shape = [len(range(*part.indices(n))) for part, n in zip(index, x.shape, strict=True)]
    return [call.moved(x, lambda a: a[tuple(index)], shape)]


def range_of(start: int, end: int, step: int, size: int) -> slice:
    """Return a slice of numpy for one of ONNX: bounds are clamped, and never count twice."""
    start = start + size if start < 0 else start
    end = end + size if end < 0 else end
    if step > 0:
        return slice(min(max(start, 0), size), min(max(end, 0), size), step)
    start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return slice(start, None if end < 0 else end, step)


def gather(call: EvaluatedCall) -> Results:
    x, indices = call.operand(0), call.operand(1)
    axis = axis_of(call.get("axis", 0), x.rank)
    shape = [*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]]
    if indices.known is not None:
        at = _in_range(indices.known, x.shape[axis])
        return [call.moved(x, lambda a: np.take(a, at, axis), shape)]

    def make() -> Array:
        lanes = listed(seed_of("lane"), np.moveaxis(x.terms, axis, -1))
        lanes = lanes.reshape((*x.shape[:axis], *[1] * indices.rank, *x.shape[axis + 1 :]))
        chosen = indices.terms.reshape((*indices.shape, *[1] * (x.rank - axis - 1)))
        return np.broadcast_to(mix(seed_of("chosen"), lanes, chosen), shape)

    return [call.made(x.dtype, shape, make, exact=x.exact)]


def _places(indices: CheckedTensor) -> Array:
    if indices.known is None:
        raise NoRule
    return indices.known


def _in_range(indices: Array, size: int) -> Array:
    found = indices.astype(np.int64)
    if found.size and (found.min() < -size or found.max() >= size):
        raise NoRule  # an error is a function of the operands, too
    return np.where(found < 0, found + size, found)


def gather_elements(call: EvaluatedCall) -> Results:
    x, indices = call.operand(0), call.operand(1)
    axis = axis_of(call.get("axis", 0), x.rank)
    at = _in_range(_places(indices), x.shape[axis])
    index: list[Array] = list(np.indices(at.shape))
    index[axis] = at
    return [call.moved(x, lambda a: a[tuple(index)], at.shape)]


def gather_nd(call: EvaluatedCall) -> Results:
    x, indices = call.operand(0), call.operand(1)
    batch = call.get("batch_dims", 0)
    at = _places(indices).astype(np.int64)
    depth = at.shape[-1]
    for place in range(depth):
        at[..., place] = _in_range(at[..., place], x.shape[batch + place])
    outer = np.indices(at.shape[:-1])[:batch]
    index = (*outer, *np.moveaxis(at, -1, 0))
    shape = (*at.shape[:-1], *x.shape[batch + depth :])
    return [call.moved(x, lambda a: a[index], shape)]


def scatter_nd(call: EvaluatedCall) -> Results:
    x, indices, updates = call.operand(0), call.operand(1), call.operand(2)
    if call.get("reduction", "none") != "none":
        raise NoRule
    at = _places(indices).astype(np.int64)
    places = np.moveaxis(at, -1, 0).copy()
    for place in range(len(places)):
        places[place] = _in_range(places[place], x.shape[place])
    if len(np.unique(places.reshape(len(places), places[0].size), axis=1).T) != places[0].size:
        raise NoRule

    def write(into: Array, new: Array) -> Array:
        made = into.copy()
        made[tuple(places)] = new
        return made

    if x.known is not None and updates.known is not None:
        return [call.constant(write(x.known, updates.known), x.dtype)]
    return [call.made(x.dtype, x.shape, lambda: write(x.terms, updates.terms))]


def expand(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    wanted = call.operand(1).integers("the shape of Expand")
    shape = broadcast_of([x.shape, tuple(wanted)], f"{list(x.shape)} and {wanted} of Expand")
    return [call.moved(x, lambda a: np.broadcast_to(a, shape), shape)]


def tile(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    repeats = call.operand(1).integers("the repeats of Tile")
    shape = [size * times for size, times in zip(x.shape, repeats, strict=True)]
    return [call.moved(x, lambda a: np.tile(a, repeats), shape)]


def pad(call: EvaluatedCall) -> Results:
    x, mode = call.operand(0), call.get("mode", "constant")
    widths = widths_of(call, x)
    if not any(map(any, widths)):
        return [x]
    shape = [size + sum(pair) for size, pair in zip(x.shape, widths, strict=True)]
    if mode == "constant":
        return [_padded(call, x, widths, shape)]
    if mode not in ("edge", "reflect", "wrap"):
        raise Unproved(f"Pad of mode {mode}")
    if 0 in x.shape:
        raise Unproved(f"Pad of mode {mode} of an empty tensor")
    places_ = np.pad(np.arange(x.size).reshape(x.shape), widths, mode=mode)
    return [call.moved(x, lambda a: a.ravel()[places_], shape)]


def widths_of(call: EvaluatedCall, x: CheckedTensor) -> list[tuple[int, int]]:
    """Return how much a Pad adds before and after along each axis.

    Raises:
        Unproved: it takes away.
    """
    pads = call.integers("pads", 1)
    assert pads is not None
    axes = call.integers("axes", 3) if call.has(3) else None
    places = range(x.rank) if axes is None else [axis_of(axis, x.rank) for axis in axes]
    widths = [(0, 0)] * x.rank
    for at, axis in enumerate(places):
        widths[axis] = (pads[at], pads[at + len(pads) // 2])
    if any(min(pair) < 0 for pair in widths):
        raise Unproved("Pad with negative pads")
    return widths


def _padded(
    call: EvaluatedCall, x: CheckedTensor, widths: Sequence[tuple[int, int]], shape: Sequence[int]
) -> CheckedTensor:
    filler = call.operand(2) if call.has(2) else None
    if filler is None:
        value = np.asarray(call.get("value", 0)).astype(_numpy(x))
        filler = call.constant(value, x.dtype)
    inner = tuple(slice(low, low + size) for (low, _), size in zip(widths, x.shape, strict=True))

    def place(into: Array, one: Array, dtype: np.dtype[Any]) -> Array:
        made = np.empty(shape, dtype)
        made[...] = one.reshape(())
        made[inner] = into
        return made

    if x.known is not None and filler.known is not None:
        return call.constant(place(x.known, filler.known, x.known.dtype), x.dtype)
    one = filler
    return call.made(x.dtype, shape, lambda: place(x.terms, one.terms, x.terms.dtype))


def _numpy(x: CheckedTensor) -> np.dtype[Any]:
    from tiered.certify.evaluation.values import numpy_dtype

    return numpy_dtype(x.dtype)


def depth_to_space(call: EvaluatedCall) -> Results:
    x, size = call.operand(0), call.attributes["blocksize"]
    n, c, h, w = x.shape
    inner = c // size**2
    if call.get("mode", "DCR") == "DCR":
        split_, perm = [n, size, size, inner, h, w], [0, 3, 4, 1, 5, 2]
    else:
        split_, perm = [n, inner, size, size, h, w], [0, 1, 4, 2, 5, 3]
    shape = [n, inner, h * size, w * size]
    return [call.moved(x, lambda a: a.reshape(split_).transpose(perm).reshape(shape), shape)]


def space_to_depth(call: EvaluatedCall) -> Results:
    x, size = call.operand(0), call.attributes["blocksize"]
    n, c, h, w = x.shape
    split_ = [n, c, h // size, size, w // size, size]
    perm = [0, 3, 5, 1, 2, 4] if call.get("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    shape = [n, c * size**2, h // size, w // size]
    return [call.moved(x, lambda a: a.reshape(split_).transpose(perm).reshape(shape), shape)]


def trilu(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    k = call.operand(1).integers("k of Trilu")[0] if call.has(1) else 0
    kept = (np.triu if call.get("upper", True) else np.tril)(np.ones(x.shape[-2:], bool), k)
    zero = np.zeros((), _numpy(x))
    if x.known is not None:
        return [call.constant(np.where(kept, x.known, zero), x.dtype)]
    return [
        call.made(x.dtype, x.shape, lambda: np.where(kept, x.terms, call.domain.constant(zero)))
    ]


def shape_of(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    start, end = call.get("start", 0), call.get("end", x.rank)
    return [call.constant(np.asarray(x.shape[slice(start, end)], np.int64), INT64)]


def size_of(call: EvaluatedCall) -> Results:
    return [call.constant(np.asarray(call.operand(0).size, np.int64), INT64)]


def dropout(call: EvaluatedCall) -> Results:
    x = call.operand(0)
    ratio = call.operand(1).known if call.has(1) else np.asarray(call.get("ratio", 0.5))
    # A ratio of 0 drops nothing.
    is_inert = ratio is not None and not ratio.any() and len(call.node.output) == 1
    if not is_inert and call.has(2) and call.operand(2).numbers("training_mode of Dropout").any():
        raise Unproved("Dropout in training is random")
    mask = call.constant(np.ones(x.shape, bool), onnx.TensorProto.BOOL)
    return [x, mask][: len(call.node.output)]


MOVES: dict[str, Rule] = {
    "Concat": concat,
    "DepthToSpace": depth_to_space,
    "Dropout": dropout,
    "Expand": expand,
    "Flatten": flatten,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "Identity": identity,
    "Pad": pad,
    "Reshape": reshape,
    "ScatterND": scatter_nd,
    "Shape": shape_of,
    "Size": size_of,
    "Slice": slice_,
    "SpaceToDepth": space_to_depth,
    "Split": split,
    "Squeeze": squeeze,
    "Tile": tile,
    "Transpose": transpose,
    "Trilu": trilu,
    "Unsqueeze": unsqueeze,
}
