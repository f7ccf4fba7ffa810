"""Rules of operators that compute each element from the elements at the same index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tiered.extensions.packing.interpretation import PACKINGS, Interpretation
from tiered.extensions.packing.packed_values import (
    FLATTENED,
    AbstractTensor,
    AxisRole,
    PackedSizes,
    PackingRefusal,
    PositionEdit,
    Roles,
)
from tiered.graph import DataType, Node
from tiered.graph.queries.op_traits import BROADCASTING, UNARY
from tiered.graph.shape_inference.symbolic_dims import Size, add, multiply

_KEEPS_ZERO = frozenset({"Cast", "Identity", "Dropout"})

_HOLDS_NUMBERS = frozenset({DataType.INT32, DataType.INT64})
"""The dtypes that hold each number of a row or column."""


@PACKINGS.rule(*UNARY)
def unary(state: Interpretation, node: Node) -> AbstractTensor | tuple[AbstractTensor, ...]:
    """Elementwise operators of one tensor; other operands are the same in both runs."""
    value = node.input(0)
    found = state.facts.get(value) if value is not None else None
    keeps_numbers = not node.is_op("Cast") or node.attr("to") in _HOLDS_NUMBERS
    if isinstance(found, AbstractTensor) and found.is_row_number and node.is_op("Cast"):
        if not keeps_numbers:
            raise PackingRefusal("it computes with row numbers")
        return found
    x = state.tensor(node, 0)
    if node.is_op("Dropout") and node.input(2) is not None:
        raise PackingRefusal("a Dropout in training is random")
    for slot in range(1, len(node.inputs)):
        if not node.is_op("CastLike"):
            state.constant(node, slot, "second operand")
    made = x if node.op_type in _KEEPS_ZERO else x.plain()
    if not keeps_numbers:
        made = replace(x.plain(), zeros=x.zeros)
    return (made,) + (x.plain(),) * (len(node.outputs) - 1)


@PACKINGS.rule(*BROADCASTING)
def broadcasting(state: Interpretation, node: Node) -> AbstractTensor:
    """Elementwise operators of several tensors."""
    index = _index(state, node)
    if index is not None:
        return index
    operands = [state.tensor(node, slot) for slot in range(len(node.inputs))]
    made = joined(state, node, operands)
    check_fixed(node, operands, made.roles)
    return replace(made, zeros=_zeros(node, operands, len(made.roles)))


def joined(
    state: Interpretation, node: Node, operands: Sequence[AbstractTensor], extra: Roles = ()
) -> AbstractTensor:
    """Return the relation of operands that broadcast; positions become those of each token.

    Args:
        state: the interpretation.
        node: the node that joins its first operands.
        operands: their relations.
        extra: the roles of a target shape, which broadcasts too.

    Raises:
        Refusal: axes of different roles meet.
    """
    rank = max(len(extra), *(len(each.roles) for each in operands))
    roles: list[AxisRole | None] = [None] * rank
    for given in (*(each.roles for each in operands), extra):
        for axis, role in enumerate(given, rank - len(given)):
            if role is not None and roles[axis] not in (None, role):
                raise PackingRefusal("it joins an axis of tokens with another one")
            roles[axis] = role or roles[axis]
    return placed(state, node, operands, tuple(roles))


def placed(
    state: Interpretation, node: Node, operands: Sequence[AbstractTensor], roles: Roles
) -> AbstractTensor:
    """Return the relation of a result of several operands; positions become those of each token.

    Args:
        state: the interpretation.
        node: the node that joins its first operands.
        operands: their relations.
        roles: those of the result.

    Raises:
        Refusal: positions meet tokens in a flattened batch, or three axes of tokens.
    """
    rank, is_pooled = len(roles), are_pooled(operands, roles)
    for slot, each in enumerate(operands):
        if each.is_positional and FLATTENED.keys() & set(roles):
            raise PackingRefusal("it joins positions with a flattened batch")
        if len(each.places(AxisRole.TOKEN)) > 2 and each.is_positional:
            raise PackingRefusal("it joins triples of positions with tokens")
        if each.is_positional:
            batch, parts = state.batch_axis(node.output, roles)
            if batch >= 0:
                state.edits.append(PositionEdit(node, slot, rank, batch, parts))
    return AbstractTensor(roles, is_pooled=is_pooled)


def check_fixed(
    node: Node, operands: Sequence[AbstractTensor], roles: Sequence[AxisRole | None], last: int = 0
) -> None:
    """Check that no operand has a fixed number of tokens, as a table of all positions has.

    Args:
        node: the node that joins the operands.
        operands: their relations.
        roles: those of the result.
        last: how many last axes are not joined.

    Raises:
        Refusal: one has.
    """
    for slot, each in enumerate(operands):
        for place in range(len(roles) - len(each.roles), len(roles) - last):
            dim, role = node.given(slot).dim(place - len(roles)), each.roles[place - len(roles)]
            if roles[place] and role is None and isinstance(dim, int) and dim != 1:
                raise PackingRefusal(f"it joins an axis of tokens with one of {dim}")


def are_pooled(operands: Sequence[AbstractTensor], roles: Iterable[AxisRole | None]) -> bool:
    """Return whether operands have one row for each sequence.

    Raises:
        Refusal: some have, and others have tokens.
    """
    with_batch = [each for each in operands if each.has_batch]
    pooled = [each for each in with_batch if each.is_pooled]
    if pooled and (len(pooled) < len(with_batch) or {AxisRole.TOKEN, *FLATTENED} & set(roles)):
        raise PackingRefusal("it joins tokens with a value of whole sequences")
    return bool(pooled)


def _zeros(node: Node, operands: Sequence[AbstractTensor], rank: int) -> int | None:
    """Return the axis of keys of a result that is 0 where attention weights are 0, else None."""
    if not node.is_op("Where"):
        return None
    for slot, other in ((1, 2), (2, 1)):
        zeros, array = operands[slot].zeros, node.const(other)
        if zeros is not None and array is not None and not array.any():
            return zeros + rank - len(operands[slot].roles)
    return None


def _index(state: Interpretation, node: Node) -> AbstractTensor | None:
    """Return the relation of a sum or product of indices and sizes; None for other nodes."""
    if node.op_type not in ("Add", "Mul"):
        return None
    facts = [state.fact(value) for value in node.inputs if value is not None]
    indices = [fact for fact in facts if isinstance(fact, AbstractTensor) and fact.index]
    if not any(fact.is_row_number for fact in indices):
        return None
    if any(fact.chosen_by is not None for fact in indices):
        raise PackingRefusal("it computes with row numbers")
    rank = max(len(each.roles) for each in indices)
    roles: list[AxisRole | None] = [None] * rank
    factors: list[Size] = [0] * rank
    scale: Size = 1
    if node.is_op("Mul"):
        other = facts[1] if facts[0] is indices[0] else facts[0]
        number = _single(node, facts.index(other))
        if number is None or (isinstance(other, PackedSizes) and other.is_pooled):
            raise PackingRefusal("it computes with row numbers")
        scale = number
    elif len(indices) != 2:
        return _place_of_chosen(state, facts)
    for each in indices:
        assert each.index is not None
        for axis, (role, factor) in enumerate(
            zip(each.roles, each.index, strict=True), rank - len(each.roles)
        ):
            if role is not None and roles[axis] not in (None, role):
                raise PackingRefusal("it joins an axis of tokens with another one")
            roles[axis] = role or roles[axis]
            factors[axis] = add(factors[axis], multiply(factor, scale))
    return AbstractTensor(tuple(roles), index=tuple(factors), is_row_number=True)


def _place_of_chosen(state: Interpretation, facts: Sequence[object]) -> AbstractTensor:
    """Return the relation of row * length + the token that an ArgMax chooses.

    Raises:
        Refusal: it is another sum.
    """
    tensors = [fact for fact in facts if isinstance(fact, AbstractTensor)]
    chosen = [fact for fact in tensors if fact.chosen_by is not None]
    length = state.graph.model.dims.size(state.token)
    rows = [fact for fact in tensors if fact.index == (length,)]
    if not chosen or not rows:
        raise PackingRefusal("it computes with row numbers")
    return replace(rows[0], chosen_by=chosen[0].chosen_by)


def _single(node: Node, slot: int) -> Size | None:
    """Return the only element of a small operand; None if it is not known."""
    elements = node.given(slot).elements
    return elements.item() if elements is not None and elements.size == 1 else None
