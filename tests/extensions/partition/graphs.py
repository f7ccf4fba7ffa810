"""Random models, and brute force over their partitions."""

import itertools
from collections.abc import Sequence

import networkx as nx
import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import parser

from tiered import Graph, Model, Node
from tiered.runtime import Session, make_inputs

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'


def model(text: str, header: str = HEADER) -> Model:
    """Parse a model; nodes are named by their first output."""
    proto = parser.parse_model(header + text)
    for node in proto.graph.node:
        node.name = node.name or node.output[0]
    return Model.from_proto(proto)


def labels(nodes: Sequence[Node]) -> list[str]:
    return [node.label for node in nodes]


def assert_same_outputs(one: onnx.ModelProto, other: onnx.ModelProto) -> None:
    """Run both on onnxruntime, and compare every bit."""
    feeds = dict(make_inputs(one).feeds)
    before, after = Session(one).run(feeds), Session(other).run(feeds)
    assert_same_bits(before, after)


def assert_same_bits(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> None:
    assert list(before) == list(after)
    for name, value in before.items():
        assert value.dtype == after[name].dtype
        assert value.shape == after[name].shape
        assert value.tobytes() == after[name].tobytes(), name


OPERATORS = {"a": "Neg", "b": "Abs", "-": "Sin"}
"""An operator of each target; no target takes Sin."""


@st.composite
def random_models(draw: st.DrawFn, largest: int = 9, targets: str = "a-") -> Model:
    """Return a model of single operators, whose nodes read one or two earlier values.

    Some nodes are an If that captures the earlier values.
    """
    lines, values = [], ["x"]
    for at in range(draw(st.integers(1, largest))):
        op_type = OPERATORS[draw(st.sampled_from(targets))]
        read = draw(st.lists(st.sampled_from(values), min_size=1, max_size=2))
        total = read[0]
        if len(read) == 2 and draw(st.booleans()):
            body = f"z{at} = {op_type}({read[0]})  w{at} = Add(z{at}, {read[1]})"
            branch = f"body{at} () => (float[2] w{at}) {{ {body} }}"
            other = f"rest{at} () => (float[2] u{at}) {{ u{at} = {op_type}({read[1]}) }}"
            lines.append(f"v{at} = If <then_branch = {branch}, else_branch = {other}> (c)")
        elif len(read) == 2:
            kind = {"Neg": "Add", "Abs": "Mul", "Sin": "Sub"}[op_type]
            lines.append(f"v{at} = {kind}({read[0]}, {read[1]})")
        else:
            lines.append(f"v{at} = {op_type}({total})")
        values.append(f"v{at}")
    drawn = draw(st.sets(st.sampled_from(values[1:]), min_size=1))
    outputs = sorted({*drawn, values[-1]})
    heads = ", ".join(f"float[2] {name}" for name in outputs)
    return model(f"g (float[2] x, bool c) => ({heads}) {{ {'  '.join(lines)} }}")


TAKEN = {"a": {"Neg", "Add"}, "b": {"Abs", "Mul"}}
"""The operators of each target of a random model; Add is in bodies of every If."""


def contracted(graph: Graph, groups: Sequence[Sequence[Node]]) -> nx.DiGraph:
    """Return the graph in which each group is one vertex."""
    unit = {node: ("group", at) for at, group in enumerate(groups) for node in group}
    made = nx.DiGraph()
    for node in graph.nodes:
        made.add_node(unit.get(node, node))
    for one, other in graph.dag.edges:
        ends = unit.get(one, one), unit.get(other, other)
        if ends[0] != ends[1]:
            made.add_edge(*ends)
    return made


def is_acyclic(graph: Graph, groups: Sequence[Sequence[Node]]) -> bool:
    return bool(nx.is_directed_acyclic_graph(contracted(graph, groups)))


def mergeable(
    graph: Graph, groups: Sequence[Sequence[Node]], *, adjacent: bool
) -> list[tuple[int, int]]:
    """Return the pairs of groups that could be one without a cycle."""
    whole = contracted(graph, groups)
    found: list[tuple[int, int]] = []
    for one, other in itertools.combinations(range(len(groups)), 2):
        ends = ("group", one), ("group", other)
        if adjacent and not (whole.has_edge(*ends) or whole.has_edge(*reversed(ends))):
            continue
        rest = [group for at, group in enumerate(groups) if at not in (one, other)]
        if is_acyclic(graph, [*rest, [*groups[one], *groups[other]]]):
            found.append((one, other))
    return found
