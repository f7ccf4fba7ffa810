"""TVM's modules: functions by name, equality, executors."""

import importlib
from typing import Any, cast

import numpy as np
import onnx
import pytest

from tests.recorded import assert_values
from tiered import Model
from tiered.compat import executorch, tvm
from tiered.compat.tvm import relay
from tiered.compat.tvm.running import modules
from tiered.support.errors import UsageError
from tiered.testing import parse

RELU = "(float[n,2] x) => (float[n,2] y) { y = Relu(x) }"
CALLS = """<ir_version: 10, opset_import: ["" : 21, "l" : 1]> g (float[2] x) => (float[2] y)
    { y = l.F(x) } <domain: "l", opset_import: ["" : 21]> F (p) => (q) { q = Tanh(p) }"""


def module(text: str) -> Any:
    model = onnx.parser.parse_model(text) if text.startswith("<") else parse(text)
    return relay.frontend.from_onnx(model)[0]


def ops(model: Model) -> list[str]:
    onnx.checker.check_model(model.to_proto(), full_check=True)
    return [node.op_type for node in model.main.topological_order()]


def test_a_module_takes_over_functions() -> None:
    mod, other = module(RELU), module(CALLS)
    mod.update(other)
    assert ops(mod) == ["F"]
    assert mod.get_global_vars() == ["main", "F"]
    assert mod.get_global_var("F").name_hint == "F"
    assert other.to_proto() == onnx.parser.parse_model(CALLS)
    mod["main"] = module(RELU)["main"]
    assert ops(mod) == ["Relu"]
    x = relay.var("x", shape=(2, 3))
    mod.update_func(mod.get_global_var("main"), relay.Function([x], relay.sigmoid(x)))
    assert ops(mod) == ["Sigmoid"]
    changed = module(CALLS.replace("Tanh", "Abs"))
    mod["F"] = changed["F"]
    assert [node.op_type for node in mod["F"].nodes] == ["Abs"]
    assert ops(mod) == ["Sigmoid"]


def test_what_is_no_function_is_refused() -> None:
    mod = module(RELU)
    before = mod.to_proto()
    for name, given, reason in (
        ("main", 3, "a module is made of a Model"),
        ("F", mod["main"], "takes a local function"),
        ("other", module(CALLS)["F"], "the function 'F' cannot be 'other'"),
    ):
        with pytest.raises(UsageError, match=reason):
            mod[name] = given
    with pytest.raises(UsageError, match="no function 'mian'; did you mean 'main'"):
        mod.get_global_var("mian")
    with pytest.raises(UsageError, match="from_expr takes no functions"):
        tvm.IRModule.from_expr(parse(RELU), {"f": 1})
    assert mod.to_proto() == before


def test_modules_are_made_of_all_that_has_a_main_graph() -> None:
    view = Model.from_proto(parse(RELU))
    for given in (parse(RELU), view, view.main):
        assert ops(tvm.IRModule.from_expr(given)) == ["Relu"]


def test_modules_are_compared_by_what_they_compute() -> None:
    renamed = "(float[m,2] a) => (float[m,2] b) { b = Relu(a) }"
    assert tvm.ir.structural_equal(module(RELU), parse(renamed))
    assert not tvm.ir.structural_equal(module(RELU)["main"], module(CALLS))
    tvm.ir.assert_structural_equal(module(RELU), module(RELU))
    with pytest.raises(ValueError, match="do not compute the same"):
        tvm.ir.assert_structural_equal(module(RELU), module(CALLS))


@pytest.mark.parametrize("kind", ["graph", "vm", "debug", "aot"])
def test_an_executor_runs_a_module(kind: str) -> None:
    """The lines of TVM's tutorial "Compile ONNX Models"."""
    mod, params = relay.frontend.from_onnx(parse(RELU))
    with tvm.transform.PassContext(opt_level=1):
        executor = relay.build_module.create_executor(
            kind, mod, tvm.cpu(0), "llvm", params
        ).evaluate()
    x = np.array([[-1, 2]], np.float32)
    assert executor(tvm.nd.array(x.astype("float32")), **params).numpy().tolist() == [[0, 2]]
    assert executor(x=x).tolist() == [[0, 2]]
    assert ops(mod) == ["Relu"]


def test_an_executor_returns_several_outputs_as_a_list() -> None:
    two = parse("(float[2] x) => (float[2] y, float[2] z) { y = Abs(x) z = Neg(x) }")
    y, z = relay.create_executor("graph", mod=two).evaluate()(np.array([-1, 1], np.float32))
    assert (y.tolist(), z.tolist()) == ([1, 1], [1, -1])
    with pytest.raises(UsageError, match="no executor 'grap'"):
        relay.create_executor("grap", two)
    with pytest.raises(UsageError, match="needs a module"):
        relay.create_executor("graph")
    with pytest.raises(UsageError, match="the main graph of the module only"):
        relay.create_executor("graph", two).evaluate(module(RELU)["main"])


