"""Rules of operators that combine elements along axes: products, norms, reductions, Softmax."""

from __future__ import annotations

from tiered.analysis.axes.rules.along import reduced_axes
from tiered.analysis.layout.rules import propagation_of
from tiered.extensions.packing.abstract import (
    AbstractTensor,
    MaskEdit,
    Refusal,
    Role,
    Roles,
    SumEdit,
    TermEdit,
)
from tiered.extensions.packing.interpretation import PACKINGS, Interpretation
from tiered.extensions.packing.rules.pointwise import are_pooled, check_fixed, joined
from tiered.extensions.packing.rules.structure import pooled
from tiered.graph import DataType, Node
from tiered.graph.queries.op_traits import REDUCTIONS
from tiered.rewriter import Skip


@PACKINGS.rule("Hardmax", "LogSoftmax", "Softmax")
def softmax(state: Interpretation, node: Node) -> AbstractTensor:
    """Softmax over features, or over the keys of an attention, which it masks."""
    x, rank = state.tensor(node, 0), len(state.tensor(node, 0).roles)
    is_flattening = node.owner.opset() < 13
    axis = node.attr("axis", 1 if is_flattening else -1) % max(rank, 1)
    if is_flattening and axis != rank - 1 and any(x.roles[axis:]):
        raise Refusal("it normalizes over several axes at once")
    if x.is_constant or x.roles[axis] is None:
        return x.plain()
    queries = [place for place in x.places(Role.TOKEN) if place != axis]
    batch, parts = state.batch_axis(node.input(0), x.roles)
    if x.roles[axis] is not Role.TOKEN or len(queries) != 1 or batch < 0 or x.is_pooled:
        raise Refusal("it normalizes over the tokens of a row")
    if not node.is_op("Softmax"):
        raise Refusal("it normalizes over keys, and its result for other sequences is not 0")
    if batch > min(axis, queries[0]):
        raise Refusal("the batch is not the first axis of its scores")
    state.edits.append(MaskEdit(node, parts))
    return AbstractTensor(x.roles, zeros=axis)


@PACKINGS.rule("CumProd", "CumSum", "LpNormalization", "TopK")
def along_axis(state: Interpretation, node: Node) -> tuple[AbstractTensor, ...]:
    """TopK, CumSum and others along one axis that has no role; CumSum of integers over tokens."""
    x = state.tensor(node, 0)
    for slot in range(1, len(node.inputs)):
        state.constant(node, slot, "second operand")
    if node.is_op("CumSum") or node.is_op("CumProd"):
        operand = node.inputs[1]
        number = None if operand is None else operand.number
        if number is None:
            raise Refusal("its axis is not constant")
        axis = int(number)
        if node.is_op("CumSum") and x.roles and x.roles[axis % len(x.roles)] is Role.TOKEN:
            return (_running_sum(state, node, x, axis % len(x.roles)),)
    else:
        axis = node.attr("axis", -1)
    _check_free(x, (axis % max(len(x.roles), 1),))
    return (x.plain(),) * len(node.outputs)


def _running_sum(state: Interpretation, node: Node, x: AbstractTensor, axis: int) -> AbstractTensor:
    """Return the relation of a sum over the tokens before each, as of numbers of positions."""
    if node.attr("reverse", 0):
        raise Refusal("it sums from the last token on")
    if x.is_positional and len(x.places(Role.TOKEN)) == 1:
        return x.plain()
    dtype = None if node.inputs[0] is None else node.inputs[0].dtype
    if dtype is None or DataType(dtype).is_float:
        # The sums of earlier sequences would be subtracted again, which rounds.
        raise Refusal("it sums floats over the tokens of a row")
    if x.is_pooled or axis != 1 or x.places(Role.BATCH) != (0,) or x.places(Role.TOKEN) != (1,):
        raise Refusal("it combines the tokens of a row")
    state.edits.append(SumEdit(node))
    return x.plain()


