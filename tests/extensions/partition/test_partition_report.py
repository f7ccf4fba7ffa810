"""The rows of a report: what each partition has, and what crosses its boundary."""

import pytest

from tests.extensions.partition.graphs import labels, model
from tiered import ModelError
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.extensions.partition import OperatorSupport, propose_partitions
from tiered.extensions.partition.boundary import graph_of
from tiered.extensions.partition.partition_report import report_of


def test_the_rows_of_a_report() -> None:
    of = model("""g (float[N,2] x, bool[2] z) => (float[N,3] y, float[2] u) <float[2,3] w> {
        a = Neg(x)  k = Constant<value_float=2.0>()  b = MatMul(a, w)  c = own.F(b)
        d = Neg(c)  e = Sin(d)  u = own.F(k)  y = Neg(e) }""".replace(
        "<float[2,3] w>", "<float[2,3] w = {1,2,3,4,5,6}>"),
        '<ir_version: 10, opset_import: ["" : 21, "own" : 1]>\n')  # fmt: skip
    support = OperatorSupport(dict.fromkeys(("Neg", "MatMul")))
    for target, name, sizes, rows in (
        ("npu", "npu ", None, ((2, 128, 192, 96), (1, 0, 0, 0), (1, 0, 192, 0), (3, 192, 8, 0))),
        ("", "", LayoutSizes({"N": 1}, 1),
         ((2, 8, 12, 6), (1, 0, 0, 0), (1, 0, 12, 0), (3, 12, 8, 0))),
    ):  # fmt: skip
        parts = propose_partitions(of, {target: support}, allows_single_node_partition=True)
        assert [labels(part.nodes) for part in parts] == [["a", "b"], ["d"], ["y"]]
        found = report_of(of, parts, sizes)
        assert [(row.name, row.target) for row in found] == [
            *((f"{name}{part.id}", target) for part in parts), ("host", "host"),
        ]  # fmt: skip
        assert [(row.nodes, row.bytes_in, row.bytes_out, row.multiply_adds) for row in found] == [
            *rows
        ]
        assert [dict(row.operators) for row in found] == [
            {"Neg": 1, "MatMul": 1}, {"Neg": 1}, {"Neg": 1}, {"own::F": 2, "Sin": 1},
        ]  # fmt: skip
    whole = propose_partitions(of, {"npu": OperatorSupport(dict.fromkeys(("Neg", "Sin")))})
    assert [row.name for row in report_of(of, whole)] == ["npu 0", "host"]


def test_the_nodes_of_a_partition_are_of_one_graph() -> None:
    of = model("""g (float[2] x, bool c) => (float[2] y) { a = Sin(x)  y = If <
        then_branch = t () => (float[2] p) { p = Neg(a) },
        else_branch = e () => (float[2] q) { q = Sin(a) }> (c) }""")
    body, other = of.main.body_nodes[0].bodies
    assert graph_of(body.nodes) is body
    with pytest.raises(ModelError) as raised:
        graph_of([*body.nodes, *other.nodes, *of.main.nodes])
    assert str(raised.value) == (
        f"a partition has nodes of {body!r} and of {other!r}; expected nodes of one graph: make "
        "one partition for each graph"
    )
    with pytest.raises(ModelError) as raised:
        graph_of([])
    assert str(raised.value) == "a partition has no nodes; expected at least one"