def test_a_module_is_optimised_without_a_build() -> None:
    text = "(float[2] x) => (float[2] y) <float[2] w = {1, 2}> { a = Identity(x) y = Add(a, w) }"
    mod, params = relay.optimize(module(text), "llvm", params={"w": np.array([3, 4], np.float32)})
    assert ops(mod) == ["Add"]
    assert params["w"].tolist() == [3, 4]
    again, _ = relay.optimize(parse(text))
    assert ops(again) == ["Add"]


def test_the_modules_of_tvm_are_imported() -> None:
    package = "tiered.compat.tvm"
    functor = importlib.import_module(f"{package}.relay.expr_functor")
    assert functor.ExprMutator is relay.ExprMutator
    assert importlib.import_module(f"{package}.relay.expr").Call is relay.Call
    runtime = importlib.import_module(f"{package}.contrib.graph_runtime")
    graph, lib, params = relay.build(parse(RELU), "llvm")
    runs = runtime.create(graph, lib, tvm.cpu())
    runs.set_input(x=np.array([[-1, 2]], np.float32), **params)
    runs.run()
    assert runs.get_output(0).asnumpy().tolist() == [[0, 2]]


def test_a_constant_that_is_an_output_stays_without_an_identity() -> None:
    """onnxruntime has no Identity of 4 bits."""
    text = "(float[2] x) => (uint4[3] c, float[2] y) <uint4[3] c = {1,2,3}> { y = Neg(x) }"

    another = relay.transform.function_pass(
        lambda func, mod, ctx: mod.copy().main, opt_level=0, name="another"
    )
    assert ops(another(module(text))) == ["Neg"]
    graph = executorch.GraphModule.of(module(text)).graph
    _, y = graph.output_node().args[0]
    graph.output((graph.get_attr("c"), y))
    assert [node.op_type for node in graph.owner.nodes] == ["Neg"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("compiler_begin", "regions are marks of nodes here: tvm.transform.AnnotateTarget"),
        ("subgraph_end", "regions are marks of nodes here"),
        ("stop_fusion", "FuseOps takes the nodes of a backend"),
        ("checkpoint", "tvm.transform.gradient"),
    ],
)
def test_annotations_that_are_no_nodes_say_what_is(name: str, reason: str) -> None:
    for place in (relay.annotation, relay.op.annotation):
        with pytest.raises(UsageError, match=rf"relay\.annotation\.{name} makes no node: {reason}"):
            getattr(place, name)(relay.const(1), "dnnl")
    with pytest.raises(AttributeError, match="no attribute 'compiler_start'"):
        relay.annotation.compiler_start  # noqa: B018  # raises
    annotation = importlib.import_module("tiered.compat.tvm.relay.op.annotation")
    assert annotation.on_device is relay.annotation.on_device


def test_functions_are_given_where_tvm_takes_expressions() -> None:
    x = relay.var("x", shape=(2,))
    function = relay.Function([x], relay.multiply(x, relay.multiply(x, x)))
    mod = tvm.IRModule.from_expr(function)
    before = mod.to_proto()
    for given in (mod["main"], function):
        grad = relay.transform.gradient(given, mode="first_order")
        run = relay.create_executor("graph", tvm.IRModule.from_expr(grad)).evaluate()
        y, slope = run(np.array([1, 2], np.float32))
        assert (y.tolist(), slope.tolist()) == ([1, 8], [3, 12])
        assert relay.build(given, "llvm").module.main.nodes
        found = relay.create_executor("graph", given).evaluate()(np.array([1, 2], np.float32))
        assert found.tolist() == [1, 8]
    assert mod.to_proto() == before
    text = """(float[1,2] x) => (float[1,2] y) <float[2,2] w = {1,0,0,0}> {
        t = Transpose<perm=[1,0]>(w) y = MatMul(x, t) }"""
    main = module(text)["main"]
    assert relay.analysis.search_fc_transpose(main) == ["w"]
    dense = relay.data_dep_optimization
    made, _ = dense.simplify_fc_transpose.convert(main, {})
    assert [node.op_type for node in made.nodes] == ["MatMul"]
    sparse, _ = dense.bsr_dense.convert(made, None, (1, 1), 0.5)
    assert len(sparse.initializers) == 1
    assert [node.op_type for node in main.nodes] == ["Transpose", "MatMul"]


def test_a_module_is_made_of_functions_by_name() -> None:
    x = relay.var("x", shape=(2, 3))
    mod = tvm.IRModule()
    assert ops(tvm.IRModule()) == []
    mod["main"] = relay.Function([x], relay.abs(x))
    assert ops(mod) == ["Abs"]
    given = {relay.GlobalVar("main"): relay.Function([x], relay.exp(x))}
    assert ops(tvm.IRModule(given)) == ["Exp"]
    with pytest.raises(UsageError, match="a module has a function 'main', and not only f"):
        tvm.IRModule({"f": relay.Function([x], x)})
    with pytest.raises(UsageError, match=r"no value of type ModelProto: IRModule\.from_expr"):
        tvm.IRModule(cast("Any", parse(RELU)))
    assert ops(tvm.IRModule.from_proto(parse(RELU))) == ["Relu"]


