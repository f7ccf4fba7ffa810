"""GraphFormatter, GraphMerger, GraphReplacer, GraphDecomposer: passes as methods of a graph."""

from typing import Any

import numpy as np
import pytest
from onnx.parser import parse_model

from tests.compat.ppq.small_graphs import graph, model_of, state
from tests.recorded import assert_values
from tests.small import model, ops, parsed
from tiered import Model, PassContext, UsageError
from tiered.compat.ppq import (
    BaseGraph,
    GraphDecomposer,
    GraphFormatter,
    GraphMerger,
    GraphReplacer,
    Operation,
    SearchableGraph,
    TorchExecutor,
    Variable,
    format_graph,
    formatting,
)
from tiered.support.errors import ModelError, OptionError, TargetError


def test_the_mergers_see_the_backend_of_the_context() -> None:
    text = """g (float[2,3,4] x, float[2,3,4] s) => (float[2,3,4] y) <float[4] g = {1,2,3,4},
        float[4] b = {0,0,0,0}> {
        a = Add(x, s)  y = LayerNormalization<axis=-1>(a, g, b) }"""
    of = model(text)
    merger = GraphMerger(BaseGraph(of.main))
    with pytest.raises(TargetError, match="makes an operator of onnxruntime_cpu here: call it"):
        merger.fuse_skiplayernorm()
    assert ops(of) == ["Add", "LayerNormalization"]
    with PassContext(backend="portable"):
        merger.fuse_skiplayernorm()
    assert ops(of) == ["Add", "LayerNormalization"]
    with PassContext(backend="onnxruntime_cpu"):
        merger.fuse_skiplayernorm()
    assert ops(of) == ["SkipLayerNormalization"]
    merger.fuse_skiplayernorm()


def test_formatters_run_passes() -> None:
    text = """g (float[2] x) => (float[2] y) <float[2] w = {1,2}> {
        a = Identity(x)  d = Neg(a)  b = Relu(a)  y = Abs(b) }"""
    ppq = graph(text)
    formatter = GraphFormatter(SearchableGraph(ppq.graph))
    formatter.remove_identity()
    formatter.delete_isolated()
    assert [operation.type for operation in ppq.operations.values()] == ["Relu", "Abs"]
    formatter.truncate_on_var(ppq.variables["b"])
    assert list(ppq.outputs) == ["b"]
    with pytest.raises(AttributeError, match="has no method 'remove_identities'"):
        formatter.remove_identities()


@pytest.mark.parametrize(
    ("method", "why"),
    [("format_gather", "axis of a Gather"), ("format_cast", "are numbers already")],
)
def test_what_onnx_has_already_says_so(method: str, why: str) -> None:
    with pytest.raises(UsageError, match=f"GraphFormatter.{method}: .*{why}"):
        getattr(GraphFormatter(graph()), method)()


def test_mergers_and_decomposers_run_passes() -> None:
    text = """g (float[2,3] x) => (float[2,4] y) <float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12},
        float[4] b = {1,2,3,4}> { m = MatMul(x, w)  y = Add(m, b) }"""
    ppq = graph(text)
    GraphMerger(GraphFormatter(ppq)).fuse_matmul_add()
    wrong: Any = 3
    with pytest.raises(UsageError, match=r"^GraphMerger: graph is 3"):
        GraphMerger(wrong)
    assert [operation.type for operation in ppq.operations.values()] == ["Gemm"]
    GraphDecomposer(ppq).decompose_gemm()
    assert "MatMul" in [operation.type for operation in ppq.operations.values()]


def test_operations_and_variables_are_replaced_by_name() -> None:
    ppq = graph()
    replacer = GraphReplacer(ppq)
    replacer.replace_op("node_c", Operation("new", "Exp"))
    assert isinstance(ppq.graph.model, Model)
    assert ops(ppq.graph.model) == ["Relu", "Add", "Exp", "Abs"]
    replacer.replace_var("w", Variable("v", np.array([4, 5, 6], np.float32)))
    (name, *_) = [value.name for value in ppq.operations["node_b"].parameters]
    assert name == "v"
    ppq.graph.model.check_view()
    replacer.replace_op("node_y", Operation("last", "Neg"))
    assert list(ppq.outputs) == ["y"]
    with pytest.raises(ModelError, match="has no operation 'none'"):
        replacer.replace_op("none", Operation("other", "Neg"))
    with pytest.raises(ModelError, match="has operands already"):
        replacer.replace_op("new", ppq.operations["node_a"])
    with pytest.raises(ModelError, match="has no variable 'none'"):
        replacer.replace_var("none", Variable("u"))


