"""Searching: paths, sets of nodes, patterns as nodes and edges, each with a bound."""

from typing import Any

import pytest

from tests.small import model
from tiered import Graph, Node, SearchLimitError, UsageError
from tiered.compat import ppq
from tiered.rewriter import opset_matching, path_matching, pattern_matching
from tiered.rewriter.subgraphs.graph_search import has_edge, search_order

DIAMOND = """g (float[2,3,4,4] x, float[3,3,1,1] w) => (float[2,3,4,4] y) {
    c = Conv(x, w)  r = Relu(c)  l = Sigmoid(r)  m = Tanh(r)  a = Add(l, m)  d = Conv(a, w)
    n = Neg(d)  y = Abs(n)
}"""


def graph(text: str = DIAMOND) -> Graph:
    return model(text).main


def labels(found: Any) -> Any:
    return [node.label.removeprefix("node_") for node in found]


def any_step(node: Node, after: Node) -> bool:
    return True


# --- paths ----------------------------------------------------------------------------------------


def test_every_path_is_found() -> None:
    paths = path_matching(graph(), "Conv", any_step, "Conv", "down")
    assert [labels(path) for path in paths] == [list("crlad"), list("crmad")]


def test_up_is_against_the_flow() -> None:
    paths = path_matching(graph(), "Conv", any_step, "Conv")
    assert [labels(path) for path in paths] == [list("dalrc"), list("damrc")]


def test_a_path_stops_at_the_first_end() -> None:
    paths = path_matching(graph(), "Abs", any_step, "Conv")
    assert [labels(path) for path in paths] == [list("ynd")]


def test_relays_see_both_nodes() -> None:
    def through_tanh(node: Node, after: Node) -> bool:
        return after.op_type != "Sigmoid"

    paths = path_matching(graph(), "Conv", through_tanh, "Conv", "down")
    assert [labels(path) for path in paths] == [list("crmad")]


def ladder(steps: int) -> str:
    """Return a graph with 2 ** steps paths from its Abs to its Ceil, and as many to nowhere."""
    parts = ["v0 = Abs(x)"]
    for i in range(steps):
        parts.append(f"a{i} = Relu(v{i}) b{i} = Neg(v{i}) v{i + 1} = Add(a{i}, b{i})")
    body = "\n".join(parts)
    return f"g (float[2] x) => (float[2] y, float[2] z) {{ {body} y = Ceil(v{steps}) z = Tanh(y) }}"


def test_too_many_paths_raise_instead_of_hanging() -> None:
    with pytest.raises(SearchLimitError, match="more than 1,000 paths"):
        path_matching(graph(ladder(60)), "Abs", any_step, "Ceil", "down", max_paths=1000)
    assert issubclass(SearchLimitError, OverflowError)


def test_paths_that_lead_nowhere_cost_nothing() -> None:
    assert path_matching(graph(ladder(60)), "Abs", any_step, "Floor", "down") == []


def test_there_are_two_directions() -> None:
    with pytest.raises(UsageError, match="'up' or 'down', not 'left'"):
        path_matching(graph(), "Conv", any_step, "Conv", "left")  # type: ignore[arg-type]  # point


# --- sets -----------------------------------------------------------------------------------------


def test_the_nodes_of_all_paths() -> None:
    assert labels(opset_matching(graph(), "Conv", any_step, "Conv", "down")) == list("crlmad")
    assert labels(opset_matching(graph(), "Abs", any_step, "Conv")) == list("dny")


def test_the_nodes_of_very_many_paths_take_linear_time() -> None:
    assert len(opset_matching(graph(ladder(300)), "Abs", any_step, "Ceil", "down")) == 902
    assert len(opset_matching(graph(ladder(300)), "Abs", any_step, None, "down")) == 903


def test_without_an_end_it_goes_as_far_as_relays_lead() -> None:
    def is_cheap(node: Node, after: Node) -> bool:
        return after.op_type != "Conv"

    found = opset_matching(graph(), lambda node: node.label == "node_c", is_cheap, None, "down")
    assert labels(found) == list("crlma")


# --- nodes and edges ------------------------------------------------------------------------------

MISH = """g (float[2,3,4,4] x, float[3,3,1,1] w) => (float[2,3,4,4] y{more}) {{
    c = Conv(x, w)  s = Softplus(c)  t = Tanh(s)  y = Mul(c, t) {other}
}}"""
MISH_NODES = ["Conv", "Softplus", "Tanh", "Mul"]
MISH_EDGES = [(0, 1), (1, 2), (2, 3), (0, 3)]


