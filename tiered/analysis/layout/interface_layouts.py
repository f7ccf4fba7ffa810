"""Conversion of graph inputs and outputs to the layout of the image operators they connect to."""

from __future__ import annotations

from collections.abc import Iterator

from tiered.analysis.layout.nhwc import DesiredLayouts, Supports, channels_last, layout_wanted
from tiered.analysis.layout.permutation import Permutation, compose, inverse, permuted
from tiered.analysis.layout.reach import Reach, Start
from tiered.graph import Graph, Model, TensorType, Value
from tiered.graph.shape_inference.symbolic_dims import is_invented

LAW = "an input or output  =>  itself in the layout that is asked for, and a Transpose"


def convert_interface(model: Model, wanted: DesiredLayouts, supports: Supports) -> list[str]:
    """Convert inputs and outputs of the main graph to the layout of the operators they connect to.

    A Transpose is added at each converted input or output. Inputs with a default are not converted.

    Args:
        model: edited in place.
        wanted: NHWC or NCHW by operator. If any is NHWC, images are converted to NHWC.
        supports: returns whether the target has an operator that is not in ONNX.

    Returns:
        A sentence for each input or output that was converted.
    """
    graph, reach = model.main, Reach(model, wanted, supports)
    to_last = "NHWC" in wanted.values()
    reach.search(_starts(reach, wanted, to_last=to_last))
    changes = []
    for value in (*graph.inputs, *graph.outputs):
        tensor = reach.tensors.get(value)
        if tensor is None or len(tensor.shape) < 3 or value.default is not None:
            continue
        if value.is_graph_input and value.is_graph_output:
            continue
        last = channels_last(len(tensor.shape))
        perm = last if to_last else inverse(last)
        if tensor.orders.get(compose(tensor.views[value], perm)):
            kind = "input" if value.is_graph_input else "output"
            permute = permute_input if value.is_graph_input else permute_output
            with graph.rewrite(LAW, value):
                changed = permute(graph, value, perm)
            assert changed.shape is not None
            dims = ",".join(
                "?" if dim is None or is_invented(dim) else str(dim) for dim in changed.shape
            )
            changes.append(f"{kind} {changed.name!r} is [{dims}] now, permuted by {list(perm)}")
    return changes


def _starts(reach: Reach, wanted: DesiredLayouts, *, to_last: bool) -> Iterator[Start]:
    """Yield the orders of the images of the operators that the user names."""
    graph = reach.model.main
    for node in graph.nodes:
        if layout_wanted(node, wanted) != ("NHWC" if to_last else "NCHW"):
            continue
        if to_last:
            yield from reach.wanted_starts(node)
            continue
        for value in (node.given(0), node.output):
            tensor = reach.tensor_of(value)
            if tensor is not None:
                yield tensor, tensor.views[value]


def permute_input(graph: Graph, value: Value, perm: Permutation) -> Value:
    """Replace an input by a permuted one and return it."""
    name, at = value.name, graph.inputs.index(value)
    assert value.shape is not None
    assert value.dtype is not None
    value_type = TensorType(value.dtype, permuted(value.shape, perm))
    new = graph.add_input(graph.model.names.fresh(name), value_type, index=at)
    graph.replace_uses(value, graph.op.Transpose(new, perm=inverse(perm)))
    graph.remove_input(value)
    graph.rename_value(new, name)
    return new


def permute_output(graph: Graph, value: Value, perm: Permutation) -> Value:
    """Replace an output by a permuted one and return it."""
    name, at = value.name, graph.outputs.index(value)
    graph.remove_output(value)
    graph.rename_value(value, graph.model.names.fresh(name))
    new: Value = graph.op.Transpose(value, perm=perm)
    graph.rename_value(new, name)
    graph.add_output(new, index=at)
    return new
