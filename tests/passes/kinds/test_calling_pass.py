"""Passes that call a function: on which graphs, and how their edits count."""

from dataclasses import dataclass, field
from typing import Any

import onnx
import pytest

import tiered
from tests.small import (
    content,
    model,
)
from tiered import (
    Graph,
    Model,
    Pass,
    PassContext,
)
from tiered.passes.kinds import calling_pass
from tiered.rewriter.idioms.functions.outlining import KEPT
from tiered.support.errors import PassError


def test_a_function_pass_sees_every_graph() -> None:
    nested = """g (float[2] x, bool c) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] a) { a = Relu(x) },
                    else_branch = e () => (float[2] b) { b = Neg(x) }>
    }"""
    seen: list[str] = []

    @tiered.function_pass(opt_level=0)
    def name_graphs(graph: Graph, ctx: PassContext) -> None:
        seen.append(graph.name)

    name_graphs(model(nested))
    assert sorted(seen) == ["e", "g", "t"]


def test_a_graph_that_went_with_its_node_is_not_visited() -> None:
    nested = """g (float[2] x, bool c) => (float[2] y) {
        u = If (c) <then_branch = t () => (float[2] a) { a = Relu(x) },
                    else_branch = e () => (float[2] b) { b = Neg(x) }>
        y = Abs(x)
    }"""
    seen: list[str] = []

    @tiered.function_pass(opt_level=0)
    def drop_ifs(graph: Graph, ctx: PassContext) -> None:
        seen.append(graph.name)
        for node in graph.nodes_of("If"):
            graph.remove_node(node)

    drop_ifs(model(nested))
    assert seen == ["g"]


def test_a_class_is_made_anew_for_each_graph() -> None:
    @dataclass
    class CountGraphs:
        limit: int = 2
        seen: int = field(init=False, default=0)

        def transform_graph(self, graph: Graph, ctx: PassContext) -> None:
            self.seen += 1
            assert (self.seen, self.limit) == (1, 3)

    pass_ = tiered.function_pass(opt_level=0)(CountGraphs)
    assert str(pass_.with_options(limit=3)) == "count_graphs{limit=3}"
    pass_.with_options(limit=3)(model())


def test_an_analysis_must_not_edit() -> None:
    def edit(model: Model, ctx: PassContext) -> None:
        ctx.remark("nothing to see")
        model.main.rename_node(model.main.nodes[0], "edited")

    given = model()
    before = content(given)
    analysis = tiered.module_pass(opt_level=0, analysis=True, name="analysis")(edit)
    with pytest.raises(PassError, match="analysis is an analysis, but it edited the model"):
        analysis(given)
    assert content(given) == before


NESTED = """g (float[2] x, bool c) => (float[2] y) {
    y = If (c) <then_branch = t () => (float[2] a) { a = Relu(x) },
                else_branch = e () => (float[2] b) { b = Neg(x) }>
}"""


def renaming(*, blocks: bool = False) -> Pass:
    """Return a function pass that renames all nodes, in one rewrite or in one each."""

    @tiered.function_pass(opt_level=0)
    def rename_all(graph: Graph, ctx: PassContext) -> None:
        for node in graph.nodes:
            if blocks:
                with graph.rewrite("n => m", node):
                    graph.rename_node(node, f"new_{node.name}")
            else:
                graph.rename_node(node, f"new_{node.name}")

    return rename_all


@pytest.mark.parametrize(("blocks", "count"), [(False, 1), (True, 4)])
def test_a_pass_that_counts_no_rewrites_is_one(blocks: bool, count: int) -> None:
    given = model()
    renaming(blocks=blocks)(given)
    assert given.gate.count == count


def test_each_graph_that_is_edited_is_one_rewrite() -> None:
    given = model(NESTED)
    renaming()(given)
    assert given.gate.count == 3


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_beyond_the_limit_a_graph_is_undone(limit: int) -> None:
    given = model(NESTED)
    with PassContext(rewrite_limit=limit):
        renaming()(given)
    names = [node.name for graph in given.graphs() for node in graph.nodes]
    assert sum(name.startswith("new_") for name in names) == limit
    given.check_view()


def test_a_graph_with_edits_outside_of_the_scope_is_undone() -> None:
    given = model()
    before = content(given)
    with PassContext() as ctx:
        renaming().on("node_a")(given)
    assert content(given) == before
    assert len(ctx.remarks) == 1
    assert "not wholly inside the scope" in str(ctx.remarks[0])


def test_a_module_pass_has_no_more_than_one_rewrite() -> None:
    given = model(NESTED)

    @tiered.module_pass(opt_level=0)
    def rename_everywhere(model: Model, ctx: PassContext) -> None:
        for graph in model.graphs():
            for node in graph.nodes:
                graph.rename_node(node, f"new_{node.name}")

    rename_everywhere(given)
    assert given.gate.count == 1


def test_a_function_that_is_marked_is_left_alone() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
        g (float[2] x) => (float[2] y) { [call] y = f.F(x) }
        <domain: "f", opset_import: ["" : 21]> F (v) => (u) { [inner] u = Neg(v) }"""
    made = onnx.parser.parse_model(text)
    made.functions[0].metadata_props.add(key=KEPT, value="1")
    given = Model.from_proto(made)
    renaming()(given)
    names = [node.name for graph in given.graphs() for node in graph.nodes]
    assert sorted(names) == ["inner", "new_call"]


def test_the_law_of_a_rewrite_is_that_of_the_pass() -> None:
    seen: list[str] = []

    class Listener:
        def on_rewrite(self, model: Model, info: Any, record: Any) -> None:
            seen.append(record.law)

    with PassContext(instruments=[Listener()]):
        renaming()(model())
    assert seen == ["rename_all"]


def test_a_graph_with_edits_inside_the_scope_stays() -> None:
    given = model()
    renaming().on("node_*")(given)
    assert all(node.name.startswith("new_") for node in given.main.nodes)


def test_an_edit_against_a_mark_is_undone_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    before = content(model())
    for mark, count in (("it is marked", 0), ("", 1)):
        given = model()
        monkeypatch.setattr(calling_pass, "mark_against_edits", lambda _, mark=mark: mark)
        with PassContext() as ctx:
            renaming()(given)
        assert given.gate.count == count
        assert (content(given) == before) == bool(mark)
        missed = [remark.reason for remark in ctx.remarks if remark.kind == "missed"]
        assert missed == ([mark] if mark else [])


def test_the_law_of_a_pass_in_its_own_file_is_that_of_its_rewrites() -> None:
    seen: list[str] = []
    pass_ = renaming()
    object.__setattr__(pass_, "info", pass_.info._replace(law="a  =>  b"))

    class Listener:
        def on_rewrite(self, model: Model, info: Any, record: Any) -> None:
            seen.append(record.law)

    with PassContext(instruments=[Listener()]):
        pass_(model())
    assert seen == ["a  =>  b"]
