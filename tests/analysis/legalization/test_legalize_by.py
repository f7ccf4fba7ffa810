import pytest

from tiered import Graph, Model, Skip, UsageError, Value, legalize_by, op, rewrite, var
from tiered.passes.interface.registry import registry
from tiered.testing import parse

TEXT = "(float[2,3] x, float[3] s) => (float[2,3] y) { y = LayerNormalization(x, s) }"


def test_a_node_is_replaced_by_the_rule_of_a_pass() -> None:
    model = Model.from_proto(parse(TEXT))
    (node,) = model.main.nodes
    assert legalize_by(node, "lower_layernorm") is None
    assert "LayerNormalization" not in [each.op_type for each in model.main.nodes]


def test_what_was_begun_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    @rewrite(op.Relu(var.x), opt_level=None, legalizes=True)
    def begin(graph: Graph, x: Value) -> Value | Skip:
        """Relu(x)  =>  an Abs, and then a reason against it"""
        return Skip("{} is not what is wanted", graph.op.Abs(x).label)

    monkeypatch.setattr(registry, "named", lambda name: begin)
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Relu(x) }"))
    mark = model.mark()
    (node,) = model.main.nodes
    assert "is not what is wanted" in str(legalize_by(node, "begin"))
    assert not model.changed_since(mark)
    assert [each.op_type for each in model.main.nodes] == ["Relu"]


def test_a_pass_that_is_no_legalization_is_an_error() -> None:
    (node,) = Model.from_proto(parse(TEXT)).main.nodes
    with pytest.raises(UsageError, match=r"fuse_gelu is not a legalization; .*lower_layernorm"):
        legalize_by(node, "fuse_gelu")
