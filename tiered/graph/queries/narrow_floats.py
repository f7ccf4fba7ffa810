"""Which floats are computed from narrower ones: they are no more exact than these."""

from __future__ import annotations

from collections.abc import Iterator

from tiered.graph.core.dtypes import DataType, float_info, is_float
from tiered.graph.core.graph import Graph
from tiered.graph.core.model import ModelState
from tiered.graph.core.node import Node
from tiered.graph.core.value import Value
from tiered.graph.queries.op_traits import CASTS, MOVES_ELEMENTS


def narrow_floats(model: ModelState) -> dict[str, DataType]:
    """Return the floats of the main graph that are computed from narrower ones, by name.

    With each is the type of the fewest digits that an operator rounds to on the way to it. An
    operator that depends on no input does not count: weights are often only stored in a narrower
    type.

    Args:
        model: the model; values of unknown type do not count.
    """
    outputs = (value for graph in model.graphs() for node in graph.nodes for value in node.outputs)
    if len({_float_of(value) for value in outputs} - {None}) < 2:
        return {}
    data, least = set(model.main.inputs), dict[Value, DataType]()
    for node in model.main.topological_order():
        read = [*filter(None, node.inputs), *node.captured]
        written = [*filter(None, node.outputs)]
        if data.isdisjoint(read) and (read or node.is_op("Constant")):
            continue
        data.update(written)
        found = [least[value] for value in read if value in least]
        found += _rounded_to(node)
        found += [dtype for graph in _inside(model, node) for dtype in _rounded_inside(graph)]
        if found:
            dtype = max(found, key=_step)
            least.update(dict.fromkeys(written, dtype))
    return {
        value.name: dtype
        for value, dtype in least.items()
        if (own := _float_of(value)) is not None and _step(own) < _step(dtype)
    }


def _inside(model: ModelState, node: Node) -> Iterator[Graph]:
    """Yield what a node runs: its bodies at any depth, and the local function that it calls."""
    function = model.function(*node.callee)
    pending = [*node.bodies, *([] if function is None else [function])]
    while pending:
        graph = pending.pop()
        yield graph
        pending += [body for owner in graph.body_nodes for body in owner.bodies]


def _rounded_inside(graph: Graph) -> Iterator[DataType]:
    for node in graph.nodes:
        yield from _rounded_to(node)


def _rounded_to(node: Node) -> list[DataType]:
    """Return the types of floats that a node rounds to."""
    if node.is_op("Constant") or (not node.domain and node.op_type in MOVES_ELEMENTS):
        return []
    found = [dtype for value in node.outputs if (dtype := _float_of(value)) is not None]
    if node.domain or node.op_type not in CASTS:
        return found
    source = _float_of(node.input(0))
    return [dtype for dtype in found if source is not None and _step(dtype) > _step(source)]


def _float_of(value: Value | None) -> DataType | None:
    """Return the type of a value of floats; None for others."""
    if value is None or value.dtype is None:
        return None
    dtype = DataType(value.dtype)
    return dtype if is_float(dtype.numpy) else None


def _step(dtype: DataType) -> float:
    """Return the distance from 1 to the next number."""
    return float(float_info(dtype.numpy).eps)