def test_the_nodes_come_in_the_order_of_the_patterns() -> None:
    (found,) = pattern_matching(graph(MISH.format(more="", other="")), MISH_NODES, MISH_EDGES)
    assert labels(found) == list("csty")


def test_exclusive_matches_are_seen_by_nobody_else() -> None:
    text = MISH.format(more=", float[2,3,4,4] z", other="z = Abs(t)")
    assert pattern_matching(graph(text), MISH_NODES, MISH_EDGES) == []
    assert len(pattern_matching(graph(text), MISH_NODES, MISH_EDGES, exclusive=False)) == 1


def test_a_result_that_is_absent_is_seen_by_nobody() -> None:
    text = "g (float[2] x) => (float[2] y) { , a = own.F(x) y = Abs(a) }"
    assert labels(*pattern_matching(graph(text), ["F", "Abs"], [(0, 1)])) == ["", "y"]


def test_graph_outputs_and_captures_are_somebody_else() -> None:
    shown = MISH.format(more=", float[2,3,4,4] t", other="")
    assert pattern_matching(graph(shown), MISH_NODES, MISH_EDGES) == []
    captured = """g (float[2] x, bool b) => (float[2] y, float[2] z) {
        r = Relu(x)  y = Neg(r)
        z = If(b) <then_branch = t () => (float[2] p) { p = Abs(r) },
                   else_branch = e () => (float[2] q) { q = Ceil(x) }>
    }"""
    assert pattern_matching(graph(captured), ["Relu", "Neg"], [(0, 1)]) == []
    assert pattern_matching(graph(captured), ["Relu", "If"], [(0, 1)], exclusive=False)


def test_nothing_but_constants_comes_into_an_exclusive_match() -> None:
    text = """g (float[2] x) => (float[2] y, float[2] z) {
        k = Constant<value_float=1.0>()  r = Relu(x)  y = Add(r, k)  n = Neg(x)  z = Sub(r, n)
    }"""
    one = """g (float[2] x) => (float[2] y) {
        k = Constant<value_float=1.0>()  r = Relu(x)  y = Add(r, k)
    }"""
    assert labels(*pattern_matching(graph(one), ["Relu", "Add"], [(0, 1)])) == ["r", "y"]
    two = "g (float[2] x) => (float[2] y) { n = Neg(x) r = Relu(x) y = Add(r, n) }"
    assert pattern_matching(graph(two), ["Relu", "Add"], [(0, 1)]) == []
    assert pattern_matching(graph(text), ["Relu", "Sub"], [(0, 1)]) == []


def test_slots_tell_operands_apart() -> None:
    text = "g (float[2] x) => (float[2] y) { r = Relu(x) n = Neg(x) y = Div(r, n) }"
    nodes, edges = ["Relu", "Div"], [(0, 1)]

    def count(output: int | None, index: int | None) -> int:
        slots = {(0, 1): (output, index)}
        return len(pattern_matching(graph(text), nodes, edges, False, slots=slots))

    assert [count(None, 0), count(None, 1), count(0, None), count(1, None)] == [1, 0, 1, 0]


def test_an_edge_is_from_an_output_to_an_input_or_a_body() -> None:
    text = """g (float[2] x, bool c) => (float[1] y, float[1] z) {
        a, b = Split<axis=0, num_outputs=2>(x)  y = Sub(b, a)
        z = If(c) <then_branch = t () => (float[1] p) { p = Neg(a) },
                   else_branch = e () => (float[1] q) { q = Abs(a) }> }"""
    found = graph(text)
    split, sub, branch = (found.nodes_of(name)[0] for name in ("Split", "Sub", "If"))
    inner = branch.bodies[0].nodes[0]
    rows = [
        (split, sub, "**", True), (split, sub, "0*", True), (split, sub, "00", False),
        (split, sub, "01", True), (split, sub, "10", True), (split, sub, "11", False),
        (split, sub, "*2", False), (sub, split, "**", False), (split, branch, "**", True),
        (split, branch, "0*", True), (split, branch, "1*", False), (split, branch, "*0", False),
        (sub, branch, "**", False), (split, inner, "**", False),
    ]  # fmt: skip
    gap = graph("g (float[2] x, float h) => (float[2] y) { a = Abs(h) y = Clip(x, , a) }")
    rows.append((gap.nodes[0], gap.nodes[1], "*2", True))
    for tail, head, slots, expected in rows:
        output, index = (None if slot == "*" else int(slot) for slot in slots)
        assert has_edge(tail, head, output, index) is expected, (tail, head, slots)


