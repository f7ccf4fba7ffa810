"""The rules of sequences and optionals: each tensor in one has the samples on the same axis."""

from __future__ import annotations

from tiered.analysis.batching.following import BATCHES, Following, Made
from tiered.analysis.batching.rules.generic import common, mixes
from tiered.analysis.batching.sample_facts import BatchRefusal, Fact
from tiered.graph import Node, Value


@BATCHES.rule("SequenceConstruct")
def construct(state: Following, node: Node) -> Fact:
    carried = state.in_rows(node)
    rows = common(carried.values())
    if any(each != rows for each in carried.values()):
        raise BatchRefusal("its operands have the samples on different axes")
    for slot in range(len(node.inputs)):
        if slot not in carried:
            state.spread(node, slot, rows)
    return rows


@BATCHES.rule("SequenceInsert")
def insert(state: Following, node: Node) -> Fact:
    """Follow SequenceInsert: all tensors of a sequence have the same samples."""
    state.shared(node, 2)
    sequence, rows = state.rows(node, 0), state.rows(node, 1)
    if rows is None:
        assert sequence is not None
        state.spread(node, 1, sequence)
        return sequence
    if sequence is None and not begins_empty(node.inputs[0]):
        raise BatchRefusal("its sequence has tensors that all samples share")
    if sequence not in (None, rows):
        raise BatchRefusal("its operands have the samples on different axes")
    return rows


def begins_empty(value: Value | None) -> bool:
    """Return whether a sequence is empty, or the state of a Loop that begins with an empty one."""
    if value is None:
        return False
    node, body = value.producer, value.input_of
    if node is not None:
        return node.is_op("SequenceEmpty")
    loop = None if body is None else body.parent_node
    if body is None or loop is None or not loop.is_op("Loop"):
        return False
    return begins_empty(loop.input(body.inputs.index(value)))


@BATCHES.rule("SequenceAt", "SequenceErase")
def at(state: Following, node: Node) -> Fact | None:
    state.shared(node, 1)
    return state.rows(node, 0)


@BATCHES.rule("SequenceLength", "OptionalHasElement")
def counted(state: Following, node: Node) -> Made:
    """SequenceLength: the same for every batch."""
    state.rows(node, 0)
    return None


@BATCHES.rule("Optional", "OptionalGetElement")
def wrapped(state: Following, node: Node) -> Fact | None:
    return state.rows(node, 0)


@BATCHES.rule("SplitToSequence")
def split(state: Following, node: Node) -> Fact:
    state.shared(node, 1)
    rows, rank = state.samples(node), state.rank(node.inputs[0])
    axis = node.attr("axis") % rank
    if axis == rows.axis:
        raise BatchRefusal(f"it splits the axis of a batch of {state.old}")
    is_gone = node.input(1) is None and not node.attr("keepdims", True)
    return rows.on(rows.axis - (is_gone and axis < rows.axis))


@BATCHES.rule("ConcatFromSequence")
def joined(state: Following, node: Node) -> Fact:
    rows, rank = state.samples(node), state.rank(node.output)
    axis, is_new = node.attr("axis") % rank, bool(node.attr("new_axis"))
    if not is_new and axis == rows.axis:
        raise mixes(node, 0, rows)
    return rows.on(rows.axis + (is_new and axis <= rows.axis))
