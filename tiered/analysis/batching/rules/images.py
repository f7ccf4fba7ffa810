"""The rules of convolutions with kernels of each sample, and of the places that MaxPool returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from tiered.analysis.batching.following import BATCHES, COUNTS, Following, Made
from tiered.analysis.batching.rules.generic import common, followed, mixes
from tiered.analysis.batching.sample_facts import BatchRefusal, BatchRows, Fact, product
from tiered.graph import Node
from tiered.rewriter import Skip
from tiered.rewriter.idioms.windows import windows_of

_UNPOOL: Final = "MaxUnpool"
_IMAGES: Final = "the images of its regions, {!r}, are not those of the samples"


@BATCHES.rule("Conv")
def conv(state: Following, node: Node) -> Made:
    """Conv; an image that is compared with kernels of its own becomes a product of matrices."""
    carried = state.in_rows(node)
    if 0 not in carried or 1 not in carried:
        return followed(state, node)
    x, weight, bias = carried[0], carried[1], carried.get(2)
    image, kernel = node.given(0), node.given(1)
    sizes, group = state.sizes(kernel), int(node.attr("group"))
    # All that follows counts by sample: the kernels, and the groups unless the image has a batch.
    of_each = group // state.old if x.axis else group
    channels = sizes[1] * of_each if isinstance(sizes[1], int) else None
    is_known = all(isinstance(size, int) and size for size in (*sizes, weight.inner))
    if not is_known or (weight.axis, weight.outer) != (0, 1):
        raise mixes(node, 1, weight)
    in_places = (x.axis == 0 and x.is_whole and state.old == 1) or (
        (x.axis, x.inner) == (1, channels) and group % state.old == 0 and state.sizes(image)[0] == 1
    )
    if not in_places or int(str(weight.inner)) % max(of_each, 1):
        raise mixes(node, 0, x)
    if node.input(2) is not None and (state.old > 1 or bias is not None) and bias != weight:
        raise BatchRefusal("its bias has other samples than its kernels")
    windows = windows_of(node, image, [int(str(size)) for size in sizes[2:]])
    if isinstance(windows, Skip):
        raise BatchRefusal(windows.reason)
    kernels = int(str(weight.inner))
    state.edits.append(lambda to: to.convolve(node, windows, kernels, of_each, x))
    return BatchRows(0) if not x.axis else BatchRows(1, 1, kernels)


@BATCHES.rule("MaxPool")
def max_pool(state: Following, node: Node) -> Made:
    """MaxPool; the places that it returns count through all samples."""
    places = node.outputs[1] if len(node.outputs) > 1 else None
    if places is None or not places.is_used:
        return followed(state, node)
    rows = state.rows(node, 0)
    if rows != BatchRows(0):
        raise BatchRefusal("the places of its maxima count along several axes of the batch")
    step = product(state.sizes(node.inputs[0])[1:])
    if not isinstance(step, int):
        raise BatchRefusal("the places of its maxima depend on dynamic dims")
    if all(reader.is_op(_UNPOOL) for reader in places.readers) and not places.is_graph_output:
        return [rows, BatchRows(0, step=step)]
    if state.old > 1:
        raise BatchRefusal(f"its output {places.name!r} counts through a batch of {state.old}")
    state.edits.append(lambda to: to.shift_output(node, 1, -step))
    return rows


@COUNTS.rule(_UNPOOL)
@BATCHES.rule(_UNPOOL)
def max_unpool(state: Following, node: Node) -> Fact:
    """MaxUnpool: the places of each sample are its own, and the size of the result its number."""
    carried: Mapping[int, BatchRows] = {
        slot: rows for slot in (0, 1) if (rows := state.rows(node, slot)) is not None
    }
    if len(carried) < 2 or common(carried.values()) != BatchRows(0):
        raise BatchRefusal("its operands have the samples in different orders")
    size, after = product(state.sizes(node.output)[1:]), state.sizes(node.output)
    if not isinstance(size, int):
        raise BatchRefusal("the size of its result is not known")
    target = node.input(2)
    if target is not None:
        pieces = [state.known_size(BatchRows(0)), *after[1:]]
        state.edits.append(lambda to: to.set_target(node, pieces, slot=2))
    step = state.step(node, 1)
    if not isinstance(step, int):
        raise BatchRefusal("it computes with the numbers of samples")
    if step != size and state.old > 1:
        raise BatchRefusal(
            "its places count through samples of another size than those of its result"
        )
    if step != size:
        state.edits.append(lambda to: to.shift(node, 1, size - step))
    return BatchRows(0)


@COUNTS.rule("RoiAlign")
@BATCHES.rule("RoiAlign")
def roi_align(state: Following, node: Node) -> Fact:
    """RoiAlign: the regions of each sample are taken from its own image."""
    image, regions = state.rows(node, 0), state.rows(node, 1)
    if image is not None and image != BatchRows(0):
        raise mixes(node, 0, image)
    indices = node.given(2)
    numbers = indices.const
    if image is None:
        raise BatchRefusal("the regions of each sample are of images that all share")
    size = state.sizes(indices)[0]
    if regions is None:
        each = size // state.old if isinstance(size, int) else None
        regions = BatchRows(0, 1, each) if each else None
    if regions is None or (regions.axis, regions.outer) != (0, 1):
        raise BatchRefusal("the regions of a sample are not next to each other")
    if not isinstance(regions.inner, int):
        raise BatchRefusal("how many regions a sample has is not known")
    if state.rows(node, 2) is None:
        expected = np.repeat(np.arange(state.old), regions.inner)
        if numbers is None or not np.array_equal(numbers, expected):
            raise BatchRefusal(_IMAGES.format(indices.name))
        rows = regions
        state.edits.append(lambda to: to.number_rows(node, 2, rows))
    elif state.step(node, 2) != 1:
        raise BatchRefusal(_IMAGES.format(indices.name))
    if state.rows(node, 1) is None:
        state.spread(node, 1, regions)
    return regions
