"""ExecuTorch's names: what its passes return."""

import pytest

from tiered import Graph, Model, PassContext, UsageError, function_pass, module_pass
from tiered.compat.executorch import ExportPass, PassBase, PassManager, PassResult
from tiered.testing import parse

TEXT = "(float[2] x) => (float[2] y) { h = Neg(x) y = Neg(h) }"


class Rename(PassBase):
    """Name the first node, if it is to."""

    def __init__(self, name: str) -> None:
        self.name = name

    def call(self, graph_module: Model) -> PassResult:
        if not self.name:
            return PassResult(graph_module, False)
        graph_module.main.rename_node(graph_module.main.nodes[0], self.name)
        return PassResult(graph_module, False)


class Visit(ExportPass):
    """Visit, and say so."""

    def call(self, graph_module: Model) -> PassResult:  # type: ignore[override]  # as ExecuTorch's
        super().call(graph_module)
        return PassResult(graph_module, True)


def test_a_pass_may_return_its_result_and_the_journal_records_the_change() -> None:
    with PassContext(3) as ctx:
        assert Rename("")(parse(TEXT)) == parse(TEXT)
        assert Rename("first")(parse(TEXT)).graph.node[0].name == "first"
        assert Visit()(parse(TEXT)) == parse(TEXT)
    assert [result.changed for result in ctx.report.results] == [False, True, False]
    assert PassManager([Rename("a")])(parse(TEXT)).graph.node[0].name == "a"


def test_functions_may_return_it_too() -> None:
    @module_pass(opt_level=0)
    def of_model(model: Model, ctx: PassContext) -> PassResult:
        return PassResult(model, False)

    @function_pass(opt_level=0)
    def of_graph(graph: Graph, ctx: PassContext) -> tuple[object, ...]:
        return PassResult(graph, False)  # type: ignore[arg-type]  # a graph is a GraphModule there

    assert of_model(parse(TEXT)) == of_graph(parse(TEXT)) == parse(TEXT)


def test_the_result_of_another_model_would_be_lost() -> None:
    class Copies(PassBase):
        def call(self, graph_module: Model) -> PassResult:
            return PassResult(graph_module.copy(), True)

    with pytest.raises(UsageError, match="edits the model and returns nothing"):
        Copies()(parse(TEXT))
