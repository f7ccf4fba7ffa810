"""Node scopes: passes bound to a part of a model."""

from typing import Any

import numpy as np
import onnx
import pytest

import tiered
from tests.small import (
    FOUR,
    all_negs_to_relus,
    content,
    model,
    neg_to_abs,
    negs_to_relus,
    proto,
    rename_graph,
)
from tiered import (
    Graph,
    Model,
    Pass,
    PassContext,
    Tensor,
)
from tiered.passes.policy.node_scope import Scope, inverse, name_scope
from tiered.support.errors import UsageError


def with_paths() -> onnx.ModelProto:
    """Return four Negs in a row that are named as exporters do."""
    made = proto(FOUR)
    for node, path in zip(
        made.graph.node, ["/encoder/0/Neg", "/encoder/1/Neg", "/decoder/Neg", "/head"], strict=True
    ):
        node.name = path
    return made


def renamed(given: Model) -> list[str]:
    """Return the names of the nodes that are still Neg."""
    return [node.name for node in given.main.nodes_of("Neg")]


@pytest.mark.parametrize("pass_", [neg_to_abs])
@pytest.mark.parametrize(
    ("scope", "left"),
    [
        ("/encoder/**", ["/decoder/Neg", "/head"]),
        ("/encoder/*", ["/encoder/0/Neg", "/encoder/1/Neg", "/decoder/Neg", "/head"]),
        ("/encoder/0/*", ["/encoder/1/Neg", "/decoder/Neg", "/head"]),
        ("/encoder/[!0]/Neg|/head", ["/encoder/0/Neg", "/decoder/Neg"]),
        ("/encoder/[0^]/Neg", ["/encoder/1/Neg", "/decoder/Neg", "/head"]),
        ("[^]encoder/0/Neg", ["/encoder/0/Neg", "/encoder/1/Neg", "/decoder/Neg", "/head"]),
        ("**", []),
    ],
)
def test_a_pass_bound_to_names_rewrites_nothing_else(
    pass_: Pass, scope: str, left: list[str]
) -> None:
    given = Model.from_proto(with_paths())
    with PassContext() as ctx:
        pass_.on(scope)(given)
    assert renamed(given) == left
    missed = [remark for remark in ctx.remarks if remark.kind == "missed"]
    assert [remark.count for remark in missed] == ([len(left)] if left else [])
    assert all(remark.reason == "not wholly inside the scope" for remark in missed)


def test_a_scope_is_part_of_the_text_and_two_are_both_meant() -> None:
    bound = neg_to_abs.on("/encoder/**").on("**/0/*")
    assert str(bound) == "neg_to_abs@'/encoder/**'@'**/0/*'"
    given = Model.from_proto(with_paths())
    bound(given)
    assert renamed(given) == ["/encoder/1/Neg", "/decoder/Neg", "/head"]


def test_nodes_a_graph_and_a_networkx_view_are_scopes() -> None:
    given = Model.from_proto(with_paths())
    first, second, third, last = given.main.nodes
    neg_to_abs.on([first])(given)
    assert renamed(given) == [second.name, third.name, last.name]
    neg_to_abs.on(given.main.dag.subgraph([second, third]))(given)
    assert renamed(given) == ["/head"]
    neg_to_abs.on(given.main)(given)
    assert renamed(given) == []


def test_a_body_and_a_function_are_scopes() -> None:
    nested = """g (float[2] x, bool c) => (float[2] y) {
        z = Neg(x)
        [If_1] y = If (c) <then_branch = t () => (float[2] a) { a = Neg(z) },
                           else_branch = e () => (float[2] b) { b = Neg(z) }>
    }"""
    given = model(nested)
    neg_to_abs.on("body:If_1")(given)
    assert [len(graph.nodes_of("Neg")) for graph in given.graphs()] == [1, 0, 0]


def test_a_module_of_the_exporter_is_a_scope() -> None:
    made = with_paths()
    for node in made.graph.node:
        scopes = str(["", "m", f"m.{node.name.split('/')[1]}"])
        node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=scopes)
    given = Model.from_proto(made)
    neg_to_abs.on("module:m.encoder")(given)
    assert renamed(given) == ["/decoder/Neg", "/head"]


def test_a_function_pass_that_reaches_out_of_its_scope_is_undone() -> None:
    given = Model.from_proto(with_paths())
    with PassContext() as ctx:
        all_negs_to_relus.on("/encoder/**")(given)
        assert len(renamed(given)) == 4
        all_negs_to_relus.on("**")(given)
        assert renamed(given) == []
    assert any("not wholly inside the scope" in str(remark) for remark in ctx.remarks)


def test_rewrites_that_reach_out_are_undone_one_by_one() -> None:
    given = Model.from_proto(with_paths())
    with PassContext() as ctx:
        negs_to_relus.on("/encoder/**")(given)
    assert renamed(given) == ["/decoder/Neg", "/head"]
    (missed,) = [remark for remark in ctx.remarks if remark.kind == "missed"]
    assert (missed.count, missed.reason) == (2, "not wholly inside the scope")
    assert missed.nodes == ("/decoder/Neg", "/head")
    assert ctx.report.results[0].rewrites == 2
    given.check_view()


