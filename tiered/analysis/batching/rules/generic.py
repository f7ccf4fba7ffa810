"""The rule that is derived from axis maps, and those of operators with the batch first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from tiered.analysis.axes.axis_map import AxisMap
from tiered.analysis.axes.rules import axis_map
from tiered.analysis.batching.following import BATCHES, Following, Made
from tiered.analysis.batching.sample_facts import BatchRefusal, BatchRows, Fact
from tiered.graph import Node
from tiered.graph.queries.op_traits import BROADCASTING
from tiered.rewriter import Skip

MIXES: Final = "it computes a result from several samples: axis {} of {!r} is the batch"


def followed(state: Following, node: Node) -> Made:
    """Follow samples along the iterator of their axis, if it is parallel.

    An operand that is the same for every sample, and has a part for each, is repeated or broadcast.
    """
    axes, carried = axis_map(node), state.in_rows(node)
    for at, value in node.used_outputs.items():
        is_known = not isinstance(axes, Skip) and axes.outputs[at] is not None
        if at and not is_known:
            raise BatchRefusal(f"its output {value.name!r} has no rule")
    if isinstance(axes, Skip):
        raise BatchRefusal(str(axes))
    label = _carrying(node, axes, carried)
    if label is None:
        raise BatchRefusal(_mixing(node, carried))
    rows = common(carried.values())
    made = [
        rows.on(own.index(label)) if own is not None and label in own else None
        for own in axes.outputs
    ]
    first = made[0]
    assert first is not None
    _fit_others(state, node, axes, label, first, carried)
    return first if all(each == first for each in made) else list(made)


def _mixing(node: Node, carried: Mapping[int, BatchRows]) -> str:
    slot, rows = next(iter(carried.items()))
    return MIXES.format(rows.axis, node.given(slot).name)


def mixes(node: Node, slot: int, rows: BatchRows) -> BatchRefusal:
    """Return the refusal of a node that mixes the samples of an operand."""
    return BatchRefusal(_mixing(node, {slot: rows}))


def _carrying(node: Node, axes: AxisMap, carried: Mapping[int, BatchRows]) -> int | None:
    """Return the iterator of the axes with samples; None if there is none or samples mix."""
    labels = {axes.at(slot, rows.axis) for slot, rows in carried.items()}
    label, out = labels.pop(), axes.outputs[0]
    if labels or not axes.is_parallel(label) or out is None or label not in out:
        return None
    # A batch of 1 that is broadcast is one sample for several results.
    size = node.output.dim(out.index(label))
    sizes = [node.given(slot).dim(rows.axis) for slot, rows in carried.items()]
    return label if all(each == size for each in sizes) else None


def common(carried: Collection[BatchRows]) -> BatchRows:
    first = next(iter(carried))
    if any(rows[1:] != first[1:] for rows in carried):
        raise BatchRefusal("its operands have the samples in different orders")
    return first


def _fit_others(
    state: Following,
    node: Node,
    axes: AxisMap,
    label: int,
    rows: BatchRows,
    carried: Mapping[int, BatchRows],
) -> None:
    """Adapt the operands that are the same for every sample and have a part for each."""
    lifted = False
    for slot, labels in enumerate(axes.inputs):
        if labels is None or label not in labels or slot in carried:
            continue
        value, own = node.given(slot), rows.on(labels.index(label))
        if slot not in axes.broadcasts:
            state.spread(node, slot, own)
        elif value.dim(own.axis) == node.output.dim(rows.axis) != 1:
            state.check_uniform(value, own)
            if rows.is_whole:
                _take_first(state, node, slot, own)
            lifted |= not rows.is_whole
    if lifted:
        _check_liftable(state, node, rows)
        state.edits.append(lambda to: to.lift(node, rows, carried.keys()))


def _check_liftable(state: Following, node: Node, rows: BatchRows) -> None:
    """Check that an operator can be computed with the axis of the batch as three.

    Raises:
        Refusal: it cannot; the reason names an operand.
    """
    rank = state.rank(node.output)
    is_ahead = node.is_op("MatMul") or (node.op_type in BROADCASTING and not node.domain)
    for value in (*node.reads, node.output):
        own = rows.axis - rank + state.rank(value)
        if own >= 0:
            state.check_static(value, rows.on(own))
    if not is_ahead:
        raise BatchRefusal("its operands have a number for each of several neighbours of a sample")


def _take_first(state: Following, node: Node, slot: int, rows: BatchRows) -> None:
    value = node.given(slot)
    state.edits.append(lambda to: to.set_input(node, slot, to.first(node.owner, value, rows)))


# --- the batch first ------------------------------------------------------------------------------


def leading(*slots: int, others: Collection[int] = ()) -> Callable[[Following, Node], Fact]:
    """Return the rule of operators with the batch as the first axis of operands and outputs.

    Args:
        slots: the operands that carry samples; one that does not is repeated for each.
        others: operands that carry samples too, or broadcast.
    """

    def rule(state: Following, node: Node) -> Fact:
        carried = state.in_rows(node)
        rows = common(carried.values())
        for slot, each in carried.items():
            if slot not in slots and slot not in others:
                raise BatchRefusal(f"its operand {slot} differs from sample to sample")
            if each.axis != 0:
                raise mixes(node, slot, each)
        for slot in slots:
            if node.input(slot) is not None and slot not in carried:
                state.spread(node, slot, rows)
        return rows

    return rule


@BATCHES.rule("Attention")
def attention(state: Following, node: Node) -> Fact:
    """Attention; a mask of fewer than 4 axes is the same for every sample."""
    rows = leading(0, 1, 2, 4, 5, 6, others=(3,))(state, node)
    assert isinstance(rows, BatchRows)
    mask = node.input(3)
    if mask is None:
        return rows
    rank = state.rank(mask)
    if state.rows(node, 3) is not None:
        if rank != 4:
            raise BatchRefusal(f"the first axis of its mask {mask.name!r} is not that of the batch")
    elif rank == 4 and state.sizes(mask)[0] != 1:
        state.spread(node, 3, rows)
    return rows


@BATCHES.rule("RotaryEmbedding")
def rotary(state: Following, node: Node) -> Fact:
    """RotaryEmbedding; without positions, the caches have a row for each sample."""
    has_positions = node.input(3) is not None
    return leading(*((0, 3) if has_positions else (0, 1, 2)))(state, node)


@BATCHES.rule("CastLike")
def cast_like(state: Following, node: Node) -> Fact | None:
    """CastLike: the second operand has a dtype, whatever its samples are."""
    return state.rows(node, 0)


@BATCHES.rule("DynamicQuantizeLinear")
def dynamic_quantize_linear(state: Following, node: Node) -> Fact:
    """DynamicQuantizeLinear: one scale for the whole tensor."""
    raise BatchRefusal("its scale follows from the elements of all samples")
