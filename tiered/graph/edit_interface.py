"""The primitives that edit what a graph shows: its inputs and outputs, and its declarations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import onnx

from tiered.graph import links
from tiered.graph.journal import Edit
from tiered.graph.types import read_type
from tiered.graph.value import NOT_INFERRED, Value

if TYPE_CHECKING:
    from tiered.graph.graph import Graph


def set_graph_inputs(
    graph: Graph, inputs: Sequence[Value], infos: Sequence[onnx.ValueInfoProto]
) -> None:
    """Exchange the list of graph inputs, each with its declaration."""
    graph._log(Edit.SET_GRAPH_INPUTS, graph, graph._inputs, graph._input_infos)
    graph._write_graph_inputs(list(inputs), list(infos))


def write_graph_inputs(graph: Graph, inputs: list[Value], infos: list[onnx.ValueInfoProto]) -> None:
    for value in graph._inputs:
        value.input_of = None
        if value._tensor is None:
            graph._leave(value)
        else:
            # A constant has the type of its contents, whatever an input was declared to take.
            value._type = NOT_INFERRED
    graph._inputs, graph._input_infos = inputs, infos
    for value, info in zip(inputs, infos, strict=True):
        value.input_of = graph
        if value._tensor is not None:
            value._type = read_type(info.type)
        if value.graph is None:
            graph._enter(value)


def set_declarations(
    graph: Graph, declarations: Iterable[tuple[Value | None, onnx.ValueInfoProto]], keep: int = 0
) -> None:
    """Exchange the user's value_info after the first `keep` entries, each with its value."""
    after, before = list(declarations), graph.declarations[keep:]
    values = dict.fromkeys(value for value, _ in (*before, *after) if value is not None)
    spoken = [(value, value.declared) for value in values]
    graph._log(Edit.SET_DECLARATIONS, graph, keep, before, spoken)
    graph._write_declarations(keep, after)


def write_declarations(
    graph: Graph, keep: int, declarations: list[tuple[Value | None, onnx.ValueInfoProto]]
) -> None:
    names = graph.model.names
    for value, info in graph.declarations[keep:]:
        if value is not None:
            value.declared = None
        elif info.name:
            names.release(info.name)
    graph.declarations[keep:] = declarations
    for value, info in declarations:
        if value is not None:
            value.declared = info
        elif info.name:
            names.take(info.name)
    graph._declare_outputs()


def declare_outputs(graph: Graph) -> None:
    """Let the declaration of an output speak of the value, where no value_info does."""
    for value, info in zip(graph._outputs, graph._output_infos, strict=False):
        if value.declared is None and value.graph is graph:
            value.declared = info


def set_graph_outputs(
    graph: Graph, outputs: Sequence[Value], infos: Sequence[onnx.ValueInfoProto]
) -> None:
    """Exchange the list of graph outputs, each with its declaration."""
    graph._log(Edit.SET_GRAPH_OUTPUTS, graph, graph._outputs, graph._output_infos)
    graph._write_graph_outputs(list(outputs), list(infos))


def write_graph_outputs(
    graph: Graph, outputs: list[Value], infos: list[onnx.ValueInfoProto]
) -> None:
    stated = {id(info) for info in graph._output_infos}
    for value in graph._outputs:
        links.drop_output_use(value, graph)
        if id(value.declared) in stated:
            value.declared = None
    graph._outputs, graph._output_infos = outputs, infos
    for value in outputs:
        links.add_output_use(value, graph)
    graph._declare_outputs()
