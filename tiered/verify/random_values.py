"""The values of a model that differ from run to run, as random operators draw them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import onnx

from tiered.graph.io.protos import nodes_of
from tiered.graph.queries.op_traits import RANDOM
from tiered.runtime.compare.outputs import compare
from tiered.verify.part_extraction import GraphPart, calls

if TYPE_CHECKING:
    from tiered.runtime.session import Runner

_OF_SHAPES: Final = frozenset({"Shape", "Size"})
"""Operators with results that do not depend on the numbers that they read."""
_TRAINING: Final = 2
"""The operand of Dropout that makes it draw."""


def random_outputs(
    proto: onnx.ModelProto,
    session: Runner,
    samples: Sequence[Mapping[str, Any]],
    outputs: Sequence[Mapping[str, Any]],
) -> frozenset[str]:
    """Return the outputs of a model that depend on random draws, or differ in a second run.

    Args:
        proto: the model.
        session: where it is open.
        samples: feeds that it ran on.
        outputs: what it computed.
    """
    drawn = random_values(proto)
    if not drawn:
        return frozenset()
    again = [session.run(feeds) for feeds in samples]
    differs = (compare(one, two) for one, two in zip(outputs, again, strict=True))
    found = {output.name for each in differs for output in each.outputs if not output.ok}
    return frozenset(found | (drawn & {output.name for output in proto.graph.output}))


def random_values(proto: onnx.ModelProto) -> frozenset[str]:
    """Return the values of the main graph that depend on random draws.

    Two draws may be equal by chance, so a second run does not show all of them.
    """
    if not any(map(_draws, nodes_of(proto))):
        return frozenset()
    drawing = _drawing_functions(proto)
    part = GraphPart.of(proto)
    found: set[str] = set()
    for at in part.in_order(part.nodes):
        node = part.nodes[at]
        reads = [] if node.op_type in _OF_SHAPES else part.reads[at]
        if not found.isdisjoint(reads) or _may_draw(node, drawing):
            found.update(filter(None, node.output))
    return frozenset(found)


def is_all_random(proto: onnx.ModelProto) -> bool:
    """Return whether all outputs of a model depend on random draws."""
    outputs = {output.name for output in proto.graph.output}
    return bool(outputs) and outputs <= random_values(proto)


def _draws(node: onnx.NodeProto) -> bool:
    if node.op_type == "Dropout":
        return len(node.input) > _TRAINING and bool(node.input[_TRAINING])
    return not node.domain and node.op_type in RANDOM


def _may_draw(node: onnx.NodeProto, drawing: frozenset[tuple[str, str, str]]) -> bool:
    """Return whether a node draws, in its bodies or in a function that it calls too."""
    holder = onnx.ModelProto()
    holder.graph.node.append(node)
    return any(map(_draws, nodes_of(holder))) or not drawing.isdisjoint(calls(node))


def _drawing_functions(proto: onnx.ModelProto) -> frozenset[tuple[str, str, str]]:
    """Return the local functions that draw, also through others that they call."""
    found: set[tuple[str, str, str]] = set()
    while True:
        more = {
            (each.domain, each.name, each.overload)
            for each in proto.functions
            if any(_may_draw(node, frozenset(found)) for node in each.node)
        }
        if more <= found:
            return frozenset(found)
        found |= more
