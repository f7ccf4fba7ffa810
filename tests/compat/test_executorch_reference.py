"""The examples of ExecuTorch's and torch.fx's documents, with functions of torch as operators."""

import importlib
import operator
from typing import Any

import onnx
import pytest

from tiered import Model
from tiered.compat import executorch
from tiered.compat.executorch import ExportPass, PassBase, PassManager, PassResult
from tiered.support.errors import PreconditionError, UsageError
from tiered.testing import parse

TEXT = "(float[2] x) => (float[2] y) <float[2] w = {1, 2}> { a = Add(x, w) y = Relu(a) }"


class Overload:
    """An overload of torch's, such as `torch.ops.aten.add.Tensor`."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __str__(self) -> str:
        return f"aten.{self.__name__}"


class Packet(Overload):
    """All overloads of a function: `torch.ops.aten.add`."""


class EdgeOverload(Overload):
    """An overload of ExecuTorch's edge dialect."""

    def __str__(self) -> str:
        return f"<EdgeOpOverload: aten.{self.__name__}>: schema = ..."


class Function(Overload):
    """A function of torch's: `torch.add`."""

    def __str__(self) -> str:
        return f"<built-in method {self.__name__} of type object at 0x7f>"


def ops(model: onnx.ModelProto | Model) -> list[str]:
    if isinstance(model, onnx.ModelProto):
        return [node.op_type for node in model.graph.node]
    return [node.op_type for node in model.main.topological_order()]


@pytest.mark.parametrize(
    ("target", "operator_name"),
    [
        (Overload("add.Tensor"), "Add"),
        (Overload("relu_.default"), "Relu"),
        (Overload("_softmax.default"), "Softmax"),
        (Overload("mm.default"), "MatMul"),
        (Overload("clone.default"), "Identity"),
        (Overload("view.default"), "Reshape"),
        (Packet("bmm"), "MatMul"),
        (EdgeOverload("sub.Tensor"), "Sub"),
        (Function("sigmoid"), "Sigmoid"),
        (Function("eq"), "Equal"),
        (operator.truediv, "Div"),
        (operator.mul, "Mul"),
    ],
)
def test_a_function_means_the_operator_of_its_name(target: object, operator_name: str) -> None:
    seen: list[bool] = []

    class Sees(ExportPass):
        def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
            seen.append(op == target)
            assert (op != target) is not (op == target)
            assert (op in [target]) is (op == target)
            return super().call_operator(op, args, kwargs, meta)

    operands = {"Sigmoid": "x", "Relu": "x", "Identity": "x", "Softmax": "x", "Reshape": "x, s"}
    made = f"a = {operator_name}({operands.get(operator_name, 'x, x')})"
    text = f"(float[2,2] x, int64[2] s) => (float[2,2] y) {{ {made} y = Neg(a) }}"
    if operator_name == "Equal":
        text = text.replace("Neg(a)", "Cast<to=1>(a)")
    Sees()(parse(text))
    assert seen == [True, False]


def test_a_pass_exchanges_operators_by_functions() -> None:
    class ReplaceInPlaceReluWithOutOfPlaceReluPass(ExportPass):
        def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
            if op != Overload("relu_.default"):
                return super().call_operator(op, args, kwargs, meta)
            return super().call_operator(Overload("abs.default"), args, kwargs, meta)

    class ReplaceAddWithMulSub(ExportPass):
        def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
            if op != Overload("add.Tensor"):
                return super().call_operator(op, args, kwargs, meta)
            _, y = args
            mul_res = super().call_operator(Overload("mul.Tensor"), args, {}, meta)
            return super().call_operator(Overload("sub.Tensor"), (mul_res, y), {}, meta)

    class RemoveDetachPass(ExportPass):
        def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
            if op not in (Overload("detach.default"), Overload("detach_copy.default")):
                return super().call_operator(op, args, kwargs, meta)
            assert len(args) == 1
            return args[0]

    made = ReplaceInPlaceReluWithOutOfPlaceReluPass()(parse(TEXT)).graph_module
    assert ops(made) == ["Add", "Abs"]
    assert ops(ReplaceAddWithMulSub()(made).graph_module) == ["Mul", "Sub", "Abs"]
    detached = parse("(float[2] x) => (float[2] y) { a = Identity(x) y = Relu(a) }")
    assert ops(RemoveDetachPass()(detached).graph_module) == ["Relu"]


