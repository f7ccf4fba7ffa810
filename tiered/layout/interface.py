"""The interface in another layout: inputs and outputs that operators of images lead to."""

from __future__ import annotations

from collections.abc import Iterator

from tiered.graph import Graph, Model, TensorType, Value
from tiered.layout.nhwc import Supports, Wanted, channels_last, layout_wanted
from tiered.layout.permutation import Permutation, compose, inverse, permuted
from tiered.layout.reach import Start, Wiring

LAW = "an input or output  =>  itself in the layout that is asked for, and a Transpose"


def convert_interface(model: Model, wanted: Wanted, supports: Supports) -> list[str]:
    """Give the main graph's inputs and outputs the layout of the operators that they lead to.

    Transposes stand between them and what reads or makes them then. Inputs with a default stay.

    Args:
        model: edited in place.
        wanted: NHWC or NCHW by operator. If any is wanted channels last, that is the layout.
        supports: tells which operators of its own the target has.

    Returns:
        What was changed, a sentence for each.
    """
    graph, wiring = model.main, Wiring(model, wanted, supports)
    to_last = "NHWC" in wanted.values()
    wiring.search(_starts(wiring, wanted, to_last=to_last))
    said = []
    for value in (*graph.inputs, *graph.outputs):
        wire = wiring.wires.get(value)
        if wire is None or len(wire.shape) < 3 or value.default is not None:
            continue
        if value.is_graph_input and value.is_graph_output:
            continue
        last = channels_last(len(wire.shape))
        perm = last if to_last else inverse(last)
        if wire.orders.get(compose(wire.views[value], perm)):
            kind = "input" if value.is_graph_input else "output"
            turn = turn_input if value.is_graph_input else turn_output
            with graph.rewrite(LAW, value):
                turned = turn(graph, value, perm)
            dims = ",".join("?" if dim is None else str(dim) for dim in turned.shape or ())
            said.append(f"{kind} {turned.name!r} is [{dims}] now, permuted by {list(perm)}")
    return said


def _starts(wiring: Wiring, wanted: Wanted, *, to_last: bool) -> Iterator[Start]:
    """Yield the orders in which operators that the user names have their images."""
    graph = wiring.model.main
    for node in graph.nodes:
        if layout_wanted(node, wanted) != ("NHWC" if to_last else "NCHW"):
            continue
        if to_last:
            yield from wiring.wanted_starts(node)
            continue
        for value in (*node.inputs[:1], *node.outputs[:1]):
            wire = None if value is None else wiring.wire_of(value)
            if wire is not None and value is not None:
                yield wire, wire.views[value]


def turn_input(graph: Graph, value: Value, perm: Permutation) -> Value:
    """Replace an input by one in another order, and return it."""
    name, at = value.name, graph.inputs.index(value)
    assert value.shape is not None
    assert value.dtype is not None
    value_type = TensorType(value.dtype, permuted(value.shape, perm))
    new = graph.add_input(graph.model.names.fresh(name), value_type, index=at)
    graph.replace_uses(value, graph.op.Transpose(new, perm=inverse(perm)))
    graph.remove_input(value)
    graph.rename_value(new, name)
    return new


def turn_output(graph: Graph, value: Value, perm: Permutation) -> Value:
    """Replace an output by one in another order, and return it."""
    name, at = value.name, graph.outputs.index(value)
    graph.remove_output(value)
    graph.rename_value(value, graph.model.names.fresh(name))
    new: Value = graph.op.Transpose(value, perm=perm)
    graph.rename_value(new, name)
    graph.add_output(new, index=at)
    return new
