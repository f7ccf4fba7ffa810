"""Operators that reorder, merge, split, add, join and repeat axes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np

from tiered.analysis.axes.axis_map import (
    AXES,
    AxisMap,
    IteratorKind,
    NoMap,
    all_of,
    axes_in,
    axis_of,
    dims_of,
    first_alone,
    own_labels,
    whole,
)
from tiered.analysis.axes.regrouping import SizedShape, regrouped, sized
from tiered.graph import Node, Value

_AXES_NOT_CONSTANT: Final = "its axes are not constant"


@AXES.rule("Transpose")
def _transpose(node: Node) -> AxisMap:
    perm, labels = node.perm, own_labels(node)
    if perm is None or len(perm) != len(labels):
        raise NoMap("its order of axes is not known")
    return AxisMap((labels,), (tuple(labels[axis] for axis in perm),))


@AXES.rule("Flatten", "Reshape")
def _reshape(node: Node) -> AxisMap:
    """Flatten and Reshape: axes that are the same before and after, and groups of others."""
    before, after = dims_of(node.operands[0]), dims_of(node.output)
    if 0 in before or 0 in after:
        raise NoMap("a dim is 0")
    sizes = node.owner.model.dims
    axes = _regrouping(sized(before, sizes), sized(after, sizes), len(node.operands) - 1)
    if axes is None:
        raise NoMap("the dims that it splits or merges are not known")
    return axes


@lru_cache(maxsize=4096)
def _regrouping(before: SizedShape, after: SizedShape, others: int) -> AxisMap | None:
    """Return the map for the shapes before and after; None if groups are not known."""
    found = regrouped(before, after)
    if found is None:
        return None
    source, target, groups = found
    ties = tuple(group for group in groups if len(group[0]) + len(group[1]) > 2)
    grouped = {label for group in groups for side in group for label in side}
    return AxisMap(
        (tuple(label if label in grouped else None for label in source), *(None,) * others),
        (tuple(label if label in grouped else None for label in target),),
        all_of(IteratorKind.OPAQUE, [label for group in ties for side in group for label in side]),
        groups=ties,
        has_shape=True,
    )


@AXES.rule("Squeeze")
def _squeeze(node: Node) -> AxisMap:
    dims, axes = dims_of(node.operands[0]), node.operand("axes")
    if axes is None:
        if not all(isinstance(dim, int) for dim in dims):
            raise NoMap("the dims that it removes are not known")
        gone = tuple(at for at, dim in enumerate(dims) if dim == 1)
    else:
        gone = axes_in(_constant(axes), len(dims))
    labels = tuple(None if at in gone else at for at in range(len(dims)))
    others = (None,) * (len(node.operands) - 1)
    kept = tuple(at for at in range(len(dims)) if at not in gone)
    return AxisMap((labels, *others), (kept,), has_shape=True)


@AXES.rule("Unsqueeze")
def _unsqueeze(node: Node) -> AxisMap:
    axes = _constant(node.operand("axes"))
    rank = len(own_labels(node)) + axes.size
    new = axes_in(axes, rank)
    kept = tuple(at for at in range(rank) if at not in new)
    others = (None,) * (len(node.operands) - 1)
    made = tuple(None if at in new else at for at in range(rank))
    return AxisMap((kept, *others), (made,), has_shape=True)


@AXES.rule("Expand")
def _expand(node: Node) -> AxisMap:
    (*_, size), own = dims_of(node.operands[1]), own_labels(node)
    if not isinstance(size, int):
        raise NoMap("the rank of its shape is not known")
    labels = whole(max(len(own), size))
    own = labels[len(labels) - len(own) :]
    return AxisMap((own, None), (labels,), broadcasts=(0,), has_shape=True)


@AXES.rule("Tile")
def _tile(node: Node) -> AxisMap:
    """Tile: along an axis that is repeated, or may be, an element is in several places."""
    labels, often = own_labels(node), node.const(1)
    if often is not None and often.size != len(labels):
        raise NoMap("it has not one number of repeats for each axis")
    repeated = [label for label in labels if often is None or often.flat[label] != 1]
    return first_alone(node, all_of(IteratorKind.OPAQUE, repeated))


@AXES.rule("Concat")
def _concat(node: Node) -> AxisMap:
    labels = own_labels(node)
    if any(len(dims_of(value)) != len(labels) for value in node.operands):
        raise NoMap("its operands differ in rank")
    kinds = {axis_of(node, len(labels)): IteratorKind.OPAQUE}
    return AxisMap((labels,) * len(node.operands), (labels,), kinds)


@AXES.rule("Split")
def _split(node: Node) -> AxisMap:
    return first_alone(node, {axis_of(node, len(own_labels(node)), 0): IteratorKind.OPAQUE})


@AXES.rule("Slice")
def _slice(node: Node) -> AxisMap:
    axes, starts = node.operand("axes"), node.operand("starts")
    if axes is None:
        count = None if starts is None else starts.dim(0)
        if not isinstance(count, int):
            raise NoMap(_AXES_NOT_CONSTANT)
        sliced = whole(count)
    else:
        sliced = axes_in(_constant(axes), len(own_labels(node)))
    return first_alone(node, all_of(IteratorKind.OPAQUE, sliced))


@AXES.rule("Pad")
def _pad(node: Node) -> AxisMap:
    """Pad: elements along an axis that is padded, or may be, change their places."""
    labels, pads, given = own_labels(node), node.operand("pads"), node.operand("axes")
    axes = labels if given is None else axes_in(_constant(given), len(labels))
    often = None if pads is None or pads.const is None else pads.const.ravel()
    if often is not None and often.size != 2 * len(axes):
        raise NoMap("it has not two pads for each axis")
    padded = {axis for at, axis in enumerate([*axes, *axes]) if often is None or often[at]}
    return first_alone(node, all_of(IteratorKind.OPAQUE, padded))


def _constant(axes: Value | None) -> np.ndarray[Any, Any]:
    """Return the axes that an operand names.

    Raises:
        NoMap: it is not constant.
    """
    if axes is None or axes.const is None:
        raise NoMap(_AXES_NOT_CONSTANT)
    return axes.const.ravel()
