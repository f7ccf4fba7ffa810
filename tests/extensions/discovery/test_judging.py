"""Graphs become models, and what the pipeline leaves of them is read as expressions again."""

import numpy as np
import onnx
import pytest

from tests.small import made_by, named, parsed
from tiered.extensions.discovery.expressions import ExpressionTable, GrammarExpr
from tiered.extensions.discovery.judging import GraphReader, Judged, PipelineJudge, model_of
from tiered.graph import DataType, Model
from tiered.support.errors import TieredError

FLOAT = int(DataType.FLOAT)
SPLIT = """(float[4,2] x) => (float[3,2] y) <int64[2] s = {1,3}> {
    a, b = Split<axis = 0>(x, s)  i = Identity(b)  y = Softmax<axis = 0>(i) }"""


def test_a_value_is_read_with_operators_attributes_and_results() -> None:
    table = ExpressionTable()
    model = parsed(SPLIT)
    found = GraphReader(table, model.main).read(named(model, "y"))
    assert str(found) == "Softmax<axis=0>(Split<result=1>(x, [1,3]))"
    assert found is not None
    assert (found.dtype, found.shape) == (FLOAT, (3, 2))
    again = GraphReader(table, model.main).read(named(model, "y"))
    assert again is found


def test_reading_stops_at_borders() -> None:
    table = ExpressionTable()
    model = parsed(SPLIT)
    border = table.border("z", FLOAT, (3, 2))
    found = GraphReader(table, model.main, {named(model, "b"): border}).read(named(model, "y"))
    assert str(found) == "Softmax<axis=0>(z)"


def test_what_has_no_static_type_or_a_body_is_not_read() -> None:
    table = ExpressionTable()
    model = parsed("(float[N] x) => (float[N] y) { a = Neg(x)  y = Abs(a) }")
    assert GraphReader(table, model.main).read(named(model, "y")) is None
    model = parsed(
        """(float[2] x, bool p) => (float[2] y) {
        r = If(p) <then_branch = t () => (float[2] u) { u = Neg(x) },
                   else_branch = e () => (float[2] v) { v = Abs(x) }>  y = Abs(r) }"""
    )
    assert made_by(model, "r").bodies
    assert GraphReader(table, model.main).read(named(model, "y")) is None


def test_graphs_of_one_model_are_judged_each_by_itself() -> None:
    table = ExpressionTable()
    x = table.border("x", FLOAT, (2, 3))
    kind = (FLOAT, (2, 3))
    twice = table.apply("Relu", [table.apply("Relu", [x], kind=kind)], kind=kind)
    zero = table.constant(np.zeros((), np.float32))
    sub = table.apply("Sub", [x, zero], kind=kind)
    judged = PipelineJudge(table, 2).judged([twice, sub, x])
    assert [each.member for each in judged] == [twice, sub, x]
    assert [str(each.form) for each in judged] == ["Relu(x)", "x", "x"]
    proto = model_of([twice, sub, x])
    onnx.checker.check_model(proto, full_check=True)
    assert len(proto.graph.output) == 3


def test_a_model_has_its_domains_and_absent_operands() -> None:
    table = ExpressionTable()
    x = table.border("x", FLOAT, (2, 3))
    kind = (FLOAT, (2, 3))
    top = table.constant(np.ones((), np.float32))
    clip = table.apply("Clip", [x, None, top], kind=kind)
    contrib = table.apply("Gelu", [clip], kind=kind, domain="com.microsoft")
    for member, domains in ((clip, [("", 21)]), (contrib, [("", 21), ("com.microsoft", 1)])):
        proto = model_of([member])
        assert [(each.domain, each.version) for each in proto.opset_import] == domains
        graph = Model.from_proto(proto).main
        assert GraphReader(table, graph).read(graph.outputs[0]) is member
    own = parsed("(float[2] x) => (float[2] y) { y = own.Identity(x) }")
    assert str(GraphReader(table, own.main).read(named(own, "y"))) == "Identity(x)"


def test_the_border_of_a_judged_graph_is_itself() -> None:
    table = ExpressionTable()
    x = table.border("x", FLOAT, (2, 3))
    proto = model_of([x])
    assert [node.op_type for node in proto.graph.node] == ["Identity"]
    assert (proto.graph.output[0].name, proto.graph.input[0].name) == ("out_0", "x_0")
    assert PipelineJudge(table, 2).alone(x).form is x


def test_a_graph_that_fails_is_judged_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    table = ExpressionTable()
    one, other = (table.border(name, FLOAT, (2,)) for name in "ab")

    def run(self: PipelineJudge, members: list[GrammarExpr]) -> list[Judged]:
        if other in members:
            raise TieredError(f"no {len(members)}\nin two lines")
        return [Judged(each, each) for each in members]

    monkeypatch.setattr(PipelineJudge, "_run", run)
    judged = PipelineJudge(table, 2).judged([one, other])
    assert judged == [Judged(one, one), Judged(other, None, "no 1")]