class ReplaceAddPass(PassBase):
    """The example of conditions."""

    def __init__(self, replace_op: object) -> None:
        self.replace_op = replace_op

    def call(self, graph_module: Any) -> None:
        for node in graph_module.graph.nodes:
            if node.op == "call_function" and node.target == Function("add"):
                node.target = self.replace_op

    def requires(self, graph_module: Any) -> None:
        for node in graph_module.graph.nodes:
            if node.op == "call_function" and node.target == Function("add"):
                return
        raise ValueError("No torch.add ops!")

    def ensures(self, graph_module: Any) -> None:
        assert not graph_module.graph.find_nodes(op="call_function", target=Function("add"))


def test_conditions_and_checks_read_nodes_of_torch_fx() -> None:
    counts: list[int] = []

    def check(graph_module: Any) -> None:
        counts.append(len(graph_module.graph.nodes))

    manager = PassManager(
        passes=[ReplaceAddPass(Function("div"))],
        run_checks_after_each_pass=True,
        suppress_check_failures=False,
    )
    manager.set_checks(check)
    assert ops(manager(parse(TEXT)).graph_module) == ["Div", "Relu"]
    assert set(counts) == {5}
    manager.add_pass(ReplaceAddPass(Function("div")))
    with pytest.raises(PreconditionError, match=r"ReplaceAddPass\.requires .*No torch\.add ops!"):
        manager(parse(TEXT))
    for set_check in (manager.set_checks, manager.add_checks):
        with pytest.raises(TypeError, match="a check takes one argument, the module"):
            set_check(lambda graph_module, more: None)  # type: ignore[arg-type, misc]  # on purpose


@pytest.mark.parametrize("name", ["sum", "mean", "max", "cat", "permute"])
def test_a_function_with_other_operands_makes_no_node(name: str) -> None:
    """torch.sum reduces; the Sum of ONNX of one operand is that operand."""

    class Reduces(PassBase):
        def call(self, graph_module: Any) -> PassResult:
            (node,) = graph_module.graph.find_nodes(op="call_function", target="Relu")
            new = graph_module.graph.call_function(Function(name), node.args)
            node.replace_all_uses_with(new)
            return PassResult(graph_module, True)

    with pytest.raises(UsageError, match="has other operands than"):
        Reduces()(parse(TEXT))


def test_a_node_is_one_object() -> None:
    gm: Any = executorch.GraphModule.of(Model.from_proto(parse(TEXT)))
    x, _, a, y, output = gm.graph.nodes
    assert y.args[0] is a
    assert next(iter(a.users)) is y
    assert output.args[0][0] is y
    assert next(iter(gm.graph.nodes)) is x
    new = gm.graph.call_function(Function("relu"), (a,))
    a.replace_all_uses_with(new, delete_user_cb=lambda user: user is not new)
    gm.recompile()
    assert ops(gm) == ["Add", "Relu", "Relu"]


def test_a_pattern_is_replaced_in_the_proto_that_is_given() -> None:
    proto = parse(TEXT)
    before, after = "(x) => (y) { y = Relu(x) }", "(x) => (y) { y = Tanh(x) }"
    none = executorch.replace_pattern_with_filters(proto, after, before)
    assert (none, proto) == ([], parse(TEXT))
    (replaced,) = executorch.replace_pattern_with_filters(
        proto, before, after, match_filters=[lambda match, original_graph, graph: True]
    )
    assert [node.op_type for node in replaced.replacements] == ["Tanh"]
    assert ops(proto) == ["Add", "Tanh"]
    executorch.replace_pattern(proto, after, before)
    assert ops(proto) == ["Add", "Relu"]


def test_the_modules_of_executorch_are_imported() -> None:
    package = "tiered.compat.executorch"
    base = importlib.import_module(f"{package}.exir.pass_base")
    assert base.ExportPass is ExportPass
    places = "exir.backend.canonical_partitioners.pattern_op_partitioner"
    partitioner = importlib.import_module(f"{package}.{places}")
    found = executorch.generate_pattern_op_partitions
    assert partitioner.generate_pattern_op_partitions is found
    model = Model.from_proto(parse(TEXT))
    executorch.subgraph_rewriter.replace_pattern_with_filters(
        model, "(x) => (y) { y = Relu(x) }", "(x) => (y) { y = Tanh(x) }", match_filters=[]
    )
    assert ops(model) == ["Add", "Tanh"]
