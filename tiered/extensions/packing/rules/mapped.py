"""The rule that is derived from axis maps: the role of an axis goes along its iterator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tiered.analysis.axes.axis_map import Axes, AxisMap, IteratorKind
from tiered.analysis.axes.rules import axis_map
from tiered.extensions.packing.interpretation import Interpretation
from tiered.extensions.packing.packed_values import (
    AbstractTensor,
    AxisRole,
    PackingRefusal,
    Roles,
    constant_tensor,
)
from tiered.extensions.packing.rules.packed_elements import are_pooled
from tiered.graph import Node
from tiered.rewriter import Skip

_COMBINES = "it combines the tokens of a row"


def mapped(
    state: Interpretation, node: Node, *, why: str = _COMBINES
) -> tuple[AbstractTensor, ...]:
    """Relate a node whose tokens stay apart: the iterator of an axis with a role is parallel.

    Args:
        state: the interpretation.
        node: the node.
        why: the reason to refuse it where tokens do not stay apart.

    Raises:
        Refusal: they do not, or operands of different roles meet.
    """
    axes = known_map(node)
    operands = [_operand(state, node, slot, own) for slot, own in enumerate(axes.inputs)]
    roles = roles_of(node, axes, operands)
    if any(axes.kind(label) is not IteratorKind.PARALLEL for label in roles):
        raise PackingRefusal(why)
    if len({each.has_batch for each in operands if not each.is_constant}) > 1:
        raise PackingRefusal("it joins positions with tokens")
    is_pooled = are_pooled(operands, roles.values())
    made: list[AbstractTensor] = []
    for value, own in zip(node.outputs, axes.outputs, strict=True):
        if own is None and value is not None and roles:
            raise PackingRefusal(
                f"how its output {value.name!r} depends on the tokens is not known"
            )
        made.append(
            constant_tensor(None if value is None else value.rank)
            if own is None
            else AbstractTensor(result_roles(own, roles), is_pooled=is_pooled)
        )
    return tuple(made)


def known_map(node: Node) -> AxisMap:
    """Return the axis map of a node.

    Raises:
        Refusal: there is none.
    """
    axes = axis_map(node)
    if isinstance(axes, Skip):
        raise PackingRefusal(str(axes))
    return axes


def _operand(state: Interpretation, node: Node, slot: int, own: Axes | None) -> AbstractTensor:
    """Return the relation of an operand; one without iterators must be the same in both runs."""
    if own is not None and node.input(slot) is not None:
        return state.tensor(node, slot)
    state.constant(node, slot, "second operand")
    return AbstractTensor(())


def roles_of(node: Node, axes: AxisMap, operands: Sequence[AbstractTensor]) -> dict[int, AxisRole]:
    """Return the role of each iterator that has one.

    Raises:
        Refusal: axes of different roles meet, or one of tokens and one of a fixed size.
    """
    found: dict[int, AxisRole] = {}
    for own, each in zip(axes.inputs, operands, strict=False):
        for label, role in zip(own or (), each.roles, strict=False):
            if role is None:
                continue
            if label is None:
                raise PackingRefusal("it removes an axis of tokens")
            if found.setdefault(label, role) is not role:
                raise PackingRefusal("it joins an axis of tokens with another one")
    for slot, (value, own, each) in enumerate(
        zip(node.inputs, axes.inputs, operands, strict=False)
    ):
        if value is None or own is None or each.is_pooled:
            continue
        for axis, (label, role) in enumerate(zip(own, each.roles, strict=True)):
            dim = value.dim(axis)
            if label in found and role is None and dim != 1:
                if slot not in axes.broadcasts:
                    raise PackingRefusal("it joins an axis of tokens with another one")
                if isinstance(dim, int):
                    raise PackingRefusal(f"it joins an axis of tokens with one of {dim}")
    return found


def result_roles(own: Axes, roles: Mapping[int, AxisRole]) -> Roles:
    """Return the roles of the axes of a result."""
    return tuple(None if label is None else roles.get(label) for label in own)
