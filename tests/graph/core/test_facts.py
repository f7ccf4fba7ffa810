"""All that values, nodes and graphs of a model say of themselves, as text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.recorded import assert_recorded
from tiered import Model
from tiered.graph import Graph, Node, Value
from tiered.testing import parse

VALUE = [
    "is_used",
    "has_one_user",
    "is_captured",
    "can_be_renamed",
    "can_become_output",
    "is_float",
    "is_graph_input",
    "is_graph_output",
    "is_initializer",
    "is_overridable",
    "is_constant",
]
NODE = ["is_used", "is_live", "is_pinned", "is_early", "has_references"]


def test_what_each_part_of_a_model_says_of_itself() -> None:
    assert_recorded(Path(__file__).with_name("facts.txt"), {"=": _facts})


def _facts(header: str, below: list[str]) -> Iterator[str]:
    text = [line for line in below if line and not line.startswith("  ")]
    model = Model.from_proto(parse(" ".join(text), opset=int(header)))
    yield from text
    for graph in model.graphs():
        yield f"  {_graph(graph)}"
        for value in graph.values.values():
            yield f"    {_value(value)}"
        for node in graph.topological_order():
            yield f"    {_node(node)}"
    yield ""


def _graph(graph: Graph) -> str:
    parts = [
        f"{graph!r}: depth {graph.depth}, opset {graph.opset()}, {dict(graph.opset_imports)}",
        f"root {graph.root.name}, of {graph.parent.name if graph.parent else '-'}",
        f"{_names(graph.inputs)} -> {_names(graph.outputs)}",
        f"initializers {_names(graph.initializers)}",
        f"operators {sorted(map(str, graph.operators))}",
        *(["main"] if graph.is_main else []), *(["names matter"] if graph.names_matter else []),
    ]  # fmt: skip
    return "; ".join(parts)


def _value(value: Value) -> str:
    facts = [each.removeprefix("is_") for each in VALUE if getattr(value, each)]
    users = [f"{use.node.label}:{use.slot}" for use in value.users]
    numbers = [f"const {_array(value.const)}"] if value.const is not None else []
    numbers += [f"number {value.number}"] if value.number is not None else []
    numbers += ["default"] if value.default is not None else []
    elements = value.constant_elements()
    numbers += [f"elements {elements.tolist()}"] if elements is not None else []
    dims = [value.dim(axis) for axis in (0, -1, 5, -6)]
    parts = [
        f"{value.name}: {value.type}", f"dims {dims}, static {value.static_shape}",
        f"read by {users}, {[node.label for node in value.user_nodes]}, {value.n_users} in all",
        *numbers, " ".join(facts),
    ]  # fmt: skip
    return "; ".join(parts)


def _node(node: Node) -> str:
    facts = [each for each in NODE if getattr(node, each)]
    places = range(len(node.inputs))
    parts = [
        f"{node.label} {node.operator} version {node.version}, {node.attributes}",
        f"settings {node.settings}", f"callee {node.callee}",
        f"{_names(node.inputs)} -> {_names(node.outputs)}",
        f"reads {_names(node.reads)}, captures {_names(node.captured)}",
        f"optional {[at for at in places if node.is_optional(at)]}",
        f"constants {[_array(node.const(at)) for at in places]}",
        f"producers {[each.label if each else '-' for each in map(node.producer, places)]}",
        f"after {[each.label for each in node.predecessors]}",
        f"before {[each.label for each in node.successors]}",
        f"{node.parameter_reason or ''}", *facts,
    ]  # fmt: skip
    return "; ".join(filter(None, parts))


def _names(values: Any) -> str:
    return f"({', '.join('-' if each is None else each.name for each in values)})"


def _array(array: np.ndarray[Any, Any] | None) -> str:
    return "-" if array is None else str(array.tolist())
