"""Constraints of operators on inputs that are indices or lengths."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tiered.runtime.inputs.graph_facts import Fact, InputDependence, axis_size, numbers_of, shape_of
from tiered.runtime.inputs.rules.demand import DEMANDS, OWN_AND_MICROSOFT

if TYPE_CHECKING:
    from tiered.graph import Node


def index(place: InputDependence, size: int | None, why: str, dims: tuple[int, ...] = ()) -> Fact:
    """Return the fact that scale * x + offset indexes an axis of `size`."""
    if size is None or not place.exact or place.scale == 0:
        high = None if place.exact or size is None else min(size, 2)
        return Fact("index", why, 0, high)
    ends = sorted((b - place.offset) / place.scale for b in (0, size - 1))
    return Fact("index", why, math.ceil(ends[0]), math.floor(ends[1]) + 1, dims=dims)


@DEMANDS.rule("Gather", "GatherElements")
@DEMANDS.rule("GatherBlockQuantized", domain="com.microsoft")
def gather(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    if slot == 1:
        axis = node.attr("axis", 0)
        yield index(place, axis_size(node.input(0), axis), f"{node.op_type} index")


@DEMANDS.rule("ScatterElements", "Scatter")
def scatter_elements(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    if slot == 1:
        axis = node.attr("axis", 0)
        size = axis_size(node.input(0), axis)
        yield index(place, size, f"{node.op_type} index", dims=(axis,))


@DEMANDS.rule("GatherND", domain=OWN_AND_MICROSOFT)
@DEMANDS.rule("ScatterND")
def gather_nd(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    if slot != 1:
        return
    first = node.attr("batch_dims", 0) if node.op_type == "GatherND" else 0
    data, indices = shape_of(node.input(0)), shape_of(node.input(1))
    depth = indices[-1] if indices else None
    addressed = () if data is None or depth is None else data[first : first + depth]
    sizes = tuple(d for d in addressed if d is not None)
    known = bool(sizes) and len(sizes) == len(addressed)
    yield index(place, min(sizes) if known else None, f"{node.op_type} index", dims=sizes)


@DEMANDS.rule("OneHot")
def one_hot(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    if slot == 0:
        depth = numbers_of(node.input(1))
        size = None if depth is None else int(depth.ravel()[0])
        yield index(place, size, "OneHot index")
    elif slot == 1:
        yield Fact("values", "OneHot depth", values=(5,))


@DEMANDS.rule("ArrayFeatureExtractor", domain="ai.onnx.ml")
def last_axis(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    if slot == 1:
        yield index(place, axis_size(node.input(0), -1), f"{node.op_type} index")


@DEMANDS.rule("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def classes(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    """The target of a loss names a class; `ignore_index` is not used."""
    if slot == 1:
        yield index(place, axis_size(node.input(0), 1), f"{node.op_type} class")


@DEMANDS.rule("Attention", domain=OWN_AND_MICROSOFT)
def attention(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    if slot == 3:
        yield Fact("mask", "Attention mask")
    elif slot == 6:
        size = axis_size(node.input(1), -2)
        yield Fact("length", "Attention length", 1, 2 if size is None else size + 1)


@DEMANDS.rule("EmbedLayerNormalization", "QEmbedLayerNormalization", domain="com.microsoft")
def embed(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    """com.microsoft.EmbedLayerNormalization: ids, segments, three tables, ..., mask, positions."""
    tables = {0: 2, 1: 4, 8: 3}
    if slot in tables:
        size = axis_size(node.input(tables[slot]), 0)
        yield index(place, size, f"{node.op_type} table")
    elif slot == 7:
        yield Fact("mask", f"{node.op_type} mask")


@DEMANDS.rule("RNN", "GRU", "LSTM", "ReverseSequence")
def lengths(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    if node.op_type == "ReverseSequence":
        wanted, axis = 1, node.attr("time_axis", 0)
    else:
        wanted, axis = 4, 1 if node.attr("layout", 0) else 0
    if slot == wanted:
        size = axis_size(node.input(0), axis)
        yield Fact("length", f"{node.op_type} length", 1, 2 if size is None else size + 1)


@DEMANDS.rule("RoiAlign")
def rois(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    if slot == 2:
        yield index(place, axis_size(node.input(0), 0), "RoiAlign batch index")
    if slot == 1 and place.exact and (place.scale, place.offset) == (1, 0):
        sizes = [axis_size(node.input(0), axis) for axis in (2, 3)]
        known = [size for size in sizes if size is not None]
        high = int(min(known, default=2) / node.attr("spatial_scale", 1.0))
        yield Fact("corners", "RoiAlign region", 0, max(high, 2))


@DEMANDS.rule("RotaryEmbedding", domain=OWN_AND_MICROSOFT)
def rotary(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    """Positions are rows of the caches; com.microsoft.RotaryEmbedding has them before these."""
    positions, cache = (1, 2) if node.domain else (3, 1)
    # A single one of com.microsoft is that of the first token.
    if slot == positions and not (node.domain and place.value.rank != 2):
        yield index(place, axis_size(node.input(cache), 0), f"{node.op_type} position")


@DEMANDS.rule("MaxUnpool")
def unpool(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    shape = shape_of(node.input(0))
    sizes = [d for d in shape if d is not None] if shape else []
    if slot == 2:
        grown = tuple(float(d if i < 2 else 2 * d) for i, d in enumerate(sizes))
        yield Fact("values", "MaxUnpool size", values=grown or (2,))
    elif slot == 1:
        yield index(place, math.prod(sizes) if sizes else None, "MaxUnpool index")


@DEMANDS.rule("GroupQueryAttention", domain="com.microsoft")
def group_query(place: InputDependence, node: Node, slot: int) -> Iterator[Fact]:
    """com.microsoft.GroupQueryAttention: every row has the whole length."""
    if slot in (5, 6):
        seq = axis_size(node.input(0), 1) or 1
        total = seq + (axis_size(node.input(3), 2) or 0)
        yield Fact("values", f"{node.op_type} length", values=(total - 1 if slot == 5 else total,))