def test_as_many_as_the_limit_are_found() -> None:
    assert len(path_matching(graph(), "Conv", any_step, "Conv", "down", max_paths=2)) == 2
    with pytest.raises(SearchLimitError, match="more than 1 paths"):
        path_matching(graph(), "Conv", any_step, "Conv", "down", max_paths=1)
    pair: tuple[list[Any], list[tuple[int, int]]] = ["Neg", "Abs"], [(0, 1)]
    assert len(pattern_matching(graph(), *pair, max_candidates=2)) == 1
    with pytest.raises(SearchLimitError, match="more than 1 partial matches"):
        pattern_matching(graph(), *pair, max_candidates=1)


def test_a_search_begins_at_the_last_node_that_nothing_reads() -> None:
    rows = [
        (1, [], [0]),
        (3, [(0, 1), (1, 2)], [2, 1, 0]),
        (3, [(1, 0), (1, 2)], [2, 1, 0]),
        (4, [(0, 1), (0, 2), (1, 3), (2, 3)], [3, 1, 2, 0]),
    ]
    for count, edges, expected in rows:
        assert search_order(count, edges, {}) == expected


def test_predicates_are_patterns() -> None:
    found = pattern_matching(graph(), [lambda node: node.name == "node_n", "Abs"], [(0, 1)])
    assert labels(*found) == ["n", "y"]


def test_too_many_partial_matches_raise() -> None:
    names = [f"r{i}" for i in range(40)]
    body = " ".join(f"{name} = Relu(a)" for name in names)
    text = f"g (float[2] x) => (float[2] y) {{ a = Abs(x) {body} y = Sum({', '.join(names)}) }}"
    edges = [(0, at) for at in range(1, 7)]
    with pytest.raises(SearchLimitError, match="more than 5,000 partial"):
        pattern_matching(graph(text), ["Abs", *["Relu"] * 6], edges, max_candidates=5000)


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        (["Relu", "Neg"], [(0, 1), (1, 0)], "form a cycle"),
        (["Relu", "Neg"], [], "not connected"),
        (["Relu"], [(0, 1)], r"edge \(0, 1\) is outside of the 1 patterns"),
        (["Relu"], [(1, 0)], r"edge \(1, 0\) is outside of the 1 patterns"),
        (["Relu", "Neg"], [(0, 1), (-1, 1)], r"edge \(-1, 1\) is outside of the 2 patterns"),
        (["Relu", "Neg"], [(0, 1), (0, -1)], r"edge \(0, -1\) is outside of the 2 patterns"),
        ([], [], "there are no patterns"),
    ],
)
def test_edges_make_an_acyclic_connected_graph(
    nodes: list[Any], edges: list[tuple[int, int]], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        pattern_matching(graph(), nodes, edges)


def test_slots_are_those_of_edges() -> None:
    with pytest.raises(UsageError, match="which is no edge"):
        pattern_matching(graph(), ["Relu", "Neg"], [(0, 1)], slots={(1, 0): (0, 0)})


# --- PPQ's names ----------------------------------------------------------------------------------


def test_ppq_names_search_alike() -> None:
    searchable = ppq.SearchableGraph(graph(MISH.format(more="", other="")))
    (found,) = searchable.pattern_matching(
        [lambda operation: operation.is_computing_op, "Softplus", "Tanh", "Mul"],
        [[0, 1], [1, 2], [2, 3], [0, 3]],
        exclusive=True,
    )
    assert [operation.type for operation in found] == MISH_NODES
    pattern = ppq.PatternTree(["Softplus", ppq.TypeExpr("Tanh")], [[0, 1]])
    assert pattern.match(searchable) == [found[1:3]]
    with pytest.raises(UsageError, match="form a cycle"):
        ppq.GraphPattern(["Softplus", "Tanh"], [[0, 1], [1, 0]])
    (path,) = searchable.path_matching(
        "Softplus", lambda x, y: True, lambda op: op.type == "Mul", "down"
    )
    assert [operation.type for operation in path.tolist()] == ["Softplus", "Tanh", "Mul"]
    everything = searchable.opset_matching("Softplus", lambda x, y: True, "Mul", "down")
    assert {operation.type for operation in everything} == {"Softplus", "Tanh", "Mul"}
    assert len(everything.filter(lambda operation: operation.type == "Tanh")) == 2
    assert len(everything) == 2
