"""Collect the constraints on the values of each input: index of a table, mask, size, ...

Each input is followed forward through the operators that pass values on (Cast, Unsqueeze, Concat,
Add of a constant, ...) and into the bodies of If, Loop and Scan, to the operators that restrict
what the values may be (`demands`). Local functions are inlined before, where they are not too big.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tiered.graph.queries.op_traits import COMPARISONS
from tiered.runtime.inputs.graph_facts import Fact, InputDependence, numbers_of
from tiered.runtime.inputs.rules.value_demands import demands

if TYPE_CHECKING:
    from tiered.graph import Graph, Node, Use, Value

_MAX_STEPS = 3000  # values visited for one input; later constraints are not found

_FIRST_INPUT = (
    "Abs, Cast, CastLike, Clip, Compress, ConcatFromSequence, CumSum, DepthToSpace, Dropout, "
    "Expand, Flatten, Gather, GatherElements, GatherND, Identity, Mod, Not, Optional, "
    "OptionalGetElement, Pad, ReduceMax, ReduceMin, Reshape, ReverseSequence, SequenceAt, Slice, "
    "SpaceToDepth, Split, SplitToSequence, Squeeze, Tile, Transpose, Trilu, Unsqueeze"
)
_ALL_INPUTS = "And, Concat, Max, Min, Or, SequenceConstruct, Sum, Xor"
# Operators that pass on the values of these input slots, perhaps rearranged; None is every slot.
_CARRIES: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(_FIRST_INPUT.split(", "), (0,)),
    **dict.fromkeys(_ALL_INPUTS.split(", ")),
    **dict.fromkeys(("ScatterElements", "ScatterND", "Scatter"), (0, 2)),
    "Where": (1, 2),
    "SequenceInsert": (0, 1),
}
_COMPARES = frozenset(COMPARISONS)


def facts(graph: Graph, name: str, *, is_float: bool) -> list[Fact]:
    """Return the constraints on the values of input `name`, in the order of the visit."""
    first = graph.value(name)
    found: dict[Fact, None] = {}
    seen: set[Value] = set()
    todo = deque([] if first is None else [InputDependence(first)])
    while todo and len(seen) < _MAX_STEPS:
        place = todo.popleft()
        if place.value in seen:
            continue
        seen.add(place.value)
        for node, slot in _uses(place.value):
            found.update(dict.fromkeys(demands(place, node, slot, direct=place.value is first)))
            todo.extend(_carried(place, node, slot, is_float))
        todo.extend(replace(place, value=value) for value in _returned(place.value))
    return list(found)


def _uses(value: Value) -> list[Use]:
    """Return every use of a value: first those in its graph, then those in bodies below."""
    return sorted(value.users, key=lambda use: use.node.graph is not value.graph)


def _returned(value: Value) -> Iterator[Value]:
    """Yield where a body's result goes: an output of its node, and the next iteration's input."""
    for graph in value.output_of:
        owner = graph.parent_node
        if owner is None:
            continue
        # A Loop's first result is its condition, which does not come out.
        first = 1 if owner.op_type == "Loop" else 0
        for index, output in enumerate(graph.outputs):
            if output is not value or index < first:
                continue
            if first and index + 1 < len(graph.inputs):
                yield graph.inputs[index + 1]
            result = owner.outputs[index - first] if index - first < len(owner.outputs) else None
            if result is not None:
                yield result


def _carried(
    place: InputDependence, node: Node, slot: int, is_float: bool
) -> Iterator[InputDependence]:
    """Yield the outputs and body inputs that carry an operand's values."""
    for body in node.bodies:
        if slot < len(body.inputs):
            yield replace(place, value=body.inputs[slot])
    after = _after(place, node, slot, is_float)
    if after is not None:
        yield from (replace(after, value=output) for output in node.outputs if output is not None)


def _after(place: InputDependence, node: Node, slot: int, is_float: bool) -> InputDependence | None:
    """Return the output of a node, None where its values are no longer the input's."""
    kind = node.op_type
    if node.domain:
        return None
    if kind in _CARRIES:
        slots = _CARRIES[kind]
        if slots is not None and slot not in slots:
            return None
        return replace(place, counted=True) if kind == "CumSum" else place
    if kind in _COMPARES:
        return replace(place, compared=True)
    if kind not in ("Add", "Sub", "Mul", "Neg"):
        return None
    if kind == "Neg":
        return replace(place, scale=-place.scale, offset=-place.offset)
    constant = numbers_of(node.input(1 - slot)) if len(node.inputs) == 2 else None
    if constant is None or constant.size != 1 or constant.dtype.kind not in "iuf":
        # A float that meets another is data from here on; an integer is still worth following.
        return None if is_float else replace(place, exact=False)
    return _affine(place, kind, slot, float(constant.ravel()[0]))


def _affine(place: InputDependence, kind: str, slot: int, c: float) -> InputDependence:
    if kind == "Mul":
        return replace(place, scale=place.scale * c, offset=place.offset * c)
    if kind == "Add":
        return replace(place, offset=place.offset + c)
    if slot == 0:
        return replace(place, offset=place.offset - c)
    return replace(place, scale=-place.scale, offset=c - place.offset)
