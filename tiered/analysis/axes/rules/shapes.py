"""Operators that reorder, merge, split, add, join and repeat axes."""

from __future__ import annotations

from tiered.analysis.axes.axis_map import (
    AXES,
    AxisMap,
    Kind,
    all_of,
    axis_of,
    broadcast,
    dims_of,
    whole,
)
from tiered.analysis.axes.regrouping import regrouped, sized
from tiered.graph import Node, non_negative_axes


@AXES.rule("Transpose")
def _transpose(node: Node) -> AxisMap | None:
    perm, labels = node.perm, whole(len(dims_of(node.operands[0])))
    if perm is None or len(perm) != len(labels):
        return None
    return AxisMap((labels,), (tuple(labels[axis] for axis in perm),))


@AXES.rule("Flatten", "Reshape")
def _reshape(node: Node) -> AxisMap | None:
    """Flatten and Reshape: axes that are the same before and after, and groups of others."""
    before, after = dims_of(node.operands[0]), dims_of(node.output)
    if 0 in before or 0 in after:
        return None
    sizes = node.owner.model.dims
    found = regrouped(sized(before, sizes), sized(after, sizes))
    if found is None:
        return None
    source, target, groups = found
    ties = tuple(group for group in groups if len(group[0]) + len(group[1]) > 2)
    grouped = {label for group in groups for side in group for label in side}
    others = (None,) * (len(node.operands) - 1)
    return AxisMap(
        (tuple(label if label in grouped else None for label in source), *others),
        (tuple(label if label in grouped else None for label in target),),
        all_of(Kind.OPAQUE, [label for group in ties for side in group for label in side]),
        groups=ties,
        has_shape=True,
    )


@AXES.rule("Squeeze")
def _squeeze(node: Node) -> AxisMap | None:
    dims, axes = dims_of(node.operands[0]), node.operand("axes")
    named = None if axes is None else axes.const
    if named is None and (axes is not None or not all(isinstance(dim, int) for dim in dims)):
        return None
    ones = [at for at, dim in enumerate(dims) if dim == 1]
    gone = non_negative_axes(ones if named is None else named, len(dims))
    if gone is None:
        return None
    labels = tuple(None if at in gone else at for at in range(len(dims)))
    others = (None,) * (len(node.operands) - 1)
    kept = tuple(at for at in range(len(dims)) if at not in gone)
    return AxisMap((labels, *others), (kept,), has_shape=True)


@AXES.rule("Unsqueeze")
def _unsqueeze(node: Node) -> AxisMap | None:
    axes, rank = node.operand("axes"), len(dims_of(node.output))
    new = None if axes is None or axes.const is None else non_negative_axes(axes.const, rank)
    if new is None:
        return None
    kept = tuple(at for at in range(rank) if at not in new)
    others = (None,) * (len(node.operands) - 1)
    made = tuple(None if at in new else at for at in range(rank))
    return AxisMap((kept, *others), (made,), has_shape=True)


@AXES.rule("Expand")
def _expand(node: Node) -> AxisMap:
    labels = whole(len(dims_of(node.output)))
    own = broadcast(node.operands[0], labels)
    return AxisMap((own, None), (labels,), broadcasts=(0,), has_shape=True)


@AXES.rule("Tile")
def _tile(node: Node) -> AxisMap | None:
    labels, repeats = whole(len(dims_of(node.operands[0]))), node.operands[1]
    often = None if repeats is None or repeats.const is None else repeats.const.ravel().tolist()
    if often is None or len(often) != len(labels):
        return None
    kinds = all_of(Kind.OPAQUE, [label for label in labels if often[label] != 1])
    return AxisMap((labels, None), (labels,), kinds)


@AXES.rule("Concat")
def _concat(node: Node) -> AxisMap | None:
    labels = whole(len(dims_of(node.output)))
    axis = axis_of(node, len(labels))
    if axis is None:
        return None
    return AxisMap((labels,) * len(node.operands), (labels,), all_of(Kind.OPAQUE, (axis,)))


@AXES.rule("Split")
def _split(node: Node) -> AxisMap | None:
    labels = whole(len(dims_of(node.operands[0])))
    axis = axis_of(node, len(labels), 0)
    if axis is None:
        return None
    others = (None,) * (len(node.operands) - 1)
    kinds = all_of(Kind.OPAQUE, (axis,))
    return AxisMap((labels, *others), (labels,) * len(node.outputs), kinds)


@AXES.rule("Slice")
def _slice(node: Node) -> AxisMap | None:
    labels, given = whole(len(dims_of(node.operands[0]))), node.operand("axes")
    if given is None:
        starts = node.operand("starts")
        count = None if starts is None or starts.shape is None else starts.dim(0)
        sliced = tuple(range(count)) if isinstance(count, int) else None
    else:
        sliced = None if given.const is None else non_negative_axes(given.const, len(labels))
    if sliced is None:
        return None
    others = (None,) * (len(node.operands) - 1)
    return AxisMap((labels, *others), (labels,), all_of(Kind.OPAQUE, sliced))


@AXES.rule("Pad")
def _pad(node: Node) -> AxisMap | None:
    labels = whole(len(dims_of(node.operands[0])))
    pads, given = node.operand("pads"), node.operand("axes")
    named = labels if given is None else given.const
    if pads is None or pads.const is None or named is None:
        return None
    axes = non_negative_axes(named, len(labels))
    often = pads.const.ravel()
    if axes is None or often.size != 2 * len(axes):
        return None
    padded = {axis for at, axis in enumerate([*axes, *axes]) if often[at]}
    others = (None,) * (len(node.operands) - 1)
    return AxisMap((labels, *others), (labels,), all_of(Kind.OPAQUE, padded))