def test_a_main_graph_of_another_opset_replaces_all() -> None:
    mod = relay.frontend.from_onnx(parse(RELU, opset=13))[0]
    mod["main"] = relay.frontend.from_onnx(parse(RELU.replace("Relu", "Tanh"), opset=18))[0]["main"]
    assert ops(mod) == ["Tanh"]
    assert mod.opset_imports == {"": 18}
    calls = module(CALLS)
    with pytest.raises(UsageError, match="import versions 21 and 18"):
        calls["main"] = mod["main"]


def test_free_variables_are_the_inputs_of_a_function() -> None:
    x, w = relay.var("x", shape=(2,)), relay.var("w", shape=(2,))
    total = relay.add(relay.multiply(x, w), x)
    assert relay.analysis.free_vars(total) == [x, w]
    whole = relay.Function(relay.analysis.free_vars(total), total)
    assert relay.analysis.free_vars(whole) == []
    assert relay.analysis.all_vars(whole) == [x, w]
    assert ops(tvm.IRModule.from_expr(whole)) == ["Mul", "Add"]


def test_targets_with_a_host_or_as_mappings() -> None:
    expected = tvm.target.Target("llvm").backend
    for given in ({"kind": "llvm", "mcpu": "core-avx2"}, {"cpu": "llvm"}):
        assert tvm.target.Target(given).backend == expected
        assert ops(relay.build(module(RELU), target=given).module) == ["Relu"]
    assert tvm.target.Target("cuda", host="llvm").backend == tvm.target.Target("cuda").backend
    with pytest.raises(UsageError, match="for one target, not for 2: cpu, gpu"):
        tvm.target.Target({"cpu": "llvm", "gpu": "cuda"})


def test_a_host_comes_before_the_weights_as_in_tvm() -> None:
    hosts: list[tuple[Any, ...]] = [("llvm",), (None, {}), (tvm.target.Target("llvm"),)]
    for given in (("llvm", *host) for host in hosts):
        assert ops(relay.build(module(RELU), *given).module) == ["Relu"]
    made = relay.build(module(RELU), target="llvm", target_host="llvm", params={})
    assert ops(made.module) == ["Relu"]
    with pytest.raises(UsageError, match="target_host, as in TVM; weights are params="):
        relay.build(module(RELU), "llvm", {"w": 1})


def test_inputs_are_variables_or_names_in_change_batch() -> None:
    for key in ("x", relay.var("x", shape=(4, 2))):
        mod = tvm.transform.ChangeBatch({key: 0}, batch_size=4)(module(RELU))
        assert mod.main.inputs[0].shape == (4, 2)


def test_a_lambda_is_a_pass_without_a_name() -> None:
    def returned(given: Any, mod: Any, ctx: Any) -> Any:
        return given

    pass_ = relay.transform.function_pass(lambda func, mod, ctx: func, opt_level=1)
    assert ops(pass_(module(RELU))) == ops(
        relay.transform.function_pass(returned, opt_level=1)(module(RELU))
    )
    named = tvm.transform.module_pass(lambda mod, ctx: mod, opt_level=1, name="kept")
    assert (pass_.info.name, named.info.name) == ("function", "kept")


@pytest.mark.parametrize("entry", [("a.b",), 3, "ab.c"])
def test_an_entry_of_a_pattern_table_that_is_none(entry: Any) -> None:
    with pytest.raises(UsageError, match=r"is \(name, pattern, check\), not"):
        tvm.transform.MergeComposite([entry])(module(RELU))


def test_modules_are_recorded() -> None:
    def shown(of: Any) -> object:
        functions = {each.name: [node.op_type for node in each.nodes] for each in of.functions}
        main = [node.op_type for node in of.main.topological_order()]
        return main, functions, dict(of.opset_imports), [v.name for v in of.main.outputs]

    def edited(edit: Any, text: str = CALLS) -> object:
        of = module(text)
        edit(of)
        return shown(of)

    names = {
        "shown": shown, "edited": edited, "module": module, "RELU": RELU, "CALLS": CALLS,
        "OTHER": CALLS.replace("F", "G").replace("Tanh", "Sinh"),
        "OLD": '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) '
        "{ y = Exp(x) }",
        "IRModule": modules.IRModule, "equal": modules.structural_equal, "relay": relay,
        "assert_equal": modules.assert_structural_equal, "model_with": modules.model_with,
        "x": relay.var("x", shape=(2,)), "parse": parse, "applied": modules.applied,
        "GlobalVar": modules.GlobalVar, "identity": tvm.transform.FoldConstant(),
    }  # fmt: skip
    assert_values(__file__, names)
