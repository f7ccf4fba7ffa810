"""networkx's VF2 finds the same matches, on random graphs and random patterns.

VF2 sees operators as nodes and operands as edges with slots. What it cannot know of the pattern
language is checked here by brute force: which operand of a commutative operator is which, and that
one variable is one value.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import networkx as nx
from hypothesis import given, settings, strategies as st
from networkx.algorithms.isomorphism import DiGraphMatcher
from onnx import TensorProto, helper

from tiered import Graph, Model, Node, Value, op, var
from tiered.rewriter import Pattern, compile_pattern, pattern_matching
from tiered.rewriter.match import all_matches, find_matches, why_blocked
from tiered.rewriter.pattern import OpPattern, VariablePattern

ARITIES: Final = {"Neg": 1, "Relu": 1, "Dropout": 1, "Sub": 2, "Add": 2, "Mul": 2, "Where": 3}
OUTPUTS: Final = {"Dropout": 2}
"""How many outputs there are, where it is not one; that a mask is no number does not matter."""
KINDS = st.sampled_from(sorted(ARITIES))


@dataclass(frozen=True)
class Part:
    """One operator: its kind, and for each operand an earlier part's output, or a letter."""

    kind: str
    operands: tuple[tuple[int, int] | str, ...]


@st.composite
def parts(draw: st.DrawFn, most: int, letters: str) -> list[Part]:
    """Draw operators of which each reads earlier ones, or one of some leaves."""
    made: list[Part] = []
    for at in range(draw(st.integers(1, most))):
        kind = draw(KINDS)
        ends = [(one, out) for one in range(at) for out in range(OUTPUTS.get(made[one].kind, 1))]
        leaves = st.sampled_from(letters)
        reads = st.one_of(st.sampled_from(ends), leaves) if ends else leaves
        made.append(Part(kind, tuple(draw(reads) for _ in range(ARITIES[kind]))))
    return made


def graph_of(drawn: Sequence[Part], outputs: Iterable[int]) -> Graph:
    """Return a graph; types do not matter, so that the selector of Where may be anything."""

    def named(at: int, out: int) -> str:
        return f"v{at}.{out}"

    nodes = [
        helper.make_node(
            part.kind,
            [f"v{read}" if isinstance(read, str) else named(*read) for read in part.operands],
            [named(at, out) for out in range(OUTPUTS.get(part.kind, 1))],
            f"n{at}",
        )
        for at, part in enumerate(drawn)
    ]
    ends = [named(at, 0) for at in outputs] or [named(len(drawn) - 1, 0)]
    inputs, results = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names]
        for names in (["vx", "vy"], ends)
    )
    made = helper.make_graph(nodes, "g", inputs, results)
    opset = helper.make_opsetid("", 21)
    return Model.from_proto(helper.make_model(made, opset_imports=[opset], ir_version=10)).main


def pattern_of(drawn: Sequence[Part]) -> tuple[OpPattern, list[OpPattern]]:
    """Return the pattern of the last part; each part is one object, told apart by its name."""
    made: list[OpPattern] = []
    for at, part in enumerate(drawn):
        operands = [
            var_of(read) if isinstance(read, str) else made[read[0]].out(read[1])
            for read in part.operands
        ]
        made.append(getattr(op, part.kind)(*operands).bind(f"p{at}"))
    root = made[-1]
    reached = {id(inner.identity) for inner in root.walk() if isinstance(inner, OpPattern)}
    return root, [inner for inner in made if id(inner) in reached]


def var_of(letter: str) -> VariablePattern:
    made: VariablePattern = getattr(var, letter)
    return made


# --- the oracle -----------------------------------------------------------------------------------


