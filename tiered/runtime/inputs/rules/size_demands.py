"""What operators demand of inputs that are sizes, axes or amounts of padding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tiered.runtime.inputs.graph_facts import Fact, InputDependence, Shape, axis_size, shape_of
from tiered.runtime.inputs.rules.demand import DEMANDS, OWN_AND_MICROSOFT

if TYPE_CHECKING:
    from tiered.graph import Node


@DEMANDS.rule("Reshape")
def reshape(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    if slot == 1:
        # [-1, 1, 1] fits whatever is reshaped; the declared result is better where it is whole.
        declared = shape_of(node.output)
        whole = [d for d in declared or () if d is not None]
        fits = declared and len(whole) == len(declared)
        yield Fact("values", "Reshape target", values=tuple(map(float, whole)) if fits else (-1, 1))


@DEMANDS.rule("Expand")
def expand(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    if slot == 1:
        declared = shape_of(node.output) or ()
        whole = tuple(float(d) for d in declared if d is not None)
        fits = bool(declared) and len(whole) == len(declared)
        yield Fact("values", "Expand target", values=whole if fits else (1,))


@DEMANDS.rule("Pad", domain=OWN_AND_MICROSOFT)
def pads(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    shape = shape_of(node.input(0))
    if slot == 1:
        once = tuple(float(d is not None and d > 1) for d in shape or ())
        is_plain = once and node.input(3) is None
        yield Fact("values", "Pad amount", values=once * 2 if is_plain else (0,))
    elif slot == 3:
        yield _axes("Pad", shape)


def _axes(operator: str, shape: Shape | None) -> Fact:
    return Fact("values", f"{operator} axes", values=tuple(map(float, range(len(shape or (0,))))))


@DEMANDS.rule("Slice")
def slice(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    shape = shape_of(node.input(0))
    if slot == 1:
        yield Fact("values", "Slice start", values=(0,))
    elif slot == 2:
        sizes = [d for d in shape or () if d is not None]
        yield Fact("values", "Slice end", values=(max(1, min(sizes, default=2) - 1),))
    elif slot == 3:
        yield _axes("Slice", shape)
    elif slot == 4:
        yield Fact("values", "Slice step", values=(1,))


@DEMANDS.rule("Resize", "Upsample")
def resize(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    shape = shape_of(node.input(0)) or ()
    is_upsample = node.op_type == "Upsample"
    if slot == (1 if is_upsample else 2):
        yield Fact("values", f"{node.op_type} scale", values=(1, 1, 2))
    elif slot == 3:
        sizes = tuple(float((d or 2) * (1 if i < 2 else 2)) for i, d in enumerate(shape))
        yield Fact("values", "Resize size", values=sizes or (2,))


@DEMANDS.rule("Squeeze", "Unsqueeze")
def squeeze_axes(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    if slot != 1:
        return
    shape = shape_of(node.input(0))
    if node.op_type == "Squeeze":
        ones = tuple(float(i) for i, d in enumerate(shape or ()) if d == 1)
        yield Fact("values", "Squeeze axes", values=ones or (0,))
    else:
        yield _axes(node.op_type, shape)


@DEMANDS.rule("Split", "SplitToSequence")
def split(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    if slot == 1:
        size = axis_size(node.input(0), node.attr("axis", 0))
        counts = shape_of(node.input(1))
        parts = (counts[0] if counts else 1) or len(node.outputs)
        if size is None:
            yield Fact("values", f"{node.op_type} size", values=(1,))
        else:
            each = [size // parts] * (parts - 1)
            yield Fact("values", f"{node.op_type} size", values=(*each, size - sum(each)))


@DEMANDS.rule("TopK")
def top_k(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    if slot == 1:
        size = axis_size(node.input(0), node.attr("axis", -1))
        yield Fact("values", "TopK k", values=(min(3, size or 1),))


@DEMANDS.rule("AffineGrid")
def affine_grid(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    if slot == 1:
        batch = axis_size(node.input(0), 0) or 1
        yield Fact("values", "AffineGrid size", values=(batch, 2, 5, 4, 3))
