"""Rules of indices: numbers of rows and columns, as exporters write `mask[rows, columns]`.

Such an index is the same expression in the packed run, so it is no position: it may be scaled and
added, repeated, and joined to pairs, and then only GatherND and Gather may read it.
"""

from __future__ import annotations

from dataclasses import replace

from tiered.extensions.packing.interpretation import PACKINGS, Interpretation
from tiered.extensions.packing.packed_values import (
    AbstractTensor,
    AxisRole,
    ChoiceEdit,
    PackingRefusal,
    Roles,
)
from tiered.graph import Node, Value
from tiered.graph.shape_inference.symbolic_dims import Size


def repeated_index(x: AbstractTensor, node: Node, roles: Roles) -> AbstractTensor | None:
    """Return the relation of an index that Expand repeats; None for other tensors.

    Args:
        x: the operand.
        node: the Expand.
        roles: the roles of all axes of its result.
    """
    if x.index is None or not (x.is_row_number or _is_for_gather_nd(node.output)):
        return None
    new: tuple[Size, ...] = (0,) * (len(roles) - len(x.roles))
    return AbstractTensor(roles, index=(*new, *x.index), is_row_number=True)


def _is_for_gather_nd(value: Value) -> bool:
    """Return whether an index is read by GatherND alone, as one of its columns."""
    for name in ("Unsqueeze", "Concat"):
        if len(value.readers) != 1 or not value.readers[0].is_op(name) or value.is_graph_output:
            return False
        value = value.readers[0].output
    readers = value.readers
    return bool(readers) and all(
        reader.is_op("GatherND") and reader.inputs[1] is value for reader in readers
    )


def joined_index(state: Interpretation, node: Node) -> AbstractTensor | None:
    """Return the relation of indices that Concat joins along the last axis; None for others."""
    facts = [state.fact(value) for value in node.inputs if value is not None]
    tensors = [fact for fact in facts if isinstance(fact, AbstractTensor)]
    if not any(fact.is_row_number for fact in tensors):
        return None
    first, rank = tensors[0], len(tensors[0].roles)
    is_last = node.attr("axis") % rank == rank - 1 and node.output.dim(-1) == len(facts)
    if len(tensors) < len(facts) or not is_last:
        raise PackingRefusal("it computes with row numbers")
    *rest, last = tensors
    if last.chosen_by is not None and last.roles == first.roles and len(rest) == 1:
        rows = () if first.index is None else (first.index,)
        return AbstractTensor(
            first.roles, is_row_number=True, columns=rows, chosen_by=last.chosen_by
        )
    if any(fact.index is None or fact.roles != first.roles for fact in tensors):
        raise PackingRefusal("it joins indices of different axes")
    columns = tuple(fact.index for fact in tensors if fact.index is not None)
    return AbstractTensor(first.roles, is_row_number=True, columns=columns)


@PACKINGS.rule("GatherND")
def gather_nd(state: Interpretation, node: Node) -> AbstractTensor:
    """GatherND of a value at each row and column."""
    x, fact = state.tensor(node, 0), state.fact(node.given(1))
    if not isinstance(fact, AbstractTensor) or fact.columns is None:
        raise PackingRefusal("it takes some of the tokens or rows")
    if node.attr("batch_dims", 0) or x.roles[:2] != (AxisRole.BATCH, AxisRole.TOKEN):
        raise PackingRefusal("it takes some of the tokens or rows")
    if fact.chosen_by is not None:
        if fact.columns != (_unit(fact, AxisRole.BATCH),) or fact.roles != (AxisRole.BATCH, None):
            raise PackingRefusal("it takes some of the tokens or rows")
        if len(x.roles) != 3 or x.roles[2]:
            raise PackingRefusal("it takes some of the tokens or rows")
        return chosen_tokens(state, node, fact)
    expected = [_unit(fact, role) for role in (AxisRole.BATCH, AxisRole.TOKEN)]
    if list(fact.columns) != expected:
        raise PackingRefusal("it takes some of the tokens or rows")
    return replace(x.plain(), roles=(*fact.roles[:-1], *x.roles[2:]))


def chosen_tokens(state: Interpretation, node: Node, fact: AbstractTensor) -> AbstractTensor:
    """Return the relation of the token of each sequence that an ArgMax chooses."""
    assert fact.chosen_by is not None
    state.edits.append(ChoiceEdit(node, fact.chosen_by))
    return AbstractTensor((AxisRole.BATCH, None), is_pooled=True)


@PACKINGS.rule("GatherElements")
def gather_elements(state: Interpretation, node: Node) -> AbstractTensor:
    """GatherElements along features: of each token, or of each pair, as relative positions do."""
    x, indices = state.tensor(node, 0), state.tensor(node, 1)
    axis = node.attr("axis", 0) % max(len(x.roles), 1)
    if x.roles[axis]:
        raise PackingRefusal("it takes some of the tokens or rows")
    others = [at for at in range(len(x.roles)) if at != axis]
    differ = any(x.roles[at] is not indices.roles[at] for at in others)
    if differ or x.is_pooled != indices.is_pooled:
        raise PackingRefusal("it takes other places for each token")
    return indices.plain()


def _unit(fact: AbstractTensor, role: AxisRole) -> tuple[Size, ...] | None:
    """Return the index that is the place along the only axis with a role."""
    places = fact.places(role)
    if len(places) != 1:
        return None
    return tuple(int(axis == places[0]) for axis in range(len(fact.roles)))
