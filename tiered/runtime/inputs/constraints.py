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

from tiered.runtime.inputs.graph_facts import Fact, Place, Scope
from tiered.runtime.inputs.rules.operators import demands

if TYPE_CHECKING:
    import onnx

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
_COMPARES = frozenset({"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"})


def facts(scope: Scope, name: str, *, is_float: bool) -> list[Fact]:
    """Return the constraints on the values of input `name`, in the order of the visit."""
    found: dict[Fact, None] = {}
    seen: set[tuple[int, str]] = set()
    todo = deque([Place(scope, name)])
    while todo and len(seen) < _MAX_STEPS:
        place = todo.popleft()
        if (id(place.scope), place.name) in seen:
            continue
        seen.add((id(place.scope), place.name))
        for user, node, slot in _uses(place):
            here = replace(place, scope=user)
            found.update(dict.fromkeys(demands(here, node, slot, direct=place.name == name)))
            todo.extend(_carried(here, node, slot, is_float))
        todo.extend(_returned(place))
    return list(found)


def _uses(place: Place) -> Iterator[tuple[Scope, onnx.NodeProto, int]]:
    """Yield every use of a value, in its graph and in the bodies that capture it."""
    scopes = [place.scope]
    while scopes:
        scope = scopes.pop()
        for node, slot in scope.users.get(place.name, ()):
            yield scope, node, slot
        scopes.extend(scope.capturers.get(place.name, ()))


def _returned(place: Place) -> Iterator[Place]:
    """Yield where a body's result goes: an output of its owner, and the next iteration's input."""
    scopes = [place.scope, *place.scope.capturers.get(place.name, ())]
    for scope in scopes:
        owner, parent = scope.owner, scope.parent
        if owner is None or parent is None:
            continue
        # A Loop's first result is its condition, which does not come out.
        first = 1 if owner.op_type == "Loop" else 0
        for index, output in enumerate(scope.graph.output):
            if output.name != place.name or index < first:
                continue
            if first and index + 1 < len(scope.graph.input):
                yield replace(place, scope=scope, name=scope.graph.input[index + 1].name)
            if index - first < len(owner.output) and owner.output[index - first]:
                yield replace(place, scope=parent, name=owner.output[index - first])


def _carried(place: Place, node: onnx.NodeProto, slot: int, is_float: bool) -> Iterator[Place]:
    """Yield the outputs and body inputs that carry an operand's values."""
    kind = node.op_type
    for body in place.scope.bodies.get(id(node), ()):
        if kind in ("Loop", "Scan") and slot < len(body.graph.input):
            yield replace(place, scope=body, name=body.graph.input[slot].name)
    after = _after(place, node, slot, is_float)
    if after is not None:
        for output in node.output:
            if output:
                yield replace(after, name=output)


def _after(place: Place, node: onnx.NodeProto, slot: int, is_float: bool) -> Place | None:
    """Return the output of a node, None where its values are no longer the input's."""
    kind = node.op_type
    if node.domain not in ("", "ai.onnx"):
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
    constant = place.scope.constant(node.input[1 - slot]) if len(node.input) == 2 else None
    if constant is None or constant.size != 1 or constant.dtype.kind not in "iuf":
        # A float that meets another is data from here on; an integer is still worth following.
        return None if is_float else replace(place, exact=False)
    return _affine(place, kind, slot, float(constant.reshape(-1)[0]))


def _affine(place: Place, kind: str, slot: int, c: float) -> Place:
    if kind == "Mul":
        return replace(place, scale=place.scale * c, offset=place.offset * c)
    if kind == "Add":
        return replace(place, offset=place.offset + c)
    if slot == 0:
        return replace(place, offset=place.offset - c)
    return replace(place, scale=-place.scale, offset=c - place.offset)
