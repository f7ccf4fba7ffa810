"""Rules of operators that combine elements along axes: products, norms, reductions, Softmax."""

from __future__ import annotations

from collections.abc import Sequence

from tiered.analysis.axes.axis_map import AxisMap
from tiered.analysis.axes.axis_reading import reduced_axes, terms_of
from tiered.extensions.packing.interpretation import PACKINGS, Interpretation
from tiered.extensions.packing.packed_values import (
    AbstractTensor,
    AxisRole,
    MaskEdit,
    PackingRefusal,
    Roles,
    SumEdit,
    TermEdit,
)
from tiered.extensions.packing.rules.mapped import known_map, mapped, result_roles, roles_of
from tiered.extensions.packing.rules.packed_axes import pooled
from tiered.extensions.packing.rules.packed_elements import are_pooled, placed
from tiered.graph import Node
from tiered.graph.queries.op_traits import SOFTMAXES
from tiered.rewriter import Skip


@PACKINGS.rule(*SOFTMAXES)
def softmax(state: Interpretation, node: Node) -> AbstractTensor:
    """Softmax over features, or over the keys of an attention, which it masks."""
    x, axes = state.tensor(node, 0), known_map(node)
    combined = [at for at, label in enumerate(axes.outputs[0] or ()) if not axes.is_parallel(label)]
    if not any(x.roles[axis] for axis in combined):
        return x.plain()
    if len(combined) > 1:
        raise PackingRefusal("it normalizes over several axes at once")
    (axis,) = combined
    queries = [place for place in x.places(AxisRole.TOKEN) if place != axis]
    batch, parts = state.batch_axis(node.input(0), x.roles)
    if x.roles[axis] is not AxisRole.TOKEN or len(queries) != 1 or batch < 0:
        raise PackingRefusal("it normalizes over the tokens of a row")
    if not node.is_op("Softmax"):
        raise PackingRefusal("it normalizes over keys, and its result for other sequences is not 0")
    if batch > min(axis, queries[0]):
        raise PackingRefusal("the batch is not the first axis of its scores")
    state.edits.append(MaskEdit(node, parts))
    return AbstractTensor(x.roles, zeros=axis)


@PACKINGS.rule("CumSum")
def cumulative(state: Interpretation, node: Node) -> tuple[AbstractTensor, ...]:
    """CumSum of integers over tokens, or along an axis that has no role."""
    x = state.tensor(node, 0)
    number = node.given(1).number
    axis = None if number is None else int(number) % max(len(x.roles), 1)
    if axis is None or not x.roles or x.roles[axis] is not AxisRole.TOKEN:
        return mapped(state, node)
    return (_running_sum(state, node, x),)


def _running_sum(state: Interpretation, node: Node, x: AbstractTensor) -> AbstractTensor:
    """Return the relation of a sum over the tokens before each, as of numbers of positions."""
    if node.attr("reverse", 0):
        raise PackingRefusal("it sums from the last token on")
    if x.is_positional and len(x.places(AxisRole.TOKEN)) == 1:
        return x.plain()
    if node.given(0).is_float:
        # The sums of earlier sequences would be subtracted again, which rounds.
        raise PackingRefusal("it sums floats over the tokens of a row")
    if x.places(AxisRole.BATCH) != (0,) or x.places(AxisRole.TOKEN) != (1,):
        raise PackingRefusal("it combines the tokens of a row")
    state.edits.append(SumEdit(node))
    return x.plain()


