"""A rule is applied where it may be, and its rewrites are held against the target."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnx
import pytest

from tests.small import model, ops, parsed
from tiered import Graph, Model, Pass, PassContext, Skip, Value, op, rewrite, var
from tiered.graph.core.edit import Edit
from tiered.passes import RewritePass
from tiered.passes.kinds import rewrite_pass
from tiered.targets.shared_rules import NO_OPERATOR, in_newer_opset

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


@dataclass
class Made:
    """A node of a rewrite, as far as a target is asked about it."""

    op_type: str
    domain: str = ""
    is_live: bool = True
    is_early: bool = False
    is_call: bool = False

    @property
    def owner(self) -> Any:
        return SimpleNamespace(
            model=SimpleNamespace(function=lambda *_: self if self.is_call else None)
        )

    @property
    def callee(self) -> tuple[str, str]:
        return self.domain, self.op_type

    def is_op(self, op_type: str) -> bool:
        return self.op_type == op_type


@dataclass
class Target:
    """A target with operators that it refuses, runs slowly or lacks."""

    refuses: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    reasons: list[Any] = field(default_factory=lambda: ["no such dtype"])

    def __str__(self) -> str:
        return "T"

    def refusals(self, node: Made) -> list[Any]:
        return self.reasons if node.op_type in self.refuses else []

    def runs_slowly(self, node: Made) -> bool:
        return node.op_type in self.slow

    def may_be_slow(self, op_type: str, domain: str) -> bool:
        return op_type in self.slow

    def has(self, node: Made) -> bool:
        return node.op_type not in self.lacks

    def supports(self, op_type: str, domain: str) -> bool:
        return op_type not in self.refuses


def judged(
    target: Target, made: Sequence[Made], removed: str = "Neg", integers: bool = False
) -> str:
    ctx: Any = SimpleNamespace(target=target)
    approve = rewrite_pass._approval(ctx, makes_integers=integers)
    edits: Any = [(Edit.ADD_NODE, node, "more") for node in made]
    skip = approve([*edits, (Edit.REMOVE_NODE, Made(removed), "more"), (Edit.SET_INPUT, 3, 4)])
    return "" if skip is None else str(skip)


def test_a_target_approves_of_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    gelu, exp, early = Made("Gelu", "ms"), Made("Exp"), Made("Exp", is_early=True)
    refuses = Target(refuses=("Gelu", "Exp"))
    slow, lacks = Target(slow=("Gelu", "Exp")), Target(lacks=("Exp", "Log"))
    no_gelu, no_exp = (f"T does not take {kind}: no such dtype" for kind in ("Gelu", "Exp"))
    is_slow = "Gelu is slower than its parts for this dtype"
    has_no = "T has no Exp, and has what it would replace"
    rows: list[tuple[Target, list[Made], dict[str, Any], str]] = [
        (Target(), [exp, gelu], {}, ""),
        (refuses, [gelu], {}, no_gelu),
        (refuses, [exp], {}, ""),
        (refuses, [exp], {"integers": True}, no_exp),
        (refuses, [early], {}, no_exp),
        (refuses, [early], {"removed": "Exp"}, ""),
        (refuses, [Made("Gelu", "ms", is_live=False)], {}, ""),
        (refuses, [Made("Gelu", "ms", is_call=True)], {}, ""),
        (slow, [gelu], {}, is_slow),
        (slow, [gelu], {"removed": "Exp"}, ""),
        (slow, [exp], {}, ""),
        (slow, [Made("Odd", "ms")], {}, ""),
        (lacks, [exp, Made("Log")], {}, has_no),
        (lacks, [exp], {"removed": "Log"}, ""),
        (lacks, [Made("Sin")], {}, ""),
    ]
    for target, made, held, expected in rows:
        assert judged(target, made, **held) == expected, (target, made, held)
    unknown = Target(refuses=("Gelu",), reasons=[NO_OPERATOR])
    for newer, reason in (("it is newer", "it is newer"), (None, NO_OPERATOR)):
        monkeypatch.setattr(rewrite_pass, "newer_operator", lambda node, newer=newer: newer)
        assert judged(unknown, [gelu]) == f"T does not take Gelu: {reason}"


def test_a_target_refuses_an_operator_before_it_is_made() -> None:
    text = """<ir_version: 10, opset_import: ["" : 17, "own" : 1]>
        g (float[2] x) => (float[2] y) { y = own.Negated(x) }
        <domain: "own", opset_import: ["" : 17]> Negated (v) => (u) { u = Abs(v) }"""
    graph = Model.from_proto(onnx.parser.parse_model(text)).main
    target: Any = Target(refuses=("Negated", "Gelu", "Odd"))
    newer = in_newer_opset("Gelu", 17)
    assert newer
    for op_type, domain, expected in (
        ("Exp", "", None),
        ("Negated", "own", None),
        ("Gelu", "", f"T does not take Gelu: {newer}"),
        ("Odd", "", f"T does not take Odd: {NO_OPERATOR}"),
    ):
        assert rewrite_pass._refusal(target, graph, op_type, domain) == expected, op_type
