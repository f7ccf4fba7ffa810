"""The rules of lists of what is found in the samples, as NonMaxSuppression makes them.

A list has the entries of the first sample, then those of the second one, and so on; each entry may
have the number of its sample, as the first index of each box that is selected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tiered.analysis.batching.following import BATCHES, LISTS, Following, Made
from tiered.analysis.batching.rules.small_operands import named_axes
from tiered.analysis.batching.sample_facts import (
    BatchRefusal,
    BatchRows,
    Columns,
    Fact,
    Listed,
    product,
)
from tiered.graph import DataType, Node
from tiered.graph.queries.op_traits import ELEMENTWISE
from tiered.graph.shape_inference.symbolic_dims import Size

_NUMBERS: Final = "it computes with the numbers of samples"
_PLACES: Final = "it takes other places for each sample"
_OTHER: Final = "its operands list what is found by several nodes"
_ALONG: Final = "it works along the list of what is found in all samples"


@BATCHES.rule("NonMaxSuppression")
def non_max_suppression(state: Following, node: Node) -> Fact:
    """NonMaxSuppression: the boxes of one sample after the other, by (sample, class, box)."""
    carried = state.in_rows(node)
    if carried.keys() - {0, 1}:
        raise BatchRefusal("its limits differ from sample to sample")
    if any(rows != BatchRows(0) for rows in carried.values()):
        raise BatchRefusal("its boxes and scores have the samples on another axis than the first")
    for slot in (0, 1):
        if slot not in carried:
            state.spread(node, slot, BatchRows(0))
    return Listed(0, node, Columns((1, 0, 0)))


def _data(state: Following, node: Node, slot: int = 0) -> Listed:
    fact = state.facts.get(node.inputs[slot])
    if not isinstance(fact, Listed):
        raise BatchRefusal("its index, and not its data, lists what is found")
    return fact


def _steps(state: Following, node: Node, listed: Listed, slot: int = 0) -> tuple[Size, ...]:
    """Return the steps of a list by the last index, which is none of the list itself."""
    if isinstance(listed.step, Columns):
        return listed.step.steps
    count = state.sizes(node.inputs[slot])[-1]
    if not isinstance(count, int):
        raise BatchRefusal("the size of its last axis is not known")
    return (listed.step,) * count


def _merged(steps: Sequence[Size]) -> Size | Columns:
    return steps[0] if len(set(steps)) == 1 else Columns(tuple(steps))


def _without(listed: Listed) -> Listed:
    """Return a list if each of its elements depends on one sample alone.

    Raises:
        Refusal: they count the samples.
    """
    if listed.step != 0:
        raise BatchRefusal(_NUMBERS)
    return listed


@LISTS.rule("Identity", "Cast")
def kept(state: Following, node: Node) -> Fact:
    """Identity, and Cast to numbers: those of the samples stay."""
    listed = _data(state, node)
    is_number = node.is_op("Identity") or node.attr("to") in _NUMERIC
    return listed if is_number else _without(listed)


_NUMERIC: Final = (DataType.FLOAT, DataType.DOUBLE, DataType.INT32, DataType.INT64)


@LISTS.rule("Gather")
def gather(state: Following, node: Node) -> Fact:
    """Gather of columns of a list, or of entries at the places that a list names."""
    value, rank = node.given(1), state.rank(node.inputs[0])
    axis = node.attr("axis") % rank
    if isinstance(state.facts.get(value), Listed):
        return _places(state, node, axis)
    state.shared(node, 1)
    listed, count = _data(state, node), state.rank(value)
    if axis == listed.axis:
        raise BatchRefusal(_ALONG)
    place = listed.axis if axis > listed.axis else listed.axis + count - 1
    index = state.elements(value)
    is_last = axis == rank - 1 and isinstance(listed.step, Columns)
    if is_last and count < 2 and index and all(isinstance(each, int) for each in index):
        steps = _steps(state, node, listed)
        chosen = [steps[int(str(each))] for each in index]
        return Listed(place, listed.source, _merged(chosen))
    return _without(listed)._replace(axis=place)


def _places(state: Following, node: Node, axis: int) -> Fact:
    index, data = _data(state, node, 1), state.rows(node, 0)
    if data is None:
        return _without(index)._replace(axis=axis + index.axis)
    if data != BatchRows(axis) or index.step != 1:
        raise BatchRefusal(_PLACES)
    return Listed(axis + index.axis, index.source)


@LISTS.rule("GatherND")
def gather_nd(state: Following, node: Node) -> Fact:
    """GatherND of entries at the places that a list names: the sample first."""
    index, data = _data(state, node, 1), state.rows(node, 0)
    if node.attr("batch_dims") or index.axis == state.rank(node.inputs[1]) - 1:
        raise BatchRefusal(_PLACES)
    if data is None:
        return _without(index)
    steps = _steps(state, node, index, 1)
    wanted = tuple([int(axis == data.axis) for axis in range(len(steps))])
    if not data.is_whole or steps != wanted:
        raise BatchRefusal(_PLACES)
    return Listed(index.axis, index.source)


@LISTS.rule("Slice")
def sliced(state: Following, node: Node) -> Fact:
    """Slice of columns of a list."""
    listed, rank = _data(state, node), state.rank(node.inputs[0])
    bounds = [_numbers(state, node, name) for name in ("starts", "ends", "axes", "steps")]
    starts, ends, axes, strides = bounds
    assert starts is not None
    assert ends is not None
    places = [axis % rank for axis in (range(len(starts)) if axes is None else axes)]
    if listed.axis in places:
        raise BatchRefusal(_ALONG)
    if rank - 1 not in places or not isinstance(listed.step, Columns):
        return listed
    at = places.index(rank - 1)
    place = slice(starts[at], ends[at], 1 if strides is None else strides[at])
    steps = listed.step.steps[place]
    if not steps or place.step < 0:
        raise BatchRefusal("it takes no columns, or takes them backwards")
    return listed._replace(step=_merged(steps))


def _numbers(state: Following, node: Node, name: str) -> list[int] | None:
    """Return a constant operand; None if there is none.

    Raises:
        Refusal: it is not constant.
    """
    value = node.operand(name)
    if value is None:
        return None
    found = state.elements(value)
    if found is None or not all(isinstance(each, int) for each in found):
        raise BatchRefusal(f"its {name} are not constant")
    return [int(str(each)) for each in found]


@LISTS.rule("Split")
def split(state: Following, node: Node) -> Made:
    """Split of columns of a list."""
    listed, rank = _data(state, node), state.rank(node.inputs[0])
    axis = node.attr("axis") % rank
    if axis == listed.axis:
        raise BatchRefusal(_ALONG)
    if axis != rank - 1 or not isinstance(listed.step, Columns):
        return listed
    made, start = list[Fact | None](), 0
    for value in node.outputs:
        count = None if value is None else state.sizes(value)[-1]
        if not isinstance(count, int) or not count:
            raise BatchRefusal("the sizes of its parts are not known")
        made.append(listed._replace(step=_merged(listed.step.steps[start : start + count])))
        start += count
    return made


@LISTS.rule("Squeeze", "Unsqueeze")
def with_another_rank(state: Following, node: Node) -> Fact:
    """Squeeze and Unsqueeze of other axes than that of the list."""
    listed, is_squeeze = _data(state, node), node.is_op("Squeeze")
    rank = state.rank(node.inputs[0] if is_squeeze else node.output)
    axes = named_axes(state, node, rank)
    if axes is None:
        axes = [axis % rank for axis in node.attr("axes", ())]
    kept = [axis for axis in range(rank) if axis not in axes]
    if is_squeeze and (not axes or listed.axis in axes):
        raise BatchRefusal(_ALONG)
    axis = kept.index(listed.axis) if is_squeeze else kept[listed.axis]
    return _viewed(state, node, listed, axis)


@LISTS.rule("Reshape")
def reshaped(state: Following, node: Node) -> Fact:
    """Reshape of the entries of a list along the first axis."""
    listed, target = _data(state, node), _numbers(state, node, "shape")
    before, after = state.sizes(node.inputs[0])[1:], state.sizes(node.output)[1:]
    entry, is_open = product(before), (target or [])[:1] in ([-1], [0])
    if listed.axis or not is_open or not isinstance(entry, int) or product(after) != entry:
        raise BatchRefusal("its target is not one of the entries of a list")
    return _viewed(state, node, listed, 0)


def _viewed(state: Following, node: Node, listed: Listed, axis: int) -> Fact:
    if isinstance(listed.step, Columns):
        # Several columns keep their steps only as the last axis.
        sizes = state.sizes(node.output)
        if axis == len(sizes) - 1 or sizes[-1] != len(listed.step.steps):
            raise BatchRefusal(_NUMBERS)
    return listed._replace(axis=axis)


@LISTS.rule("Concat")
def joined(state: Following, node: Node) -> Fact:
    """Concat of columns of lists of the same entries."""
    rank = state.rank(node.output)
    axis, facts = node.attr("axis") % rank, [_data(state, node, at) for at in _slots(node)]
    first = facts[0]
    if any((fact.axis, fact.source) != (first.axis, first.source) for fact in facts):
        raise BatchRefusal(_OTHER)
    if axis == first.axis:
        raise BatchRefusal(_ALONG)
    if axis != rank - 1:
        for fact in facts:
            _without(fact)
        return first
    steps = [step for at, fact in enumerate(facts) for step in _steps(state, node, fact, at)]
    return first._replace(step=_merged(steps))


def _slots(node: Node) -> range:
    return range(len(node.inputs))


@LISTS.rule(*(ELEMENTWISE - {"Cast", "Identity"}))
def elementwise(state: Following, node: Node) -> Fact:
    """Elementwise operators on entries of one list, and on what all entries share."""
    rank, found = state.rank(node.output), list[Listed]()
    for value in node.inputs:
        fact = state.facts.get(value)
        if isinstance(fact, Listed):
            found.append(_without(fact)._replace(axis=fact.axis + rank - state.rank(value)))
        elif fact is not None:
            raise BatchRefusal("its operands have samples, and a list of what is found in them")
    first = found[0]
    if any(each != first for each in found):
        raise BatchRefusal(_OTHER)
    for value in node.reads:
        at = first.axis - rank + state.rank(value)
        if value in state.facts or at < 0:
            continue
        if state.sizes(value)[at] != 1:
            raise BatchRefusal(f"{value.name!r} has an element for each entry of the list")
    return first