@PACKINGS.rule("ArgMax", "ReduceMean", "ReduceSum")
def reduction(state: Interpretation, node: Node) -> AbstractTensor | tuple[AbstractTensor, ...]:
    """Sums and means over the tokens become those of each sequence; so do places of maxima."""
    x = state.tensor(node, 0)
    axes = reduced_axes(node, len(x.roles))
    if isinstance(axes, Skip):
        raise PackingRefusal(str(axes))
    if not any(x.roles[axis] for axis in axes):
        return mapped(state, node)
    keeps = bool(node.attr("keepdims", True))
    if node.is_op("ArgMax") and x.roles == (AxisRole.BATCH, AxisRole.TOKEN) and not keeps:
        return _chosen(node, list(axes))
    if node.is_op("ArgMax") or len(axes) != 1:
        raise PackingRefusal("it combines the tokens of a row")
    if x.roles[axes[0]] is not AxisRole.TOKEN:
        raise PackingRefusal("it combines the rows of the batch")
    if node.is_op("ReduceMean") and not node.given(0).is_float:
        raise PackingRefusal("it takes the mean of integers")
    return pooled(state, node, x, axes[0], kept=int(keeps))


def _chosen(node: Node, axes: list[int]) -> AbstractTensor:
    """Return the index of the token of each row that an ArgMax chooses."""
    if axes != [1]:
        raise PackingRefusal("it combines the rows of the batch")
    if node.given(0).is_float:
        raise PackingRefusal("it takes the largest of floats, which may be NaN")
    return AbstractTensor((AxisRole.BATCH,), is_row_number=True, chosen_by=node)


# --- products -------------------------------------------------------------------------------------


@PACKINGS.rule("Einsum", "Gemm", "MatMul")
def product(state: Interpretation, node: Node) -> AbstractTensor:
    """MatMul, Gemm, Einsum: over features, or over the keys of attention weights."""
    if node.is_op("Einsum") and terms_of(node) is None:
        raise PackingRefusal("its equation has an ellipsis, or a letter twice in its result")
    axes = known_map(node)
    operands = [state.tensor(node, at) for at, value in enumerate(node.inputs) if value is not None]
    roles = roles_of(node, axes, operands)
    for label in roles:
        if not axes.is_parallel(label):
            _check_sum(axes, operands, label)
    made = result_roles(axes.outputs[0] or (), roles)
    if node.is_op("Einsum"):
        return _terms(state, node, operands, made)
    are_vectors = min(len(each.roles) for each in operands[:2]) < 2
    if any(each.is_positional for each in operands) and (node.is_op("Gemm") or are_vectors):
        raise PackingRefusal("it multiplies positions as vectors, or without a batch")
    if node.is_op("Gemm") and all(made):
        raise PackingRefusal("it multiplies tokens with tokens")
    return placed(state, node, operands, made)


def _check_sum(axes: AxisMap, operands: Sequence[AbstractTensor], label: int) -> None:
    """Check that a product sums over no tokens, but keys under attention weights."""
    users = [
        (own, each)
        for own, each in zip(axes.inputs, operands, strict=False)
        if own is not None and label in own
    ]
    weighs = any(each.zeros is not None and own[each.zeros] == label for own, each in users)
    has_batch = all(each.has_batch for _, each in users)
    if not weighs or not has_batch or len(users) != 2:
        raise PackingRefusal("it sums over the tokens of a row")


def _terms(
    state: Interpretation, node: Node, operands: Sequence[AbstractTensor], made: Roles
) -> AbstractTensor:
    """Return the relation of an Einsum; terms of positions get the letter of the rows."""
    found = terms_of(node)
    assert found is not None
    terms, result = found
    roles = [role for each in operands for role in each.roles]
    is_pooled = are_pooled(operands, roles)
    batch, parts = state.batch_axis(node.output, made)
    for slot, each in enumerate(operands):
        if each.is_positional and batch >= 0:
            if len(each.places(AxisRole.TOKEN)) > 2:
                raise PackingRefusal("it joins triples of positions with tokens")
            state.edits.append(TermEdit(node, slot, result[batch], (*terms, result), parts))
        elif each.is_positional and any(other.has_batch for other in operands):
            raise PackingRefusal("it joins positions with a flattened batch")
    return AbstractTensor(made, is_pooled=is_pooled)