def test_a_rewrite_outside_a_scope_gets_no_number() -> None:
    given = Model.from_proto(with_paths())
    with PassContext(rewrite_limit=1) as ctx:
        negs_to_relus.on("/encoder/1/*|/head")(given)
    assert renamed(given) == ["/encoder/0/Neg", "/decoder/Neg", "/head"]
    assert ctx.report.results[0].rewrites == 1
    negs_to_relus(given)
    assert renamed(given) == []


def test_a_body_is_a_scope_for_a_function_pass_that_removes_nodes() -> None:
    nested = """g (float[2] x, bool c) => (float[2] y) {
        z = Neg(x)
        [If_1] y = If (c) <then_branch = t () => (float[2] a) { a = Neg(z) },
                           else_branch = e () => (float[2] b) { b = Neg(z) }>
    }"""
    for pass_ in (negs_to_relus, all_negs_to_relus):
        given = model(nested)
        pass_.on("body:If_1")(given)
        assert [len(graph.nodes_of("Neg")) for graph in given.graphs()] == [1, 0, 0]


def test_what_is_inside_is_decided_before_the_pass_renames_it() -> None:
    @tiered.function_pass(opt_level=0)
    def rename_negs(graph: Graph, ctx: PassContext) -> None:
        for node in graph.nodes_of("Neg"):
            with graph.rewrite("a name => another", node):
                graph.rename_node(node, f"/encoder{node.name}")

    given = Model.from_proto(with_paths())
    rename_negs.on("/encoder/**")(given)
    assert renamed(given) == [
        "/encoder/encoder/0/Neg",
        "/encoder/encoder/1/Neg",
        "/decoder/Neg",
        "/head",
    ]


def test_a_shared_weight_is_changed_only_if_all_its_users_are_inside() -> None:
    shared = """g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
        a = Add(x, w)  y = Mul(a, w)
    }"""

    @tiered.function_pass(opt_level=0)
    def zero(graph: Graph, ctx: PassContext) -> None:
        weight = graph.initializers[0]
        with graph.rewrite("a weight => 0", weight):
            graph.set_constant(weight, Tensor.of(np.zeros(2, np.float32)))

    given = model(shared)
    before = content(given)
    zero.on("node_a")(given)
    assert content(given) == before
    zero.on("node_a|node_y")(given)
    assert content(given) != before


@pytest.mark.parametrize("scope", ["", [], 3, [1, 2]])
def test_what_is_no_scope_is_refused(scope: Any) -> None:
    with pytest.raises(UsageError, match="scope"):
        neg_to_abs.on(scope)


def test_a_module_pass_has_no_scope() -> None:
    with pytest.raises(UsageError, match="rename_graph is a module pass: only rewrite"):
        rename_graph.on("/encoder/**")


def test_not_selects_all_other_nodes() -> None:
    text = "g (float[2] x) => (float[2] y) { a = Relu(x)  y = Exp(a) }"
    first, last = model(text).main.nodes
    first_name = first.label
    scope = Scope.of(f"not:{first_name}")
    assert (scope.holds(first), scope.holds(last)) == (False, True)
    assert str(scope) == f"@'not:{first_name}'"
    assert inverse(name_scope(["a", "b|c"])) == Scope.of("not:a|b[|]c")
    assert inverse(inverse(scope)) == scope
    with pytest.raises(UsageError, match="several conditions has no inverse"):
        inverse(Scope.of("a") & Scope.of("b"))


def test_words_of_scopes_without_a_colon_are_names() -> None:
    given = model("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    (node,) = given.main.nodes
    for name in ("not", "where", "module", "body", "function", "a:b"):
        given.main.rename_node(node, name)
        assert Scope.of(name).holds(node), name
        assert not Scope.of(f"{name}x").holds(node), name
    for text in ("not", "module:m"):
        assert inverse(Scope.of(text)) == Scope.of(f"not:{text}")
    with pytest.raises(
        UsageError, match=r"^'where:f' is a function of nodes, which has no text; use"
    ):
        Scope.of("where:f")


def test_a_scope_of_a_graph_or_a_function_has_a_text() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float[2] x, bool c) => (float[2] y) { z = own.f(x)
            [If_1] y = If (c) <then_branch = t () => (float[2] a) { a = Neg(z) },
                               else_branch = e () => (float[2] b) { b = Neg(z) }> }
        <domain: "own", opset_import: ["" : 21]> f (v) => (u) { u = Neg(v) }"""
    given = Model.from_proto(onnx.parser.parse_model(text))
    main, *others = given.graphs()
    assert [Scope.of(graph).parts[0].text for graph in (main, *others)] == [
        "**", "body:If_1", "body:If_1", "function:f",
    ]  # fmt: skip
    scope = Scope.of(others[0])
    negs = [node for graph in others for node in graph.nodes]
    assert [scope.holds(node) for node in negs] == [True, False, False]
    assert [Scope.of(main).holds(node) for node in negs] == [True, True, False]

    def first(node: Any) -> bool:
        return node is negs[0]

    chosen = Scope.of(first)
    assert chosen.parts[0].text == "where:first"
    assert [chosen.holds(node) for node in negs] == [True, False, False]
    assert Scope.of(chosen) is chosen
    part = chosen.parts[0]
    assert part == Scope.of(first).parts[0]
    assert part != Scope.of("**").parts[0]
    assert part != "where:first"
