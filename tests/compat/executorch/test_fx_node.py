"""The nodes of torch.fx over the view: what ExecuTorch's passes read and edit."""

import operator
from typing import Any

import numpy as np
import pytest

from tests.recorded import assert_values
from tests.small import content
from tiered import Model
from tiered.compat.executorch import GraphModule, PassBase, PassManager, PassResult
from tiered.compat.executorch.fx_node import (
    FxNode,
    FxTarget,
    needed_operator,
    number_like,
    operator_of,
)
from tiered.runtime import run
from tiered.support.errors import ModelError, PassError, UsageError
from tiered.testing import parse

TEXT = """(float[2] x, float[2] z) => (float[2] y) <float[2] w = {1, 2}> {
    a = Add(x, w) b = Mul(a, z) y = Relu(b) }"""


def module(text: str = TEXT) -> Any:
    return GraphModule.of(Model.from_proto(parse(text)))


def ops(gm: Any) -> list[str]:
    return [node.op_type for node in gm.main.topological_order()]


def by_target(gm: Any, target: str) -> Any:
    (found,) = gm.graph.find_nodes(op="call_function", target=target)
    return found


class ReluToSigmoid(PassBase):
    """The usual example of a pass."""

    def call(self, graph_module: Any) -> PassResult:
        for node in graph_module.graph.nodes:
            if node.op == "call_function" and node.target == "Relu":
                with graph_module.graph.inserting_before(node):
                    new = graph_module.graph.call_function("Sigmoid", args=(node.args[0],))
                node.replace_all_uses_with(new)
                graph_module.graph.erase_node(node)
        graph_module.graph.eliminate_dead_code()
        graph_module.graph.lint()
        graph_module.recompile()
        return PassResult(graph_module, True)


def test_a_pass_of_the_reference_edits_nodes() -> None:
    given = parse(TEXT)
    made = ReluToSigmoid()(given).graph_module
    assert [node.op_type for node in made.graph.node] == ["Add", "Mul", "Sigmoid"]
    assert [info.name for info in made.graph.output] == ["y"]
    assert given == parse(TEXT)
    view = Model.from_proto(given)
    result = PassManager([ReluToSigmoid(), lambda gm: gm.recompile()])(view)
    assert result == (view, True)
    feeds = {"x": np.ones(2, np.float32), "z": np.ones(2, np.float32)}
    (y,) = run(view.to_proto(), feeds).values()
    np.testing.assert_allclose(y, 1 / (1 + np.exp([-2.0, -3.0])), rtol=1e-6)


def test_a_failing_pass_is_undone() -> None:
    class Fails(ReluToSigmoid):
        def call(self, graph_module: Any) -> PassResult:
            super().call(graph_module)
            raise ValueError("boom")

    view = Model.from_proto(parse(TEXT))
    before = content(view)
    with pytest.raises(PassError, match="Fails failed"):
        Fails()(view)
    assert content(view) == before


def test_nodes_are_inputs_weights_operators_and_the_output() -> None:
    gm = module()
    assert [(node.op, node.name, str(node.target)) for node in gm.graph.nodes] == [
        ("placeholder", "x", "x"),
        ("placeholder", "z", "z"),
        ("get_attr", "w", "w"),
        ("call_function", "a", "Add"),
        ("call_function", "b", "Mul"),
        ("call_function", "y", "Relu"),
        ("output", "output", "output"),
    ]
    x, z, w, a, b, y, output = gm.graph.nodes
    assert a.args == (x, w)
    assert list(a.users) == [b]
    assert list(y.users) == [output]
    assert output.users == {}
    assert output.args == ((y,),)
    assert a.all_input_nodes == [x, w]
    assert (a.next, a.prev, output.next) == (b, w, x)
    assert a.meta["val"].shape == (2,)
    a.meta["note"], x.meta["note"] = 1, 2
    assert (gm.graph.find_nodes(op="call_function")[0].meta["note"], x.meta["note"]) == (1, 2)
    assert len(gm.graph.nodes) == 7
    assert next(iter(reversed(gm.graph.nodes))) == output
    assert gm.graph.output_node() == output
    assert (repr(a), a != b, a != 1) == ("a", True, True)
    assert gm.graph is gm.graph
    assert gm.graph.owning_module is gm
    assert gm.graph.get_attr("w") == w
    assert z in b.args


