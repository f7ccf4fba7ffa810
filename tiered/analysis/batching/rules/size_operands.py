"""The rules of operators with sizes as operands: Expand, Tile, Range, Resize and others."""

from __future__ import annotations

from tiered.analysis.batching.following import BATCHES, Following
from tiered.analysis.batching.rules.generic import mixes
from tiered.analysis.batching.rules.small_operands import shown
from tiered.analysis.batching.sample_facts import BatchRefusal, BatchRows, Fact, mentions
from tiered.graph import Node, non_negative_axes
from tiered.graph.shape_inference.symbolic_dims import Size, divide, multiply


@BATCHES.rule("ConstantOfShape")
def made_of_sizes(state: Following, node: Node) -> BatchRows:
    """ConstantOfShape, and Expand of a value that all samples share: a size is their count."""
    after = state.inferred(node)
    open_axes = [at for at, size in enumerate(after) if mentions(size, state.name)]
    # What is of the same size for every batch is followed by no rule.
    if None in after or not open_axes:
        raise BatchRefusal("the shape of its result is not known")
    inner = divide(after[open_axes[0]] or 0, state.batch)
    if len(open_axes) > 1 or inner is None or mentions(inner, state.name):
        raise BatchRefusal(f"it makes {shown(after)}: no axis has whole samples")
    return BatchRows(open_axes[0], 1, inner)


@BATCHES.rule("Expand")
def expand(state: Following, node: Node) -> Fact | None:
    """Expand: the target is 1 along the batch of its operand."""
    rows = state.rows(node, 0)
    if rows is None:
        return made_of_sizes(state, node)
    before, after = state.sizes(node.inputs[0]), state.sizes(node.output)
    axis = rows.axis - len(before) + len(after)
    target = state.elements(node.operand(1))
    if target is None:
        raise BatchRefusal("its target is not known")
    place = axis - len(after) + len(target)
    if any(mentions(size, state.name) for at, size in enumerate(target) if at != place):
        raise BatchRefusal("its target has the batch on another axis")
    if after[axis] != before[rows.axis]:
        raise BatchRefusal(f"it repeats the axis of a batch of {state.old}")
    if place >= 0 and target[place] not in (1, rows.size(state.batch)):
        pieces: list[Size | None] = [size if isinstance(size, int) else None for size in target]
        pieces[place] = 1
        state.edits.append(lambda to: to.set_target(node, pieces))
    return rows.on(axis)


@BATCHES.rule("Tile")
def tile(state: Following, node: Node) -> Fact | None:
    rows = state.rows(node, 0)
    repeats = state.elements(node.operand(1))
    if repeats is None:
        raise BatchRefusal("its repeats are not known")
    if rows is None:
        return made_of_sizes(state, node)
    if any(mentions(count, state.name) for count in repeats):
        raise BatchRefusal("its repeats have the batch on another axis")
    count = repeats[rows.axis]
    if count is None:
        raise BatchRefusal("its repeats are not known")
    return rows._replace(outer=multiply(rows.outer, count))


@BATCHES.rule("Range")
def number_range(state: Following, node: Node) -> Fact | None:
    """Range: consecutive numbers, equally many for each sample."""
    made = made_of_sizes(state, node)
    start, delta = (state.elements(node.input(slot)) for slot in (0, 2))
    if start is None or delta is None:
        raise BatchRefusal("its bounds are not known")
    known = [*start, *delta]
    if None in known or any(mentions(each, state.name) for each in known):
        raise BatchRefusal("its bounds are not known")
    return made._replace(step=multiply(delta[0] or 0, made.inner))


@BATCHES.rule("Resize", "Upsample")
def resize(state: Following, node: Node) -> Fact:
    """Resize and Upsample: the batch keeps its size."""
    rows = state.samples(node)
    is_upsample = node.is_op("Upsample")
    if not is_upsample:
        state.shared(node, 1)
    before, after = state.sizes(node.inputs[0]), state.sizes(node.output)
    axes = node.attr("axes", None) or range(len(before))
    named = non_negative_axes(axes, len(before))
    if before[rows.axis] != after[rows.axis] or named is None:
        raise BatchRefusal(f"it resizes the axis of a batch of {state.old}")
    sizes = None if is_upsample else node.operand("sizes")
    if rows.axis not in named or sizes is None:
        if node.operand("scales") in state.facts:
            raise BatchRefusal("its scales depend on the size of the batch")
        return rows
    place = list(named).index(rows.axis)
    known = state.elements(sizes)
    if known is None:
        raise BatchRefusal("its sizes are not known")
    if any(mentions(size, state.name) for at, size in enumerate(known) if at != place):
        raise BatchRefusal("its sizes have the batch on another axis")
    if known[place] != rows.size(state.batch):
        if node.attr("keep_aspect_ratio_policy", b"stretch") not in (b"stretch", "stretch"):
            raise BatchRefusal("it keeps the ratio of all sizes, the batch too")
        pieces: list[Size | None] = [size if isinstance(size, int) else None for size in known]
        pieces[place] = state.known_size(rows)
        state.edits.append(lambda to: to.set_target(node, pieces, slot=3))
    return rows


@BATCHES.rule("AffineGrid")
def affine_grid(state: Following, node: Node) -> Fact:
    rows = state.samples(node)
    if rows.axis != 0:
        raise mixes(node, 0, rows)
    size = state.elements(node.operand(1))
    if size is None or any(mentions(each, state.name) for each in size[1:]):
        raise BatchRefusal("its size is not known")
    if size[0] != rows.size(state.batch):
        pieces: list[Size | None] = [each if isinstance(each, int) else None for each in size]
        pieces[0] = state.known_size(rows)
        state.edits.append(lambda to: to.set_target(node, pieces))
    return rows
