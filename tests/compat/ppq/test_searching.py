"""SearchableGraph: paths, sets and patterns of operations."""

from typing import Any

import pytest

from tests.compat.ppq.small_graphs import graph, quantized
from tests.recorded import assert_values
from tiered import UsageError
from tiered.compat.ppq import (
    GraphPattern,
    Operation,
    OperationSet,
    Path,
    PatternTree,
    QuantableOperation,
    SearchableGraph,
    TypeExpr,
)


def test_patterns_are_given_by_the_name_of_ppq() -> None:
    edges = [[0, 1]]
    pattern = PatternTree(patterns=[TypeExpr("Add"), lambda op: op.type == "Neg"], edges=edges)
    (found,) = pattern.match(SearchableGraph(graph().graph))
    assert [operation.type for operation in found] == ["Add", "Neg"]
    assert GraphPattern(["Add", "Neg"], edges).match(graph()) == [found] or found
    assert TypeExpr("Add")(found[0])
    assert not TypeExpr("Add")(found[1])


def test_a_path_grows_at_both_ends() -> None:
    add, neg, last = (graph().operations[f"node_{name}"] for name in "bcy")
    path = Path(neg)
    assert path.append(last).append_left(add) is path
    copy = path.copy()
    assert isinstance(copy, Path)
    assert copy.append(add).tolist() == [add, neg, last, add]
    assert path.tolist() == [add, neg, last]
    assert Path([add, neg]).tolist() == [add, neg]


def test_a_set_filters_in_place_and_holds_operations_only() -> None:
    found = OperationSet(graph().operations.values())
    assert found.filter(lambda operation: operation.type == "Neg") is found
    assert {operation.type for operation in found} == {"Relu", "Add", "Abs"}
    for wrong in (lambda: OperationSet(["Neg"]), lambda: found.add("x"), lambda: found.update([1])):  # type: ignore[list-item,arg-type]  # what is wrong
        with pytest.raises(TypeError, match="an OperationSet holds operations"):
            wrong()


def test_a_searchable_graph_is_made_of_a_graph_of_ppq() -> None:
    on, _, _ = quantized()
    search = SearchableGraph(on)
    (found,) = search.path_matching(
        sp_expr=lambda op: op.type == "Relu",
        rp_expr=lambda op, after: True,
        ep_expr=lambda op: op.type == "Neg",
        direction="down",
    )
    assert [operation.type for operation in found] == ["Relu", "Add", "Neg"]
    assert isinstance(found[1], QuantableOperation)


def test_a_set_takes_several_groups_of_operations() -> None:
    on = graph()
    relu, add, neg, last = on.topological_sort()
    found = OperationSet([relu])
    found.add(add)
    found.update([neg], {last})
    assert found == {relu, add, neg, last}


def test_a_search_of_sets_is_by_type_or_by_a_function() -> None:
    search = SearchableGraph(graph())
    ways: list[Any] = ["Abs", lambda operation: operation.type == "Abs"]
    for start in ways:
        found = search.opset_matching(start, lambda before, after: True, "Relu")
        assert {each.type for each in found} == {"Abs", "Neg", "Add", "Relu"}
        assert isinstance(found, OperationSet)
    stopped = search.opset_matching("Abs", lambda before, after: after.type != "Add", None)
    assert {each.type for each in stopped} <= {"Abs", "Neg"}
    down = search.opset_matching("Add", lambda before, after: True, "Abs", direction="down")
    assert {each.type for each in down} == {"Add", "Neg", "Abs"}


def test_a_relay_sees_the_operation_before_and_after() -> None:
    seen: list[tuple[str, str]] = []

    def relay(before: Operation, after: Operation) -> bool:
        seen.append((before.type, after.type))
        return True

    (path,) = SearchableGraph(graph().graph).path_matching("Abs", relay, "Relu", "up")
    assert isinstance(path, Path)
    assert [each.type for each in path] == ["Abs", "Neg", "Add", "Relu"]
    assert ("Abs", "Neg") in seen
    assert ("Neg", "Add") in seen


SHARED = """g (float[2] x) => (float[2] y, float[2] z) {
    a = Relu(x)  y = Sub(a, x)  z = Sub(x, a) }"""


def test_slots_say_which_operand_an_edge_is() -> None:
    search = SearchableGraph(graph(SHARED))
    assert len(search.pattern_matching(["Relu", "Sub"], [[0, 1]], exclusive=False)) == 2
    for slot, name in ((0, "node_y"), (1, "node_z")):
        slots = {(0, 1): (0, slot)}
        ((_, sub),) = search.pattern_matching(["Relu", "Sub"], [[0, 1]], False, slots=slots)
        assert sub.name == name


def test_matches_have_no_operation_in_common_unless_that_is_allowed() -> None:
    search = SearchableGraph(graph(SHARED))
    pattern = GraphPattern(["Relu", "Sub"], [(0, 1)])
    assert len(pattern.match(search, exclusive=False)) == 2
    assert search.pattern_matching(["Relu", "Sub"], [[0, 1]]) == pattern.match(search)
    assert len(pattern.match(search)) < 2


@pytest.mark.parametrize(
    ("patterns", "edges", "message"),
    [
        (["Add", "Neg"], [[0, 1, 1]], r"an edge has the numbers of two patterns, not \[0, 1, 1\]"),
        (["Add"], [[0]], "numbers of two patterns"),
        (["Add"], [[0, 3]], r"edge \(0, 3\) is outside of the 1 patterns"),
        (["Add", "Neg"], [], "connected"),
        (["Add", "Neg"], [[0, 1], [1, 0]], "cycl"),
    ],
)
def test_edges_make_one_acyclic_graph_of_the_patterns(
    patterns: list[str], edges: list[list[int]], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        GraphPattern(patterns, edges)


def test_patterns_may_be_given_in_two_parts() -> None:
    pattern = GraphPattern(["Add"], [[0, 1]], patterns=["Neg"])
    assert pattern.node_patterns == ["Add", "Neg"]
    ((add, neg),) = pattern.match(graph())
    assert (add.type, neg.type) == ("Add", "Neg")


def test_searches_are_recorded() -> None:
    text = """g (float[2] x) => (float[2] y, float[2] z) {
        a = Relu(x)  b = Neg(a)  c = Abs(b)  d = Add(a, c)
        e = Neg(d)  y = Exp(e)  z = Sub(c, d) }"""
    of = SearchableGraph(graph(text))

    def named(found: Any) -> object:
        if isinstance(found, set):
            return sorted(each.name for each in found)
        return [[each.name for each in one] for one in found]

    names = {
        "path": lambda *args: named(of.path_matching(*args)),
        "ops": lambda *args: named(of.opset_matching(*args)),
        "found": lambda *args, **more: named(of.pattern_matching(*args, **more)),
        "Pattern": GraphPattern,
        "Set": OperationSet,
        "Path": Path,
        "o": of.operations,
        "any": lambda op, after: True,
        "same": graph(text),
        "SearchableGraph": SearchableGraph,
        "named": named,
    }
    assert_values(__file__, names)