@PACKINGS.rule("LayerNormalization", "RMSNormalization")
def from_axis_on(state: Interpretation, node: Node) -> tuple[AbstractTensor, ...]:
    """LayerNormalization and RMSNormalization: over the axes from one on."""
    x = state.tensor(node, 0)
    for slot in range(1, len(node.inputs)):
        state.constant(node, slot, "scale or bias")
    if any(value is not None for value in node.outputs[1:]):
        raise Refusal("its mean or deviation is used")
    start = node.attr("axis", -1) % max(len(x.roles), 1)
    _check_free(x, range(start, len(x.roles)))
    return (x.plain(),) * len(node.outputs)


@PACKINGS.rule("BatchNormalization", "DequantizeLinear", "QuantizeLinear")
def per_channel(state: Interpretation, node: Node) -> AbstractTensor:
    """BatchNormalization, QuantizeLinear and DequantizeLinear: numbers for each channel."""
    x = state.tensor(node, 0)
    for slot in range(1, len(node.inputs)):
        state.constant(node, slot, "second operand")
    if len(node.outputs) > 1:
        raise Refusal("it is in training mode")
    numbers = node.input(1)
    if len(x.roles) > 1 and (numbers is None or numbers.rank != 0):
        _check_free(x, (node.attr("axis", 1) % len(x.roles),))
    return x.plain()


def _check_free(x: AbstractTensor, axes: range | tuple[int, ...]) -> None:
    if any(x.roles[axis] for axis in axes if axis < len(x.roles)):
        raise Refusal("it combines the tokens of a row")


@PACKINGS.rule("ArgMax", "ArgMin", *REDUCTIONS)
def reduction(state: Interpretation, node: Node) -> AbstractTensor:
    """Reduce* and Arg*: sums and means over the tokens become those of each sequence."""
    x = state.tensor(node, 0)
    for slot in range(1, len(node.inputs)):
        state.constant(node, slot, "list of axes")
    axes = reduced_axes(node, len(x.roles))
    if isinstance(axes, Skip):
        raise Refusal(str(axes))
    keeps = bool(node.attr("keepdims", 1))
    if not any(x.roles[axis] for axis in axes):
        kept = [
            None if axis in axes else role
            for axis, role in enumerate(x.roles)
            if keeps or axis not in axes
        ]
        return AbstractTensor(tuple(kept), is_pooled=x.is_pooled)
    if node.is_op("ArgMax") and x.roles == (Role.BATCH, Role.TOKEN) and not keeps:
        return _chosen(node, x, list(axes))
    if node.op_type not in ("ReduceSum", "ReduceMean") or len(axes) != 1:
        raise Refusal("it combines the tokens of a row")
    if x.roles[axes[0]] is not Role.TOKEN:
        raise Refusal("it combines the rows of the batch")
    dtype = None if node.inputs[0] is None else node.inputs[0].dtype
    if node.op_type == "ReduceMean" and (dtype is None or not DataType(dtype).is_float):
        raise Refusal("it takes the mean of integers")
    return pooled(state, node, x, axes[0], kept=int(keeps))


def _chosen(node: Node, x: AbstractTensor, axes: list[int]) -> AbstractTensor:
    """Return the index of the token of each row that an ArgMax chooses."""
    dtype = None if node.inputs[0] is None else node.inputs[0].dtype
    if axes != [1] or x.is_pooled:
        raise Refusal("it combines the rows of the batch")
    if dtype is None or DataType(dtype).is_float:
        raise Refusal("it takes the largest of floats, which may be NaN")
    return AbstractTensor((Role.BATCH,), is_row_number=True, chosen_by=node)


# --- products -------------------------------------------------------------------------------------


