"""A rule is applied where it may be, and its rewrites are held against the target."""

from pathlib import Path

import onnx
import pytest

from tests.small import model, ops, parsed
from tiered import Graph, Model, Pass, PassContext, Skip, Value, op, rewrite, var
from tiered.passes import RewritePass

RELUS = "g (float[2] x) => (float[2] y) { a = Relu(x)  b = Relu(a)  y = Relu(b) }"


@rewrite(op.Relu(op.Relu(var.x)), opt_level=1)
def fuse(graph: Graph, x: Value) -> Value:
    """Two are one."""
    return graph.op.Relu(x)


def reasons(pass_: Pass, given: Model, **settings: object) -> list[str]:
    """Apply a pass; return the reasons of nodes that stay."""
    ctx = PassContext(**settings)  # type: ignore[arg-type]  # any settings
    with ctx:
        pass_(given)
    return [remark.reason for remark in ctx.remarks if remark.kind == "missed"]


def test_a_rule_is_applied_until_it_fires_nowhere() -> None:
    given = model(RELUS)
    assert isinstance(fuse, RewritePass)
    assert fuse.rule.pattern == op.Relu(op.Relu(var.x))
    fuse(given)
    assert ops(given) == ["Relu"]
    assert given.gate.count == 2


def test_all_nodes_of_a_match_have_to_be_in_the_scope() -> None:
    given = model(RELUS)
    assert reasons(fuse.on("node_b"), given) == ["not wholly inside the scope"]
    assert ops(given) == ["Relu"] * 3
    fuse.on("node_[ab]")(given)
    assert ops(given) == ["Relu"] * 2


@rewrite(op.Neg(var.x), opt_level=0)
def to_gelu(graph: Graph, x: Value) -> Value:
    """Of no meaning: makes an operator of onnxruntime."""
    return graph.op("com.microsoft").QuickGelu(x)


@rewrite(op.Neg(var.x), opt_level=0)
def to_odd(graph: Graph, x: Value) -> Value:
    """Of no meaning: makes an operator that no target has."""
    return graph.op("com.microsoft").Odd(x)


NEG = "(float[2] x) => (float[2] y) { y = Neg(x) }"


def test_without_a_target_any_operator_is_made() -> None:
    given = parsed(NEG)
    assert reasons(to_odd, given) == []
    assert ops(given) == ["Odd"]


def test_a_target_that_lacks_an_operator_undoes_the_rewrite() -> None:
    given = parsed(NEG)
    (reason,) = reasons(to_odd, given, backend="onnxruntime_cpu")
    assert "does not take Odd" in reason
    assert ops(given) == ["Neg"]
    assert reasons(to_gelu, given, backend="onnxruntime_cpu") == []
    assert ops(given) == ["QuickGelu"]


def test_a_local_function_is_taken_by_every_target() -> None:
    @rewrite(op.Neg(var.x), opt_level=0, name="to_own")
    def to_own(graph: Graph, x: Value) -> Value:
        """Call a local function."""
        return graph.op("own").Negated(x)

    text = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float[2] x) => (float[2] y) { y = Neg(x) }
        <domain: "own", opset_import: ["" : 21]> Negated (v) => (u) { u = Abs(v) }"""
    given = Model.from_proto(onnx.parser.parse_model(text))
    assert reasons(to_own, given, backend="onnxruntime_cpu") == []
    assert ops(given) == ["Negated"]


def test_a_pass_that_declares_needs_is_asked_even_without_a_named_target() -> None:
    pass_ = rewrite(op.Neg(var.x), opt_level=0, name="needing", makes=["com.microsoft::QuickGelu"])(
        lambda graph, x: graph.op("com.microsoft").QuickGelu(x)
    )
    assert pass_.approval(PassContext.current()) is not None
    assert fuse.approval(PassContext.current()) is None
    assert fuse.approval(PassContext(backend="onnxruntime_cpu")) is not None


def test_graphs_that_do_not_meet_a_condition_are_left_alone() -> None:
    def is_main(graph: Graph, ctx: PassContext) -> Skip | None:
        return None if graph.is_main else Skip("a body")

    text = """g (float[2] x, bool c) => (float[2] y) { z = Relu(x)  k = Relu(z)
        y = If (c) <then_branch = t () => (float[2] p) { a = Relu(k)  p = Relu(a) },
                    else_branch = e () => (float[2] q) { q = Neg(k) }> }"""
    given = model(text)
    pass_ = rewrite(op.Relu(op.Relu(var.x)), opt_level=1, name="mine", precondition=is_main)(
        lambda graph, x: graph.op.Relu(x)
    )
    assert set(reasons(pass_, given)) == {"a body"}
    kinds = [[node.op_type for node in graph.nodes] for graph in given.graphs()]
    assert sorted(kinds[0]) == ["If", "Relu"]
    assert kinds[1] == ["Relu", "Relu"]


def test_what_is_ensured_of_each_graph_undoes_the_pass() -> None:
    def never(graph: Graph, ctx: PassContext) -> bool:
        return False

    given = model(RELUS)
    pass_ = rewrite(op.Relu(op.Relu(var.x)), opt_level=1, name="mine", postcondition=never)(
        lambda graph, x: graph.op.Relu(x)
    )
    with pytest.raises(Exception, match="mine"):
        pass_(given)
    assert ops(given) == ["Relu"] * 3
    assert given.gate.refusal is None


def test_the_gate_forgets_the_target_when_a_rule_raises() -> None:
    @rewrite(op.Neg(var.x), opt_level=0, name="dying")
    def dying(graph: Graph, x: Value) -> Value:
        """Raise."""
        raise ZeroDivisionError(Path("x"))

    given = parsed(NEG)
    with pytest.raises(Exception, match="dying"), PassContext(backend="onnxruntime_cpu"):
        dying(given)
    assert given.gate.refusal is None