def test_resizes_of_opset_10_have_their_operands() -> None:
    text = """g (float[1,1,2,2] x) => (float[1,1,4,4] y) <float[4] s = {1,1,2,2}> {
        y = Resize(x, s) }"""
    old = parse_model(f'<ir_version: 6, opset_import: ["" : 10]> {text}')
    on = BaseGraph(Model.from_proto(old).main)
    GraphFormatter(on).format_resize()
    (resize,) = on.topological_sort()
    assert (resize.opset.version, resize.num_of_input) == (11, 3)
    again = model_of(on).mark()
    GraphFormatter(on).format_resize()
    assert not model_of(on).changed_since(again)
    plain = graph()
    GraphFormatter(plain).format_resize()
    assert ops(model_of(plain)) == ["Relu", "Add", "Neg", "Abs"]


def test_a_graph_is_formatted_as_after_loading() -> None:
    on = graph("""g (float[1,1,3,3] x) => (float[1,1,3,3] y, float[1,1,3,3] z)
        <float[1] s = {2}, float[1] b = {1}, float[1] m = {0}, float[1] v = {1}> {
        w = Constant<value = float[1,1,1,1] {3}>()  dead = Sin(x)
        i = Identity(x)  c = Conv(i, w)  y = BatchNormalization(c, s, b, m, v)
        d = Relu(x)  z = BatchNormalization(d, s, b, m, v) }""")
    assert format_graph(on) is on
    assert sorted(ops(model_of(on))) == ["Conv", "Conv", "Relu"]


@pytest.mark.parametrize(
    ("facade", "method", "before", "after"),
    [
        (GraphFormatter, "format_clip", "y = Clip(x, , )", ["Clip"]),
        (GraphFormatter, "format_constant_input",
         "k = Constant<value_float=1.0>()  y = Add(x, k)", ["Add"]),
        (GraphFormatter, "remove_constant_input",
         "k = Constant<value_float=1.0>()  y = Add(x, k)", ["Add"]),
        (GraphFormatter, "remove_identity", "a = Identity(x)  y = Neg(a)", ["Neg"]),
        (GraphFormatter, "delete_isolated", "a = Neg(x)  y = Abs(x)", ["Abs"]),
        (GraphMerger, "fuse_gelu", """h = Constant<value_float=0.5>()
         o = Constant<value_float=1.0>()
         r = Constant<value_float=1.4142135>()  d = Div(x, r)  e = Erf(d)  s = Add(e, o)
         m = Mul(x, s)  y = Mul(m, h)""", ["Gelu"]),
    ],
)  # fmt: skip
def test_a_method_runs_its_pass(facade: Any, method: str, before: str, after: list[str]) -> None:
    on = graph(f"g (float[2,3] x) => (float[2,3] y) {{ {before} }}")
    getattr(facade(on), method)()
    found = [each for each in ops(model_of(on)) if each != "Constant"]
    assert found == after


def test_a_method_takes_the_options_of_its_pass() -> None:
    with pytest.raises(OptionError, match="eliminate_identity has no option 'deep'"):
        GraphFormatter(graph()).remove_identity(deep=True)


@pytest.mark.parametrize(
    ("facade", "method", "why"),
    [(GraphMerger, "fuse_scale", "PPQ has no implementation of it either")],
)
def test_what_is_not_there_says_why(facade: Any, method: str, why: str) -> None:
    with pytest.raises(UsageError, match=f"^{facade.__name__}.{method}: {why}"):
        getattr(facade(graph()), method)()
    with pytest.raises(AttributeError, match=f"{facade.__name__} has no method 'fuse_scales'"):
        facade(graph()).fuse_scales()


@pytest.mark.parametrize(("mark", "outputs"), [(True, ["z", "b"]), (False, ["z"])])
def test_a_graph_is_cut_at_a_variable_or_its_name(mark: bool, outputs: list[str]) -> None:
    text = "g (float[2] x) => (float[2] y, float[2] z) { b = Neg(x)  z = Abs(x)  y = Exp(b) }"
    by_name, by_variable = graph(text), graph(text)
    GraphFormatter(by_name).truncate_on_var("b", mark_as_output=mark)
    GraphFormatter(by_variable).truncate_on_var(by_variable.variables["b"], mark)
    assert list(by_name.outputs) == list(by_variable.outputs) == outputs


