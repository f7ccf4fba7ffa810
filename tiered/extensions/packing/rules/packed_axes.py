"""Rules of operators that move, add, take or remove axes, and of those that make positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from tiered.analysis.axes.axis_map import Axes, Labels
from tiered.extensions.packing.interpretation import PACKINGS, Interpretation
from tiered.extensions.packing.packed_values import (
    FLATTENED,
    AbstractTensor,
    AxisRole,
    PackedSizes,
    PackingRefusal,
    PoolEdit,
    Roles,
    constant_tensor,
)
from tiered.extensions.packing.rules.mapped import known_map, mapped
from tiered.extensions.packing.rules.packed_elements import joined
from tiered.extensions.packing.rules.packed_indices import (
    chosen_tokens,
    joined_index,
    repeated_index,
)
from tiered.graph import Node, Value
from tiered.graph.shape_inference.symbolic_dims import Size

_END: Final = np.iinfo(np.int32).max
"""Exporters write this end of a Slice, or a larger one, for "all"."""


@PACKINGS.rule("Transpose")
def transpose(state: Interpretation, node: Node) -> AbstractTensor:
    x, perm = state.tensor(node, 0), node.perm
    if perm is None:
        raise PackingRefusal("its order of axes is not known")
    return _moved(x, perm)


def _moved(x: AbstractTensor, sources: Sequence[int | None]) -> AbstractTensor:
    """Return the relation of a tensor with the axes `sources` of another; None is a new axis."""
    roles = tuple(None if axis is None else x.roles[axis] for axis in sources)
    zeros = None if x.zeros is None else sources.index(x.zeros)
    index: tuple[Size, ...] | None = None
    if x.index is not None:
        index = tuple(0 if axis is None else x.index[axis] for axis in sources)
    return replace(x, roles=roles, zeros=zeros, index=index)


@PACKINGS.rule("Flatten", "Reshape", "Squeeze", "Unsqueeze")
def reshaping(state: Interpretation, node: Node) -> AbstractTensor:
    """Reshape, Flatten, Squeeze and Unsqueeze: axes with a role stay whole."""
    value = node.given(0)
    x = state.fact(value)
    assert isinstance(x, AbstractTensor)
    _check_target(state, node, x)
    if x.is_constant:
        return constant_tensor(node.output.rank)
    axes = known_map(node)
    before, after = axes.inputs[0] or (), axes.outputs[0] or ()
    for group in axes.groups:
        if any(x.roles[before.index(label)] for label in group[0]):
            return _regrouped(state, node, x, (before, after), group)
    pairs = zip(before, x.roles, strict=True)
    if any(role and _place(after, label) is None for label, role in pairs):
        raise PackingRefusal("it removes an axis of tokens")
    return _moved(x, [_place(before, label) for label in after])


def _place(axes: Axes, label: int | None) -> int | None:
    """Return the axis with an iterator; None if there is none."""
    return None if label is None or label not in axes else axes.index(label)


def _check_target(state: Interpretation, node: Node, x: AbstractTensor) -> None:
    """Check that sizes in a target shape are those of the same batch."""
    shape = node.input(1)
    fact = None if shape is None else state.fact(shape)
    if isinstance(fact, AbstractTensor) and not fact.is_constant:
        raise PackingRefusal("its target depends on the sequence")
    if isinstance(fact, PackedSizes) and fact.is_pooled != x.is_pooled:
        raise PackingRefusal("it reshapes a value of whole sequences by the sizes of rows")


def _regrouped(
    state: Interpretation,
    node: Node,
    x: AbstractTensor,
    labels: tuple[Axes, Axes],
    group: tuple[Labels, Labels],
) -> AbstractTensor:
    """Return the relation after batch and tokens became one axis, or one axis became both."""
    before, after = labels
    axes = [before.index(label) for label in group[0]]
    roles = [x.roles[axis] for axis in axes]
    made: Roles
    joined_axes = next((role for role, pair in FLATTENED.items() if roles == [*pair]), None)
    if joined_axes is not None and len(group[1]) == 1:
        made = (joined_axes,)
    elif roles[0] in (AxisRole.BATCH, AxisRole.HEADS) and not any(roles[1:]):
        # Heads are after their row in one axis, and axes after the batch have none.
        dims = [node.output.dim(after.index(label)) for label in group[1]]
        first = state.role_of(dims[0])
        is_part = first in (AxisRole.BATCH, AxisRole.HEADS) and not any(
            map(state.mentions, dims[1:])
        )
        made = (first, *(None,) * (len(dims) - 1)) if is_part else ()
    elif roles[0] in FLATTENED and len(roles) == 1 and len(group[1]) == 2:
        dims = [node.output.dim(after.index(label)) for label in group[1]]
        made = tuple(state.role_of(dim) for dim in dims)
        made = made if made == FLATTENED[roles[0]] else ()
    else:
        made = ()
    rest = [role for axis, role in enumerate(x.roles) if axis not in axes]
    is_of_heads = made[:1] in ((AxisRole.BATCH,), (AxisRole.HEADS,)) and not any(made[1:])
    if not made or (any(rest) and not is_of_heads) or x.is_row_number:
        raise PackingRefusal("it splits or merges an axis of tokens")
    places = [_place(before, label) for label in after]
    result = [None if place is None else x.roles[place] for place in places]
    for label, role in zip(group[1], made, strict=True):
        result[after.index(label)] = role
    zeros = None if x.zeros is None else _place(after, before[x.zeros])
    return AbstractTensor(tuple(result), zeros, is_pooled=x.is_pooled)


@PACKINGS.rule("Expand")
def expand(state: Interpretation, node: Node) -> AbstractTensor:
    source = node.given(0)
    x = state.fact(source)
    if not isinstance(x, AbstractTensor):
        raise PackingRefusal("it repeats a size")
    _check_target(state, node, x)
    shape = node.output.shape
    if shape is None:
        raise PackingRefusal("the shape of its result is unknown")
    rank, own = len(shape), len(x.roles)
    repeated = [axis for axis in range(rank) if axis < rank - own or source.dim(axis - rank) == 1]
    extra = tuple(state.role_of(shape[axis]) if axis in repeated else None for axis in range(rank))
    kept = (*(None,) * (rank - own), *x.roles)
    index = repeated_index(x, node, tuple(one or two for one, two in zip(kept, extra, strict=True)))
    if index is not None:
        return index
    x = state.tensor(node, 0)
    if x.is_pooled:
        return replace(joined(state, node, [x], (None,) * rank), is_pooled=True)
    return joined(state, node, [x], extra)


@PACKINGS.rule("Tile")
def tile(state: Interpretation, node: Node) -> AbstractTensor:
    """Tile: of axes that have no role, as often as there are rows or tokens."""
    x, repeats, shape = state.tensor(node, 0), _elements(node.given(1)), node.output.shape
    if repeats is None or shape is None:
        raise PackingRefusal("how often it repeats each axis is not known")
    _check_target(state, node, x)
    extra: list[AxisRole | None] = []
    for repeat, role, dim in zip(repeats, x.roles, shape, strict=True):
        if repeat != 1 and role is not None:
            raise PackingRefusal("it repeats tokens or rows")
        found = state.role_of(dim) if state.mentions(repeat) else None
        if found in (AxisRole.BATCH, AxisRole.HEADS) and x.is_positional:
            raise PackingRefusal("it repeats positions for each row")
        extra.append(found)
    made = joined(state, node, [x], tuple(extra))
    return replace(made, is_pooled=x.is_pooled)


@PACKINGS.rule("ConstantOfShape")
def fill(state: Interpretation, node: Node) -> AbstractTensor:
    """ConstantOfShape: all elements are equal."""
    shape, fact = node.output.shape, state.fact(node.given(0))
    if shape is None or (isinstance(fact, PackedSizes) and fact.is_pooled):
        raise PackingRefusal("the shape of its result is unknown")
    return AbstractTensor(tuple(state.role_of(dim) for dim in shape))


@PACKINGS.rule("Concat")
def concat(state: Interpretation, node: Node) -> AbstractTensor | tuple[AbstractTensor, ...]:
    index = joined_index(state, node)
    if index is not None:
        return index
    return mapped(state, node, why="it appends to an axis of tokens")


@PACKINGS.rule("Split")
def split(state: Interpretation, node: Node) -> tuple[AbstractTensor, ...]:
    return mapped(state, node, why="it splits an axis of tokens")


# --- parts of a tensor ----------------------------------------------------------------------------


@PACKINGS.rule("Gather")
def gather(state: Interpretation, node: Node) -> AbstractTensor:
    x = state.tensor(node, 0)
    indices = node.given(1)
    fact = state.fact(indices)
    if not isinstance(fact, AbstractTensor):
        raise PackingRefusal("it takes places that depend on sizes")
    axis = node.attr("axis", 0) % max(len(x.roles), 1)
    role = x.roles[axis]
    before, after = x.roles[:axis], x.roles[axis + 1 :]
    if role is None and not fact.is_row_number:
        if not fact.is_constant and not x.is_constant:
            raise PackingRefusal("it takes other places for each token")
        is_pooled = x.is_pooled or fact.is_pooled
        return AbstractTensor((*before, *fact.roles, *after), is_pooled=is_pooled)
    if role is AxisRole.FLAT and fact.chosen_by is not None and x.roles == (AxisRole.FLAT, None):
        return chosen_tokens(state, node, fact)
    if role is AxisRole.FLAT and _is_row_major(state, fact) and not any((*before, *after)):
        return AbstractTensor((*before, *fact.roles, *after))
    if role is AxisRole.TOKEN and fact.is_constant:
        array = indices.const
        if array is None or array.size != 1 or array.ndim > 1 or array.any():
            raise PackingRefusal("it takes another token than the first of a sequence")
        return pooled(state, node, x, axis, kept=array.ndim)
    raise PackingRefusal("it takes some of the tokens or rows")


def _is_row_major(state: Interpretation, index: AbstractTensor) -> bool:
    """Return whether an index is row * length + position, each along its own axis."""
    if index.index is None:
        return False
    length = state.graph.model.dims.size(state.token)
    named = [(role, factor) for role, factor in zip(index.roles, index.index, strict=True) if role]
    return sorted((role.value, str(factor)) for role, factor in named) == [
        (AxisRole.BATCH.value, str(length)),
        (AxisRole.TOKEN.value, "1"),
    ]


def pooled(
    state: Interpretation, node: Node, x: AbstractTensor, axis: int, *, kept: int
) -> AbstractTensor:
    """Return the relation of what a node takes of whole sequences, and note the edit.

    Args:
        state: the interpretation.
        node: the node that removes the axis of tokens.
        x: its operand.
        axis: the axis of tokens.
        kept: how many axes of size 1 take the place of the axis.
    """
    roles = (*x.roles[:axis], *(None,) * kept, *x.roles[axis + 1 :])
    if x.is_positional:
        if AxisRole.TOKEN in roles or not (node.is_op("Gather") or node.is_op("Slice")):
            raise PackingRefusal("it combines positions")
        return AbstractTensor(roles)
    if x.places(AxisRole.TOKEN) != (axis,) or len(x.places(AxisRole.BATCH)) != 1:
        raise PackingRefusal("it takes a part of pairs of tokens")
    state.edits.append(PoolEdit(node))
    return AbstractTensor(roles, is_pooled=True)


@PACKINGS.rule("Slice")
def slices(state: Interpretation, node: Node) -> AbstractTensor:
    x = state.fact(node.given(0))
    if not isinstance(x, AbstractTensor):
        raise PackingRefusal("it takes a part of sizes")
    parts = _slice_parts(node, len(x.roles))
    if all(start == 0 and step == 1 and _is_end(end) for _, start, end, step in parts):
        return x
    x = state.tensor(node, 0)
    roles = list(x.roles)
    taken: int | None = None
    for axis, start, end, step in parts:
        is_all = start == 0 and step == 1 and (end == _length(state) or _is_end(end))
        if roles[axis] is AxisRole.TOKEN and (start, end, step) == (0, 1, 1):
            taken = axis
        elif roles[axis] is not None:
            if not (roles[axis] is AxisRole.TOKEN and is_all):
                raise PackingRefusal("it takes some of the tokens or rows")
        elif any(map(state.mentions, (start, end, step))):
            if not (x.is_constant or x.is_positional) or start != 0 or step != 1:
                raise PackingRefusal("it takes some of the tokens or rows")
            if end != _length(state):
                raise PackingRefusal("it takes positions up to an unknown one")
            roles[axis] = AxisRole.TOKEN
    if taken is None:
        return replace(x.plain(), roles=tuple(roles))
    if len(parts) > 1:
        raise PackingRefusal("it takes the first token and other parts at once")
    state.ones.add(node.output.dim(taken))
    return pooled(state, node, x, taken, kept=1)


def _length(state: Interpretation) -> Size | None:
    return state.graph.model.dims.size(state.token)


def _is_end(end: Size) -> bool:
    return isinstance(end, int) and end >= _END


def _slice_parts(node: Node, rank: int) -> list[tuple[int, Size, Size, Size]]:
    """Return (axis, start, end, step) of each sliced axis."""
    starts, ends = (_elements(node.operand(name)) for name in ("starts", "ends"))
    if starts is None or ends is None:
        raise PackingRefusal("its bounds are not known")
    given = [node.operand(name) for name in ("axes", "steps")]
    axes = list(range(len(starts))) if given[0] is None else _elements(given[0])
    steps = [1] * len(starts) if given[1] is None else _elements(given[1])
    if axes is None or steps is None or not all(isinstance(axis, int) for axis in axes):
        raise PackingRefusal("its axes are not known")
    places = [int(str(axis)) % rank for axis in axes]
    return list(zip(places, starts, ends, steps, strict=True))


def _elements(value: Value | None) -> list[Size] | None:
    """Return all elements of a small integer tensor; None if one is not known."""
    elements = None if value is None else value.elements
    if elements is None or any(element is None for element in elements.ravel()):
        return None
    return [element if not isinstance(element, np.integer) else int(element)
            for element in elements.ravel()]  # fmt: skip


# --- positions ------------------------------------------------------------------------------------


@PACKINGS.rule("Range")
def number_range(state: Interpretation, node: Node) -> AbstractTensor:
    """Range: positions up to the length of sequences, or the numbers of rows."""
    state.constant(node, 0, "start")
    state.constant(node, 2, "step")
    role, fact = state.role_of(node.output.dim(0)), state.fact(node.given(1))
    if role is None and isinstance(fact, AbstractTensor) and fact.is_constant:
        return AbstractTensor((None,))
    is_index = node.given(0).number == 0 and node.given(2).number == 1
    if role is AxisRole.TOKEN:
        return AbstractTensor((role,), index=(1,) if is_index else None)
    if role is AxisRole.BATCH and is_index and fact == PackedSizes(False):
        return AbstractTensor((role,), index=(1,), is_row_number=True)
    raise PackingRefusal("it counts something else than tokens or rows")
