"""Gradients of operators that move or repeat elements: the same movement backwards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tiered.extensions.gradients.broadcast import reduced_to
from tiered.extensions.gradients.copy_adjoint import added_back
from tiered.extensions.gradients.expression import Expr
from tiered.extensions.gradients.rule_registry import Step, gradient_rule


@gradient_rule("Reshape", "Flatten", "Squeeze", "Unsqueeze")
def reshape(step: Step) -> Sequence[Expr | None]:
    """dx = g in the shape of x"""
    return step.g.reshape_as(step.x), None


@gradient_rule("Transpose")
def transpose(step: Step) -> Sequence[Expr | None]:
    """dx = g with the inverse permutation"""
    perm = step.node.perm
    if perm is None:
        raise step.error("its permutation is unknown")
    return (step.g.transpose(np.argsort(perm).tolist()),)


@gradient_rule("Expand")
def expand(step: Step) -> Sequence[Expr | None]:
    """dx = the sums of g along the repeated axes"""
    return reduced_to(step.g, step.x), None


@gradient_rule("Tile")
def tile(step: Step) -> Sequence[Expr | None]:
    """dx = the sums of g over the repetitions"""
    x, repeats = step.x, step.operand(1)
    shape, times = x.value.static_shape, repeats.value.const
    if shape is None or times is None:
        return added_back(x, step.g, lambda places: x.call("Tile", places, repeats)), None
    parts = [size for pair in zip(times.tolist(), shape, strict=True) for size in pair]
    if 0 in parts:
        return x.zeros(), None
    apart = step.g.reshape(parts)
    return apart.sum(range(0, len(parts), 2), keepdims=False), None


@gradient_rule("Concat")
def concat(step: Step) -> Sequence[Expr | None]:
    """dx = the part of g that x became"""
    axis = int(step.node.attr("axis"))
    start = step.y.integers([0])
    found: list[Expr | None] = []
    known: int | None = 0
    for at in range(len(step.operands)):
        x = step.operand(at)
        size = x.value.dim(axis)
        end: Expr
        if known is not None and isinstance(size, int):
            known += size
            end = step.y.integers([known])
        else:
            known = None
            end = start + x.dim(axis)
        wanted = step.wants(at)
        found.append(step.g.call("Slice", step.g, start, end, [axis]) if wanted else None)
        start = end
    return found


@gradient_rule("Split")
def split(step: Step) -> Sequence[Expr | None]:
    """dx = the Concat of the gradients of the parts"""
    axis = int(step.node.attr("axis"))
    parts = []
    for output, grad in zip(step.outputs, step.grads, strict=True):
        if output is None:
            raise step.error("one of its outputs is absent")
        parts.append(output.zeros() if grad is None else grad)
    return step.x.call("Concat", *parts, axis=axis), None


@gradient_rule("Slice")
def slice_(step: Step) -> Sequence[Expr | None]:
    """dx = g, with zeros where x was cut off"""
    x, g = step.x, step.g
    pads = _cut_off(step)
    if pads is not None:
        return (x.call("Pad", g, x.integers(pads)),)
    rest = [None if each is None else each.value for each in step.operands[1:]]
    return (added_back(x, g, lambda places: x.call("Slice", places, *rest)),)


def _cut_off(step: Step) -> list[int] | None:
    """Return the numbers of elements before and after the slice; None if they are unknown."""
    shape = step.x.value.static_shape
    constants = [None if each is None else each.value.const for each in step.operands[1:]]
    if shape is None or constants[0] is None or constants[1] is None:
        return None
    if any(
        each is not None and constant is None
        for each, constant in zip(step.operands[1:], constants, strict=True)
    ):
        return None
    starts, ends = constants[0].tolist(), constants[1].tolist()
    axes = step.axes(3)
    if len(constants) > 3 and constants[3] is not None and (constants[3] != 1).any():
        return None
    before, after = [0] * len(shape), [0] * len(shape)
    for start, end, axis in zip(starts, ends, axes or range(len(starts)), strict=True):
        low, high, _ = slice(start, end).indices(shape[axis])
        if high <= low:
            return None
        before[axis], after[axis] = low, shape[axis] - high
    return [*before, *after]


@gradient_rule("Pad")
def pad(step: Step) -> Sequence[Expr | None]:
    """dx = g without the padding, and with zeros where x was cropped

    In the other modes than `constant`, elements of x were copied: their gradients are added.
    """
    x, g, pads = step.x, step.g, step.operand(1)
    axes = step.operands[3] if step.has(3) else None
    if str(step.node.attr("mode")) == "constant":
        dx = _unpadded(step, axes)
        dvalue = None
        if step.wants(2):
            total = g.sum(keepdims=False) - dx.sum(keepdims=False)
            dvalue = total.reshape_as(step.operand(2))
        return dx, None, dvalue
    mode = str(step.node.attr("mode"))
    rest = () if axes is None else (None, axes)
    return (added_back(x, g, lambda places: x.call("Pad", places, pads, *rest, mode=mode)),)


def _unpadded(step: Step, axes: Expr | None) -> Expr:
    """Return g without the padding; negative pads, which crop, become zeros."""
    x, g, pads = step.x, step.g, step.operand(1)
    numbers = pads.value.const
    if numbers is None or axes is not None or (numbers < 0).any():
        return x.call("Pad", g, -pads, None, *([] if axes is None else [axes]))
    begins = x.integers(numbers[: x.rank].tolist())
    return g.call("Slice", g, begins, begins + x.shape(), list(range(x.rank)))


@gradient_rule("Trilu")
def trilu(step: Step) -> Sequence[Expr | None]:
    """dx = the same triangle of g"""
    rest = [step.operand(1)] if step.has(1) else []
    return step.g.call("Trilu", step.g, *rest, upper=step.node.attr("upper")), None


@gradient_rule("ReverseSequence")
def reverse_sequence(step: Step) -> Sequence[Expr | None]:
    """dx = g, reversed in the same way"""
    node = step.node
    attributes = {name: node.attr(name) for name in ("batch_axis", "time_axis")}
    return step.g.call("ReverseSequence", step.g, step.operand(1), **attributes), None


@gradient_rule("Compress")
def compress(step: Step) -> Sequence[Expr | None]:
    """dx = g where x was kept, else 0"""
    x, attributes = step.x, step.node.attributes
    condition = step.operand(1)
    moved = added_back(
        x, step.g, lambda places: x.call("Compress", places, condition, **attributes)
    )
    return moved, None


@gradient_rule("SpaceToDepth")
def space_to_depth(step: Step) -> Sequence[Expr | None]:
    """dx = DepthToSpace of g"""
    return (step.g.call("DepthToSpace", step.g, blocksize=step.node.attr("blocksize")),)


@gradient_rule("DepthToSpace")
def depth_to_space(step: Step) -> Sequence[Expr | None]:
    """dx = SpaceToDepth of g, with the channels in the order of the mode"""
    block = int(step.node.attr("blocksize"))
    dx = step.g.call("SpaceToDepth", step.g, blocksize=block)
    if str(step.node.attr("mode") or "DCR") == "DCR":
        return (dx,)
    # SpaceToDepth puts the channels of a place side by side; CRD those of a channel.
    shape, square = step.x.shape(), block * block
    apart = dx.call("Concat", *_channels_apart(step, square), axis=0)
    return (dx.reshape(apart).transpose([0, 2, 1, 3, 4]).reshape(shape),)


def _channels_apart(step: Step, square: int) -> list[Expr]:
    """Return the sizes [N, block^2, C / block^2, H, W]."""
    x = step.x
    channels = x.dim(1)
    return [x.dim(0), x.integers([square]), channels / x.integers([square]), x.dim(2), x.dim(3)]