def test_batch_norms_become_convolutions_or_scales() -> None:
    text = """g (float[1,1,3,3] x) => (float[1,1,3,3] y)
        <float[1] s = {2}, float[1] b = {1}, float[1] m = {0}, float[1] v = {1}> {
        y = BatchNormalization(x, s, b, m, v) }"""
    on = graph(text)
    GraphReplacer(on).replace_batchnorm_to_conv()
    assert ops(model_of(on)) == ["Conv"]
    on = graph(text)
    GraphReplacer(GraphFormatter(on)).replace_batchnorm_to_scale()
    assert ops(model_of(on)) == ["Mul", "Add"]


def test_a_replacement_takes_as_many_operands() -> None:
    on = graph()
    replacer = GraphReplacer(on)
    for wrong in ("Relu", "Where"):
        with pytest.raises(ModelError, match=f"'node_b' has 2 inputs, which {wrong} does not take"):
            replacer.replace_op("node_b", Operation("new", wrong))
    replacer.replace_op("node_b", Operation("new", "Sub", platform="DSP"))
    assert on.operations["new"].platform == "DSP"
    (y,) = TorchExecutor(on).forward(np.zeros((2, 3), np.float32))
    np.testing.assert_array_equal(y, [[1, 2, 3]] * 2)


def test_a_replaced_output_keeps_its_name() -> None:
    on = graph("g (float[2] x) => (float[1] y, float[1] z) { y, z = Split<num_outputs=2>(x) }")
    GraphReplacer(on).replace_op("node_y", Operation("new", "Split", {"num_outputs": 2}))
    assert list(on.outputs) == ["y", "z"]
    model_of(on).check_view()


def test_methods_of_graphs_are_recorded() -> None:
    def after(text: str, edit: Any) -> object:
        of = graph(f"g {text}")
        edit(of)
        return state(of)

    def resized(text: str, opset: int) -> object:
        of = parsed(text, opset=opset)
        GraphFormatter(BaseGraph(of.main)).format_resize()
        return of.opset(), [node.op_type for node in of.main.nodes]

    names = {
        "resized": resized,
        "RESIZE": "(float[1,1,2,2] x) => (float[1,1,4,4] y) <float[4] s = {1,1,2,2}> "
        "{ y = Resize(x, s) }",
        "TWO": "(float x) => (float y) { k = Constant<value = float {1}>() "
        "l = Constant<value = float {2}>() a = Add(x, k) y = Add(a, l) }",
        **vars(formatting), "after": after, "Operation": Operation, "Variable": Variable,
        "graph": graph,
        "GEMM": "(float[2,3] x) => (float[2,4] y) <float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}, "
        "float[4] b = {1,2,3,4}> { m = MatMul(x, w) y = Add(m, b) }",
        "BN": "(float[1,1,2,2] x) => (float[1,1,2,2] y) <float[1,1,1,1] w = {2}, float[1] s = {2}, "
        "float[1] b = {1}, float[1] m = {0}, float[1] v = {1}> "
        "{ c = Conv(x, w) y = BatchNormalization(c, s, b, m, v) }",
        "ONE": "(float[1,1,2,2] x) => (float[1,1,2,2] y) <float[1] s = {2}, float[1] b = {1}, "
        "float[1] m = {0}, float[1] v = {1}> { y = BatchNormalization(x, s, b, m, v) }",
        "CLIP": '(float[2] x) => (float[2] y) <float[2] u = {1,2}> '
        '{ k = Constant<value = float {1}>() i = Identity(x) c = Clip(i, "", k) d = Add(c, u) '
        'e = Add(d, u) y = Neg(e) z = Abs(x) }',
        "SKIP": "(float[2,3,4] x, float[2,3,4] s) => (float[2,3,4] y) <float[4] g = {1,2,3,4}, "
        "float[4] b = {0,0,0,0}> { a = Add(x, s) y = LayerNormalization<axis=-1>(a, g, b) }",
    }  # fmt: skip
    assert_values(__file__, names)