@PACKINGS.rule("MatMul")
def matmul(state: Interpretation, node: Node) -> AbstractTensor:
    """MatMul: over features, or over the keys of attention weights."""
    left, right = state.tensor(node, 0), state.tensor(node, 1)
    if min(len(left.roles), len(right.roles)) < 2:
        if not (left.is_constant or right.is_constant) or len(right.roles) != 1:
            raise Refusal("it multiplies vectors of tokens")
        _check_sum(left, len(left.roles) - 1, right, 0)
        return AbstractTensor(left.roles[:-1], is_pooled=left.is_pooled)
    _check_sum(left, len(left.roles) - 1, right, len(right.roles) - 2)
    # The rows of one operand and the columns of the other are broadcast by a dim of size 1.
    rows = AbstractTensor((*left.roles[:-1], None), is_pooled=left.is_pooled)
    columns = AbstractTensor((*right.roles[:-2], None, right.roles[-1]), is_pooled=right.is_pooled)
    made = joined(state, node, [rows, columns])
    check_fixed(node, [left, right], made.roles, last=2)
    return made


@PACKINGS.rule("Gemm")
def gemm(state: Interpretation, node: Node) -> AbstractTensor:
    operands = [state.tensor(node, slot) for slot in range(2)]
    swapped = [node.attr(name, 0) for name in ("transA", "transB")]
    left, right = (
        AbstractTensor(each.roles[::-1] if swap else each.roles, is_pooled=each.is_pooled)
        for each, swap in zip(operands, swapped, strict=True)
    )
    _check_sum(left, 1, right, 0)
    roles: Roles = (left.roles[0], right.roles[1])
    if all(roles) or left.is_positional or right.is_positional:
        raise Refusal("it multiplies tokens with tokens")
    made = AbstractTensor(roles, is_pooled=left.is_pooled or right.is_pooled)
    if node.input(2) is None:
        return made
    bias = state.tensor(node, 2)
    if not bias.is_constant:
        raise Refusal("its third operand depends on the sequence")
    return made


@PACKINGS.rule("Einsum")
def einsum(state: Interpretation, node: Node) -> AbstractTensor:
    """Einsum: over features, or over the keys of attention weights."""
    propagation = propagation_of(node)
    if isinstance(propagation, Skip):
        raise Refusal(str(propagation))
    operands = [state.tensor(node, slot) for slot in range(len(node.inputs))]
    terms = [labels or () for labels in propagation.inputs]
    result = propagation.outputs[0] or ()
    roles: dict[int, Role | None] = {}
    for labels, each in zip(terms, operands, strict=True):
        for label, role in zip(labels, each.roles, strict=True):
            if roles.setdefault(label, role) is not role:
                raise Refusal("it joins an axis of tokens with another one")
    for label in {label for label, role in roles.items() if role and label not in result}:
        users = [(labels, x) for labels, x in zip(terms, operands, strict=True) if label in labels]
        weighs = any(x.zeros is not None and labels[x.zeros] == label for labels, x in users)
        if roles[label] is not Role.TOKEN or not weighs or not all(x.has_batch for _, x in users):
            raise Refusal("it sums over the tokens of a row")
        if len(users) != 2:
            raise Refusal("it sums over the tokens of a row")
    made = tuple(roles[label] for label in result)
    is_pooled = are_pooled(operands, list(roles.values()))
    batch, parts = state.batch_axis(node.output, made)
    letters = tuple("".join(map(chr, labels)) for labels in (*terms, result))
    for slot, each in enumerate(operands):
        if each.is_positional and batch >= 0:
            if len(each.places(Role.TOKEN)) > 2:
                raise Refusal("it joins triples of positions with tokens")
            state.edits.append(TermEdit(node, slot, chr(result[batch]), letters, parts))
        elif each.is_positional and any(other.has_batch for other in operands):
            raise Refusal("it joins positions with a flattened batch")
    return AbstractTensor(made, is_pooled=is_pooled)


def _check_sum(left: AbstractTensor, one: int, right: AbstractTensor, other: int) -> None:
    """Check that a product sums over no tokens, but keys under attention weights."""
    roles = (left.roles[one], right.roles[other])
    if roles == (None, None):
        return
    weighs = left.zeros == one or right.zeros == other
    has_batch = left.has_batch and right.has_batch
    if roles != (Role.TOKEN, Role.TOKEN) or not weighs or not has_batch:
        raise Refusal("it sums over the tokens of a row")
