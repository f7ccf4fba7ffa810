"""The rules of Reshape, Flatten, Squeeze and Unsqueeze: samples stay whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tiered.analysis.batching.following import BATCHES, Following, Made
from tiered.analysis.batching.placements import moves, placements
from tiered.analysis.batching.rules.size_operands import made_of_sizes
from tiered.analysis.batching.rules.small_operands import named_axes, shown
from tiered.analysis.batching.sample_facts import (
    BatchRefusal,
    BatchRows,
    Fact,
    Sizes,
    mentions,
    product,
)
from tiered.graph import Node
from tiered.graph.shape_inference.symbolic_dims import Size, divide

_BAKED: Final = (
    "it makes {} of {}, which is baked into its constant {!r}: no axis has whole samples"
)


@BATCHES.rule("Reshape")
def reshape(state: Following, node: Node) -> Made:
    """Reshape: the elements before and after each sample stay the same."""
    data, output = node.given(0), node.output
    rows = state.rows(node, 0)
    if rows is None:
        return _shared(state, node)
    target = state.elements(node.operand(1))
    if target is None:
        raise BatchRefusal("its target is not known")
    before, after = state.sizes(data), state.sizes(output)
    copies = not node.attr("allowzero")
    now = [
        state.sizes_now(data)[at] if size == 0 and copies and at < len(before) else size
        for at, size in enumerate(target)
    ]
    options = placements(rows, before, after, state.old)
    named = [at for at, size in enumerate(now) if mentions(size, state.name)]
    if named:
        made = next((each for each in options if [each.axis] == named), None)
        if made is None or now[made.axis] != made.size(state.batch):
            raise BatchRefusal(f"its target {shown(now)} has no axis with whole samples")
        return made
    moved = moves(rows, before, after, state.old)
    # Where the samples follow one another, a Reshape keeps them so.
    is_first = product((*before[: rows.axis], rows.outer)) == 1 or any(r.is_whole for r in options)
    every = [*options, *moved] if is_first else [*moved, *options]
    if not every:
        raise BatchRefusal(_baked(node, before, after))
    made = state.choose(node, list(dict.fromkeys(every)), _choice(node, before, after))
    if made not in options:
        state.edits.append(lambda to: to.move(node, rows, made))
        return made
    pieces = _pieces(target, made, after)
    if pieces is None:
        return made
    if pieces.index(-1) != made.axis:
        # Beside an inferred dim the size of the batch has to be stated.
        pieces[made.axis] = 0 if made == rows and copies else state.known_size(made)
    state.edits.append(lambda to: to.set_target(node, pieces))
    return made


def _shared(state: Following, node: Node) -> BatchRows:
    """Reshape of what all samples share, to a size that follows from the batch: it is repeated."""
    target, before, after = (
        state.elements(node.operand(1)), state.sizes(node.inputs[0]), state.sizes(node.output)
    )  # fmt: skip
    named = [at for at, size in enumerate(target or ()) if mentions(size, state.name)]
    if target is None or len(named) != 1:
        return made_of_sizes(state, node)
    inner = divide(target[named[0]] or 0, state.batch)
    if inner is None or mentions(inner, state.name):
        return made_of_sizes(state, node)
    made = BatchRows(named[0], 1, inner)
    sources = placements(made, after, before, state.old)
    if not sources:
        raise BatchRefusal(_baked(node, before, after))
    state.spread(node, 0, sources[0])
    return made


def _pieces(
    target: Sequence[Size | None], made: BatchRows, after: Sizes
) -> list[Size | None] | None:
    """Return the elements of a target for any batch; None if it is right.

    None among the elements is that of the present target. One is -1: that of the batch, or a
    dynamic dim that the target infers.
    """
    at = made.axis
    if target[at] == -1:
        return None
    pieces: list[Size | None] = [int(size) if isinstance(size, int) else None for size in target]
    pieces[at] = -1
    for axis, size in enumerate(target):
        if size == -1:
            known = after[axis]
            pieces[axis] = known if isinstance(known, int) else -1
            pieces[at] = -1 if isinstance(known, int) else None
        if size == 0 and isinstance(after[axis], int):
            pieces[axis] = after[axis]
    return pieces


def _baked(node: Node, before: Sizes, after: Sizes) -> str:
    target = node.operand(1) if node.is_op("Reshape") else None
    return _BAKED.format(shown(after), shown(before), "" if target is None else target.name)


def _choice(node: Node, before: Sizes, after: Sizes) -> str:
    target = node.operand(1) if node.is_op("Reshape") else None
    name = "" if target is None else f" by its constant {target.name!r}"
    return (
        f"{node.op_type} {node.label!r} makes {shown(after)} of {shown(before)}{name}, where "
        "several axes may be the batch"
    )


@BATCHES.rule("Flatten")
def flatten(state: Following, node: Node) -> Fact:
    rows = state.samples(node)
    before, after = state.sizes(node.inputs[0]), state.sizes(node.output)
    axis = node.attr("axis")
    at = 0 if rows.axis < (axis + len(before) if axis < 0 else axis) else 1
    options = placements(rows, before, after, state.old)
    made = next((each for each in options if each.axis == at), None)
    return _by_reshape(state, node, rows) if made is None else made


@BATCHES.rule("Squeeze")
def squeeze(state: Following, node: Node) -> Fact:
    """Squeeze; one of the batch itself merges it with another axis, by a Reshape."""
    rows = state.samples(node)
    before, after = state.sizes(node.inputs[0]), state.sizes(node.output)
    given = named_axes(state, node, len(before))
    gone = [at for at, size in enumerate(before) if size == 1] if given is None else given
    if len(before) - len(gone) != len(after):
        raise BatchRefusal("the axes that it removes are not known")
    if rows.axis in gone:
        return _by_reshape(state, node, rows)
    if given is None:
        axes = np.array(gone, np.int64)
        state.edits.append(
            lambda to: to.replace(node, lambda: node.owner.op.Squeeze(node.inputs[0], axes))
        )
    return rows.on(rows.axis - sum(axis < rows.axis for axis in gone))


@BATCHES.rule("Unsqueeze")
def unsqueeze(state: Following, node: Node) -> Fact:
    """Unsqueeze; a new axis takes the samples of one that they share with others."""
    rows = state.samples(node)
    rank = state.rank(node.output)
    new = named_axes(state, node, rank)
    if new is None:
        raise BatchRefusal("its axes are not constant")
    options = placements(rows, state.sizes(node.inputs[0]), state.sizes(node.output), state.old)
    if not rows.is_whole and any(each.is_whole for each in options):
        return _by_reshape(state, node, rows)
    kept = [axis for axis in range(rank) if axis not in new]
    return rows.on(kept[rows.axis])


def _by_reshape(state: Following, node: Node, rows: BatchRows) -> Fact:
    """Follow a node as a Reshape with a static target, and replace it by one."""
    before, after = state.sizes(node.inputs[0]), state.sizes(node.output)
    options = placements(rows, before, after, state.old)
    if not options:
        raise BatchRefusal(f"it moves the axis of a batch of {state.old}")
    made = state.choose(node, options, _choice(node, before, after))
    sizes = [-1 if at == made.axis else size for at, size in enumerate(after)]
    if not all(isinstance(size, int) for size in sizes):
        raise BatchRefusal(f"it moves the axis of a batch of {state.old}, beside dynamic dims")
    shape = np.array(sizes, np.int64)
    state.edits.append(
        lambda to: to.replace(node, lambda: node.owner.op.Reshape(node.inputs[0], shape))
    )
    return made
