"""The rules that ask how a cut along the batch passes through a node, and those like them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from tiered.analysis.axes.axis_map import AxisMap, Kind
from tiered.analysis.axes.rules import axis_map
from tiered.analysis.axes.rules.along import reduced_axes
from tiered.analysis.batching.facts import Fact, Refusal, Rows
from tiered.analysis.batching.following import BATCHES, Following, Made, Rule
from tiered.graph import Node
from tiered.graph.queries.op_traits import BROADCASTING, ELEMENTWISE, REDUCTIONS
from tiered.rewriter import Skip

_BROADCASTS: Final = frozenset({*BROADCASTING, "Gemm", "MatMul"})
_OTHERS_ALIKE: Final = frozenset({"Dropout", "LayerNormalization"})
"""Operators with further outputs that have the axes of the first one."""

MIXES: Final = "it computes a result from several samples: axis {} of {!r} is the batch"


@BATCHES.rule(*(ELEMENTWISE - {"CastLike"}), *REDUCTIONS)
@BATCHES.rule("AveragePool", "GlobalAveragePool", "GlobalMaxPool")
@BATCHES.rule("BatchNormalization", "LayerNormalization", "RMSNormalization")
@BATCHES.rule("DequantizeLinear", "Gemm", "QuantizeLinear")
def followed(state: Following, node: Node) -> Made:
    """Operators with parts along the batch that need the same part of each operand."""
    if node.owner.opset() < 7:
        raise Refusal("operators before opset 7 broadcast in another way")
    others = [value for value in node.outputs[1:] if value is not None and value.is_used]
    if others and node.op_type not in _OTHERS_ALIKE:
        raise Refusal(f"its output {others[0].name!r} has no rule")
    carried = state.in_rows(node)
    axes = axis_map(node)
    label = None if axes is None else _carrying(axes, carried)
    if axes is None or label is None or axes.outputs[0] is None or label not in axes.outputs[0]:
        raise Refusal(_mixing(node, carried))
    rows = common(carried.values()).on(axes.outputs[0].index(label))
    _fit_others(state, node, axes, label, rows, carried)
    return rows


def _mixing(node: Node, carried: Mapping[int, Rows]) -> str:
    slot, rows = next(iter(carried.items()))
    value = node.inputs[slot]
    return MIXES.format(rows.axis, "" if value is None else value.name)


def mixes(node: Node, slot: int, rows: Rows) -> Refusal:
    """Return the refusal of a node that mixes the samples of an operand."""
    return Refusal(_mixing(node, {slot: rows}))


def _carrying(axes: AxisMap, carried: Mapping[int, Rows]) -> int | None:
    """Return the iterator of the axes with samples, if they have one and samples stay apart."""
    labels = {axes.at(slot, rows.axis) for slot, rows in carried.items()}
    label = labels.pop()
    is_apart = not labels and label is not None and axes.kind(label) is Kind.PARALLEL
    return label if is_apart else None


def common(carried: Collection[Rows]) -> Rows:
    first = next(iter(carried))
    if any(rows[1:] != first[1:] for rows in carried):
        raise Refusal("its operands have the samples in different orders")
    return first


def _fit_others(
    state: Following,
    node: Node,
    axes: AxisMap,
    label: int,
    rows: Rows,
    carried: Mapping[int, Rows],
) -> None:
    """Adapt the operands that are the same for every sample and have a part for each."""
    lifted = False
    for slot, labels in enumerate(axes.inputs):
        value = node.input(slot)
        if labels is None or label not in labels or slot in carried or value is None:
            continue
        own = rows.on(labels.index(label))
        if node.op_type == "Concat":
            state.spread(node, slot, own)
        elif node.op_type not in _BROADCASTS:
            raise Refusal(f"its operand {value.name!r} has a number for each sample")
        elif state.sizes(value)[own.axis] != 1:
            state.check_uniform(value, own)
            if rows.is_whole:
                _take_first(state, node, slot, own)
            lifted |= not rows.is_whole
    if lifted:
        _check_liftable(state, node, rows)
        state.edits.append(lambda to: to.lift(node, rows, carried.keys()))


def _check_liftable(state: Following, node: Node, rows: Rows) -> None:
    """Check that an operator can be computed with the axis of the batch as three.

    Raises:
        Refusal: it cannot; the reason names an operand.
    """
    rank = state.rank(node.output)
    is_ahead = not node.is_op("Gemm") and not (node.is_op("MatMul") and rows.axis >= rank - 2)
    for value in (*node.inputs, node.output):
        own = rows.axis - rank + state.rank(value)
        if value is not None and own >= 0:
            state.check_static(value, rows.on(own))
    if not is_ahead:
        raise Refusal("its operands have a number for each of several neighbours of a sample")


def _take_first(state: Following, node: Node, slot: int, rows: Rows) -> None:
    value = node.inputs[slot]
    assert value is not None
    state.edits.append(lambda to: to.set_input(node, slot, to.first(node.owner, value, rows)))


# --- operators without a cut ----------------------------------------------------------------------


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
                raise Refusal(f"its operand {slot} differs from sample to sample")
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
    assert isinstance(rows, Rows)
    mask = node.input(3)
    if mask is None:
        return rows
    rank = state.rank(mask)
    if state.rows(node, 3) is not None:
        if rank != 4:
            raise Refusal(f"the first axis of its mask {mask.name!r} is not that of the batch")
    elif rank == 4 and state.sizes(mask)[0] != 1:
        state.spread(node, 3, rows)
    return rows


@BATCHES.rule("RotaryEmbedding")
def rotary(state: Following, node: Node) -> Fact:
    """RotaryEmbedding; without positions, the caches have a row for each sample."""
    has_positions = node.input(3) is not None
    return leading(*((0, 3) if has_positions else (0, 1, 2)))(state, node)


def along_axis(default: int, *, last: bool = False) -> Rule:
    """Return the rule of operators that combine the elements of one axis, an attribute."""

    def rule(state: Following, node: Node) -> Fact:
        rows = _first_alone(state, node)
        axis = node.attr("axis", default) % max(state.rank(node.inputs[0]), 1)
        if axis == rows.axis:
            raise mixes(node, 0, rows)
        return rows

    return rule


def _first_alone(state: Following, node: Node) -> Rows:
    state.shared(node, *range(1, len(node.inputs)))
    rows = state.rows(node, 0)
    assert rows is not None
    return rows


@BATCHES.rule("Hardmax", "LogSoftmax", "Softmax")
def softmax(state: Following, node: Node) -> Made:
    """Softmax and its like; before opset 13 over all axes from one on."""
    if node.owner.opset() >= 13:
        return followed(state, node)
    rows = _first_alone(state, node)
    if node.attr("axis", 1) % max(state.rank(node.inputs[0]), 1) <= rows.axis:
        raise mixes(node, 0, rows)
    return rows


@BATCHES.rule("ArgMax", "ArgMin")
def arg_reduction(state: Following, node: Node) -> Fact:
    """ArgMax and ArgMin."""
    rows = _first_alone(state, node)
    axes = reduced_axes(node, state.rank(node.inputs[0]))
    assert not isinstance(axes, Skip)
    if rows.axis in axes:
        raise mixes(node, 0, rows)
    gone = 0 if node.attr("keepdims", 1) else sum(axis < rows.axis for axis in axes)
    return rows.on(rows.axis - gone)


@BATCHES.rule("CumProd", "CumSum")
def cumulative(state: Following, node: Node) -> Fact:
    rows = _first_alone(state, node)
    axis = node.inputs[1]
    number = None if axis is None else axis.number
    if number is None:
        raise Refusal("its axis is not constant")
    if int(number) % state.rank(node.inputs[0]) == rows.axis:
        raise mixes(node, 0, rows)
    return rows


@BATCHES.rule("Trilu")
def trilu(state: Following, node: Node) -> Fact:
    rows = _first_alone(state, node)
    if rows.axis >= state.rank(node.inputs[0]) - 2:
        raise mixes(node, 0, rows)
    return rows


@BATCHES.rule("CastLike")
def cast_like(state: Following, node: Node) -> Fact | None:
    return state.rows(node, 0)


@BATCHES.rule("MatMul")
def matmul(state: Following, node: Node) -> Made:
    """MatMul; one with a vector has its own axes."""
    ranks = [state.rank(value) for value in node.inputs]
    if min(ranks) >= 2:
        return followed(state, node)
    carried = state.in_rows(node)
    ((slot, rows),) = carried.items() if len(carried) == 1 else ((0, carried[0]),)
    contracted = ranks[0] - 1 if slot == 0 else max(ranks[1] - 2, 0)
    if len(carried) > 1 or rows.axis == contracted or ranks[slot] == 1:
        raise mixes(node, slot, rows)
    return rows if rows.axis < contracted else rows.on(rows.axis - 1)


def rows_of_product(slot: int, weight: int) -> Rule:
    """Return the rule of products of integers: the batch is an axis of one operand alone."""

    def rule(state: Following, node: Node) -> Fact:
        state.shared(node, *(at for at in range(len(node.inputs)) if at != slot))
        rows = state.rows(node, slot)
        assert rows is not None
        ranks = state.rank(node.inputs[slot]), state.rank(node.inputs[weight])
        if rows.axis == ranks[0] - 1 or ranks[1] > 2:
            raise mixes(node, slot, rows)
        return rows

    return rule


@BATCHES.rule("Einsum")
def einsum(state: Following, node: Node) -> Fact:
    text = node.attr("equation").replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if not arrow or "." in text:
        raise Refusal("its equation has an ellipsis, or names no output")
    carried = state.in_rows(node)
    letters = {terms[slot][rows.axis] for slot, rows in carried.items()}
    first = next(iter(carried))
    if len(letters) != 1 or right.count(next(iter(letters))) != 1:
        raise mixes(node, first, carried[first])
    (letter,) = letters
    for slot, term in enumerate(terms):
        if term.count(letter) > (1 if slot in carried else 0):
            if slot in carried:
                raise mixes(node, slot, carried[slot])
            state.spread(node, slot, common(carried.values()).on(term.index(letter)))
    return common(carried.values()).on(right.index(letter))


@BATCHES.rule("MeanVarianceNormalization")
def normalized(state: Following, node: Node) -> Fact:
    """MeanVarianceNormalization: over the axes of a list."""
    rows = _first_alone(state, node)
    if rows.axis in [axis % state.rank(node.inputs[0]) for axis in node.attr("axes", (0, 2, 3))]:
        raise mixes(node, 0, rows)
    return rows


@BATCHES.rule("OneHot")
def one_hot(state: Following, node: Node) -> Fact:
    state.shared(node, 1, 2)
    rows, rank = state.rows(node, 0), state.rank(node.inputs[0])
    assert rows is not None
    axis = node.attr("axis", -1) % (rank + 1)
    return rows.on(rows.axis + (axis <= rows.axis))


@BATCHES.rule("ReverseSequence")
def reverse_sequence(state: Following, node: Node) -> Fact:
    rows = state.rows(node, 0) or Rows(node.attr("batch_axis", 1))
    if rows.axis != node.attr("batch_axis", 1):
        raise mixes(node, 0, rows)
    lengths = state.rows(node, 1)
    if lengths is None:
        state.spread(node, 1, rows.on(0))
    if state.rows(node, 0) is None:
        state.spread(node, 0, rows)
    return rows


BATCHES.rule("ConvInteger", "ConvTranspose", "QLinearConv")(leading(0))
BATCHES.rule("DepthToSpace", "GlobalLpPool", "LpPool", "SpaceToDepth")(leading(0))
BATCHES.rule("GroupNormalization", "InstanceNormalization", "LRN")(leading(0))
BATCHES.rule("DeformConv")(leading(0, 2, 4))
BATCHES.rule("GridSample")(leading(0, 1))
BATCHES.rule("LpNormalization", "TopK")(along_axis(-1))
BATCHES.rule("MatMulInteger")(rows_of_product(0, 1))
BATCHES.rule("QLinearMatMul")(rows_of_product(0, 3))