def shape_of_pattern(members: Sequence[OpPattern]) -> "nx.DiGraph[Any]":
    shape: nx.DiGraph[Any] = nx.DiGraph()
    for member in members:
        shape.add_node(id(member), kind=member.op_type)
        for slot, operand in enumerate(member.operands):
            if not isinstance(operand, OpPattern):
                continue
            ends = id(operand.identity), id(member)
            if not shape.has_edge(*ends):
                shape.add_edge(*ends, slots=[])
            shape.edges[ends]["slots"].append((operand.output, slot))
    for member in members:
        shape.nodes[id(member)]["kind"] = member.op_type
    return shape


def shape_of_graph(graph: Graph) -> "nx.DiGraph[Any]":
    shape: nx.DiGraph[Any] = nx.DiGraph()
    for node in graph.nodes:
        shape.add_node(node, kind=node.op_type)
    for tail, head, data in graph.dag.edges(data=True):
        slots = [tuple(slot) for slot in data["slots"]]
        shape.add_edge(tail, head, slots=slots, commutes=head.op_type in ("Add", "Mul"))
    return shape


def fits(edge: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    if edge["commutes"]:
        return len(wanted["slots"]) <= len(edge["slots"])
    return set(wanted["slots"]) <= set(edge["slots"])


def vf2(graph: "nx.DiGraph[Any]", pattern: "nx.DiGraph[Any]", edge_match: Any) -> Iterator[Any]:
    matcher = DiGraphMatcher(
        graph, pattern, node_match=lambda a, b: a["kind"] == b["kind"], edge_match=edge_match
    )
    for mapping in matcher.subgraph_monomorphisms_iter():
        yield {inner: node for node, inner in mapping.items()}


def is_consistent(members: Sequence[OpPattern], nodes: Mapping[int, Node]) -> bool:
    """Tell whether some order of commutative operands puts every operand in its place."""
    orders = []
    for member in members:
        reads = nodes[id(member)].inputs
        both = member.op_type in ("Add", "Mul")
        orders.append([reads, reads[::-1]] if both else [reads])
    return any(_agrees(members, choice, nodes) for choice in product(*orders))


def _agrees(
    members: Sequence[OpPattern],
    choice: Sequence[Sequence[Value | None]],
    nodes: Mapping[int, Node],
) -> bool:
    values: dict[str, Value | None] = {}
    for member, reads in zip(members, choice, strict=True):
        for operand, value in zip(member.operands, reads, strict=True):
            if isinstance(operand, OpPattern):
                made = None if value is None else (value.producer, value.index)
                if made != (nodes[id(operand.identity)], operand.output):
                    return False
            elif (
                isinstance(operand, VariablePattern)
                and values.setdefault(operand.name, value) is not value
            ):
                return False
    return True


Matches = set[tuple[tuple[str, str], ...]]


def expected(graph: Graph, members: Sequence[OpPattern]) -> Matches:
    found: Matches = set()
    for nodes in vf2(shape_of_graph(graph), shape_of_pattern(members), fits):
        if is_consistent(members, nodes):
            found.add(tuple(sorted((m.node_name, nodes[id(m)].label) for m in members)))
    return found


def ours(graph: Graph, root: Pattern, members: Sequence[OpPattern]) -> Matches:
    names = [member.node_name for member in members]
    return {
        tuple(sorted((name, match.bindings[name].label) for name in names))
        for match in find_matches(graph, root, guarded=False)
    }


# --- the pattern language -------------------------------------------------------------------------


@settings(max_examples=100)
@given(parts(9, "xy"), parts(4, "abc"))
def test_the_matcher_finds_what_vf2_finds(drawn: list[Part], wanted: list[Part]) -> None:
    graph = graph_of(drawn, [])
    root, members = pattern_of(wanted)
    assert ours(graph, root, members) == expected(graph, members)


@settings(max_examples=100)
@given(parts(9, "xy"), st.data())
def test_a_pattern_cut_out_of_the_graph_is_found(drawn: list[Part], data: st.DataObject) -> None:
    graph = graph_of(drawn, [])
    # Some operands of the graph become variables: the same one wherever the same value is read.
    cut = data.draw(st.sets(st.integers(0, len(drawn) - 1), max_size=3))
    letters: dict[tuple[int, int] | str, str] = {"x": "ix", "y": "iy"}
    letters |= {(at, out): f"c{at}o{out}" for at in cut for out in range(2)}
    wanted = [
        Part(part.kind, tuple(letters.get(read, read) for read in part.operands)) for part in drawn
    ]
    root, members = pattern_of(wanted)
    itself = tuple(sorted((member.node_name, f"n{member.node_name[1:]}") for member in members))
    found = ours(graph, root, members)
    assert itself in found
    assert found == expected(graph, members)


@settings(max_examples=75)
@given(parts(9, "xy"), parts(4, "abc"), st.sets(st.integers(0, 8), max_size=3))
def test_a_guarded_match_is_one_that_nobody_looks_into(
    drawn: list[Part], wanted: list[Part], shown: set[int]
) -> None:
    graph = graph_of(drawn, [at for at in shown if at < len(drawn)])
    root, _ = pattern_of(wanted)
    programs = compile_pattern(root)
    free = {
        node
        for node in graph.nodes
        if any(why_blocked(match) is None for match in all_matches(programs, node))
    }
    assert {match.node for match in find_matches(graph, root)} == free


# --- nodes and edges ------------------------------------------------------------------------------


@st.composite
def edge_patterns(draw: st.DrawFn) -> tuple[list[str], list[tuple[int, int]]]:
    count = draw(st.integers(1, 4))
    edges = {(draw(st.integers(0, at - 1)), at) for at in range(1, count)}
    pairs = [(tail, head) for head in range(count) for tail in range(head)]
    if pairs:
        edges |= draw(st.sets(st.sampled_from(pairs), max_size=2))
    return [draw(KINDS) for _ in range(count)], sorted(edges)


@settings(max_examples=100)
@given(
    parts(9, "xy"),
    edge_patterns(),
    st.booleans(),
    st.sets(st.integers(0, 8), max_size=3),
    st.data(),
)
def test_nodes_and_edges_find_what_vf2_finds(
    drawn: list[Part],
    wanted: tuple[list[str], list[tuple[int, int]]],
    exclusive: bool,
    shown: set[int],
    data: st.DataObject,
) -> None:
    graph = graph_of(drawn, [at for at in shown if at < len(drawn)])
    kinds, edges = wanted
    slots: dict[tuple[int, int], tuple[int | None, int | None]] = {
        edge: (data.draw(st.sampled_from([None, 0, 1])), data.draw(st.sampled_from([None, 0, 1])))
        for edge in edges
    }
    shape: nx.DiGraph[Any] = nx.DiGraph()
    for at, kind in enumerate(kinds):
        shape.add_node(at, kind=kind)
    shape.add_edges_from((tail, head, {"slot": slots[tail, head]}) for tail, head in edges)

    def edge_fits(edge: Mapping[str, Any], want: Mapping[str, Any]) -> bool:
        output, index = want["slot"]
        return any(output in (None, out) and index in (None, at) for out, at in edge["slots"])

    expected_matches = {
        tuple(nodes[at].label for at in range(len(kinds)))
        for nodes in vf2(shape_of_graph(graph), shape, edge_fits)
        if not exclusive or is_alone(graph, [nodes[at] for at in range(len(kinds))], edges)
    }
    found = pattern_matching(graph, kinds, edges, exclusive, slots=slots)
    assert {tuple(node.label for node in match) for match in found} == expected_matches
    assert len(found) == len(expected_matches)


def is_alone(graph: Graph, nodes: Sequence[Node], edges: Sequence[tuple[int, int]]) -> bool:
    """Tell whether no edge comes into a node that has one, or leaves one, beside those inside."""
    inside, dag = set(nodes), graph.dag
    for tail, head in edges:
        if set(dag.predecessors(nodes[head])) - inside or set(dag.successors(nodes[tail])) - inside:
            return False
        if any(value.producer is nodes[tail] for value in graph.outputs):
            return False
    return True