def test_targets_are_equal_to_functions_of_their_name(capsys: pytest.CaptureFixture[str]) -> None:
    gm = module()
    a = by_target(gm, "Add")
    assert a.target == operator.add
    assert a.target != operator.mul
    assert a.target != operator.getitem

    class Overload:
        def __str__(self) -> str:
            return "aten.relu.default"

    assert by_target(gm, "Relu").target == Overload()
    new = gm.graph.call_function(operator.neg, (a,))
    assert new.target == "Neg"
    assert "%a : [num_users=2] = call_function[target=Add](x, w)" in gm.print_readable()
    assert "target=Neg" in capsys.readouterr().out
    with pytest.raises(UsageError, match="is no operator of ONNX"):
        gm.graph.call_function(len, (a,))


def test_operands_and_attributes_are_set() -> None:
    gm = module()
    x, z, _, a, b, y, output = gm.graph.nodes
    b.args = (a, 2.0)
    assert gm.main.nodes[1].input(1).const == np.float32(2)
    y.target = "Softmax"
    y.kwargs = {"axis": 0}
    y.update_kwarg("axis", -1)
    assert y.kwargs == {"axis": -1}
    y.kwargs = {}
    assert y.kwargs == {}
    b.update_arg(1, z)
    b.replace_input_with(a, x)
    assert b.args == (x, z)
    output.replace_input_with(y, b)
    assert [value.name for value in gm.main.outputs] == ["y"]
    assert output.args == ((b,),)
    assert gm.graph.eliminate_dead_code()
    assert not gm.graph.eliminate_dead_code()
    assert ops(gm) == ["Mul"]
    with pytest.raises(ModelError, match="placeholder 'x' has no target to set"):
        x.target = "Relu"
    with pytest.raises(UsageError, match="an operand is a node, a number or an array, not 'x'"):
        b.args = ("x",)


def test_a_node_has_what_the_view_has() -> None:
    view = GraphModule.of(Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Relu(x) }")))
    (relu,) = view.graph.find_nodes(op="call_function")
    assert relu.op_type == "Relu"
    assert relu.label == relu.name
    with pytest.raises(AttributeError, match="no attribute 'no_such_thing'"):
        relu.no_such_thing  # noqa: B018  # raises


def test_attributes_are_set_together() -> None:
    gm = module("(float[2,3] x) => (float[2,3] y) { y = Softmax<axis=1>(x) }")
    node = by_target(gm, "Softmax")
    with pytest.raises(TypeError):
        node.kwargs["axis"] = 0
    node.kwargs = {**node.kwargs, "axis": 0}
    assert node.kwargs == {"axis": 0}


ITEMS = """(float[4] x, bool c) => (float[2] y, float[2] b)
    <float[2] w = {1,2}, float[2] u = {1,2}> {
    a, b = Split<num_outputs = 2>(x) d = Clip(a, , ) y = Add(d, w) }"""


class Named:
    """A function or an overload of torch, by its name and its text."""

    def __init__(self, text: str, name: str | None = None) -> None:
        self.text = text
        if name is not None:
            self.__name__ = name

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def rows(gm: Any) -> list[str]:
    """Return the nodes of a graph, with operands, users and attributes."""
    return [
        f"{node.op} {node.name} {getattr(node.target, '__name__', node.target)} {node.args} "
        f"{[*node.users]} {node.all_input_nodes} {dict(node.kwargs)}"
        for node in gm.graph.nodes
    ]


def edited(edit: Any, text: str = ITEMS) -> list[str]:
    """Return the nodes after an edit: it gets the graph, and its nodes by name."""
    gm = module(text)
    edit(gm.graph, lambda name: next(n for n in gm.graph.nodes if n.name == name))
    gm.graph.lint()
    return rows(gm)


def test_nodes_and_targets_are_recorded() -> None:
    gm = module(ITEMS)
    names = {
        "rows": lambda text=ITEMS: rows(module(text)),
        "edited": edited,
        "N": Named,
        "FxNode": FxNode,
        "FxTarget": FxTarget,
        "op": operator_of,
        "needed": lambda target: needed_operator(target, gm.main),
        "like": number_like,
        "operator": operator,
        "np": np,
        "value": gm.main.value,
        "untyped": module(
            "(float[2] x) => (float[2] y) { a = com.microsoft.Wurst(x) y = Neg(a) }"
        ).main.value("a"),
        "int64": Model.from_proto(parse("(int64[2] x) => (int64[2] y) { y = Neg(x) }")).main.inputs[
            0
        ],
        "n": {node.name: node for node in gm.graph.nodes},
    }
    assert_values(__file__, names)
