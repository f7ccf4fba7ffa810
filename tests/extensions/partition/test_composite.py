"""Composites: pattern tables, their entries, and matches that become calls of functions."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.extensions.partition.graphs import labels, model
from tiered import Model, Node, UsageError, op, var
from tiered.extensions.partition.composite import (
    COMPOSITE,
    Entry,
    is_composite,
    merge_composites,
    named_tables,
    parsed,
    pattern_table,
    register_pattern_table,
)
from tiered.graph.core.marks import SKIP

NEG_ABS: Entry = ("t.neg_abs", "(p) => (r) { q = Neg(p)  r = Abs(q) }")
NEG: Entry = ("t.neg", op.Neg(var.x))
TEXT = "g (float[2] x) => (float[2] y) { a = Neg(x)  b = Abs(a)  c = Neg(b)  y = Sin(c) }"


@pytest.fixture(autouse=True)
def _no_tables() -> Iterator[None]:
    yield
    for name in ("npu", "dsp"):
        register_pattern_table(name, [])


def operators(of: Model) -> list[str]:
    return [node.op_type for node in of.main.topological_order()]


def test_an_entry_has_a_name_a_pattern_and_perhaps_a_check() -> None:
    def check(match: Any) -> bool:
        return True

    found = parsed([NEG, ("t.abs", "(p) => (q) { q = Abs(p) }", check), ("t.n", NEG[1], None)])
    assert [(name, each) for name, _, each in found] == [
        ("t.neg", None), ("t.abs", check), ("t.n", None)
    ]  # fmt: skip


@pytest.mark.parametrize("entry", [("t",), (), ("t", NEG[1], None, 1)])
def test_another_entry_is_an_error(entry: Any) -> None:
    with pytest.raises(UsageError, match=r"is \(name, pattern\) or \(name, pattern, check\), not "):
        parsed([entry])


def test_tables_are_registered_by_target() -> None:
    register_pattern_table("npu", [NEG])
    register_pattern_table("dsp", [NEG_ABS, NEG])
    assert [entry[0] for entry in pattern_table("dsp")] == ["t.neg_abs", "t.neg"]
    assert pattern_table("gpu") == ()
    names = [entry[0] for entry in named_tables(["npu", "dsp"])]
    assert names == ["t.neg", "t.neg_abs", "t.neg"]
    register_pattern_table("npu", [NEG_ABS])
    assert [entry[0] for entry in named_tables(["npu"])] == ["t.neg_abs"]


def test_a_target_without_a_table_is_an_error_with_a_hint() -> None:
    register_pattern_table("npu", [NEG])
    with pytest.raises(UsageError, match="for the target 'nqu'; did you mean 'npu'"):
        named_tables(["nqu"])
    with pytest.raises(UsageError, match=r"for the target 'something'; there are those of .*npu"):
        named_tables(["npu", "something"])


def test_earlier_entries_come_first_and_a_node_is_in_one_composite() -> None:
    of = model(TEXT)
    calls = merge_composites(of, [NEG_ABS, NEG])
    assert operators(of) == ["t.neg_abs", "t.neg", "Sin"]
    assert [call.op_type for call in calls] == ["t.neg_abs", "t.neg"]
    assert {call.domain for call in calls} == {"tiered.composite"}
    of.check_view()
    other = model(TEXT)
    merge_composites(other, [NEG, NEG_ABS])
    assert operators(other) == ["t.neg", "Abs", "t.neg_1", "Sin"]


def test_the_metadata_of_a_function_is_the_name_of_the_entry() -> None:
    of = model(TEXT)
    calls = merge_composites(of, [NEG])
    assert [call.metadata[COMPOSITE] for call in calls] == ["t.neg", "t.neg"]
    for function in of.functions:
        assert is_composite(function)
        assert {each.key: each.value for each in function.skeleton.metadata_props} == {
            COMPOSITE: "t.neg"
        }
    assert not is_composite(of.main)
    old = model(TEXT, '<ir_version: 9, opset_import: ["" : 21]>\n')
    assert [dict(call.metadata) for call in merge_composites(old, [NEG])] == [{}, {}]


def skipped(of: Model, *table: Entry) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    merge_composites(of, table, lambda node, skip: found.append((node.label, str(skip))))
    return found


def test_a_check_may_decline() -> None:
    of = model(TEXT)
    first: Entry = ("t.neg", NEG[1], lambda match: match.node.label == "a")
    assert skipped(of, first) == [("c", "the check of the pattern table declines")]
    assert operators(of) == ["t.neg", "Abs", "Neg", "Sin"]


def test_a_match_that_nothing_reads_stays() -> None:
    of = model("g (float[2] x) => (float[2] y) { a = Neg(x)  y = Sin(x) }")
    assert skipped(of, NEG) == [("a", "no output of the nodes is used")]


def test_a_node_that_is_left_alone_stays_before_its_check_is_asked() -> None:
    of = model(TEXT)
    of.main.set_metadata(of.main.nodes[0], {SKIP: "1"})
    asked: list[Node] = []

    def check(match: Any) -> bool:
        asked.append(match.node)
        return True

    found = skipped(of, ("t.neg", NEG[1], check))
    assert found == [("a", "the node is marked tiered.skip_optimization")]
    assert labels(asked) == ["c"]


def test_bodies_are_merged_in_and_composites_are_not() -> None:
    text = """g (float[2] x, bool c) => (float[2] y) { y = If(c) <
        then_branch = t () => (float[2] p) { p = Neg(x) },
        else_branch = e () => (float[2] q) { q = Abs(x) }> }"""
    of = model(text)
    assert len(merge_composites(of, [NEG])) == 1
    assert [node.op_type for node in of.main.nodes[0].bodies[0].nodes] == ["t.neg"]
    assert merge_composites(of, [NEG]) == []


def test_functions_that_a_compiler_owns_stay() -> None:
    text = """g (float[2] x) => (float[2] y) { y = f.own(x) }
        <opset_import: ["" : 21], domain: "f"> own (p) => (q) { q = Neg(p) }"""
    header = '<ir_version: 10, opset_import: ["" : 21, "f" : 1]>\n'
    assert len(merge_composites(model(text, header), [NEG])) == 1
    proto = model(text, header).to_proto()
    proto.functions[0].metadata_props.add(key="tiered.compiler", value="npu")
    assert merge_composites(Model.from_proto(proto), [NEG]) == []


def test_inner_values_with_other_users_are_no_match() -> None:
    of = model("g (float[2] x) => (float[2] y, float[2] a) { a = Neg(x)  y = Abs(a) }")
    assert merge_composites(of, [NEG_ABS]) == []


def test_nodes_of_a_match_are_in_the_order_of_the_graph() -> None:
    of = model(TEXT)
    merge_composites(of, [NEG_ABS])
    (function,) = of.functions
    assert [node.op_type for node in function.nodes] == ["Neg", "Abs"]


def test_what_a_declined_match_says_and_which_of_two_matches_is_first() -> None:
    of = model("g (float[2] x) => (float[2] y) { a = Neg(x)  y = Sin(x) }")
    of.main.set_metadata(of.main.nodes[0], {SKIP: "1"})
    assert skipped(of, NEG) == [("a", "the node is marked tiered.skip_optimization")]
    of = model("g (float[2] x) => (float[2] y) { a = Neg(x)  b = Neg(a)  y = Neg(b) }")
    assert skipped(of, ("t.twice", "(p) => (r) { q = Neg(p)  r = Neg(q) }")) == []
    assert operators(of) == ["t.twice", "Neg"]
