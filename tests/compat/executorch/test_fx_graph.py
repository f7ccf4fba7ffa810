"""`graph_module.graph` of torch.fx over the main graph of a model, edits included."""

import operator
from typing import Any

import numpy as np
import onnx
import pytest

from tests.compat.executorch.test_fx_node import by_target, module, ops
from tests.recorded import assert_values
from tests.small import content
from tiered import Model
from tiered.compat.executorch import FxNode, GraphModule, PassBase, PassResult
from tiered.runtime import run
from tiered.support.errors import ModelError, UsageError
from tiered.testing import parse


def test_uses_are_replaced_where_a_function_says_so() -> None:
    gm = module("(float[2] x) => (float[2] y, float[2] z) { a = Neg(x) y = Abs(a) z = Exp(a) }")
    a = by_target(gm, "Neg")
    with gm.graph.inserting_after(a):
        new = gm.graph.call_function("Sin", (a,))
    a.meta["from"] = "here"
    users = a.replace_all_uses_with(new, lambda user: user.target == "Exp", propagate_meta=True)
    assert [user.name for user in users] == ["z"]
    assert new.meta["from"] == "here"
    assert by_target(gm, "Abs").args == (a,)
    y, output = by_target(gm, "Abs"), gm.graph.output_node()
    assert y.replace_all_uses_with(new, lambda user: user != output) == []
    other = gm.graph.call_function("Cos", (y,))
    assert y.replace_all_uses_with(other, lambda user: user != other) == [output]
    assert [value.name for value in gm.main.outputs] == ["y", "z"]
    gm.graph.lint()
    assert sorted(ops(gm)) == ["Abs", "Cos", "Exp", "Neg", "Sin"]


def test_uses_in_a_body_are_replaced_with_the_others() -> None:
    gm = module(
        """(float[2] x, bool c) => (float[2] y) { a = Neg(x) y = If (c) <
            then_branch = t () => (float[2] u) { u = Exp(a) },
            else_branch = e () => (float[2] v) { v = Abs(a) }> }"""
    )
    a = by_target(gm, "Neg")
    with gm.graph.inserting_before(a):
        new = gm.graph.call_function("Sin", (a.args[0],))
    a.replace_all_uses_with(new)
    gm.graph.erase_node(a)
    gm.graph.lint()
    assert sorted(ops(gm)) == ["If", "Sin"]


def test_an_output_may_become_an_input_of_the_graph() -> None:
    gm = module()
    x = next(iter(gm.graph.nodes))
    gm.graph.output((x,))
    gm.graph.eliminate_dead_code()
    assert ops(gm) == ["Identity"]
    onnx.checker.check_model(gm.to_proto(), full_check=True)
    with pytest.raises(UsageError, match="the graph has 1 output, not 2"):
        gm.graph.output((x, x))
    with pytest.raises(UsageError, match="a value, not None"):
        gm.graph.output((None,))


def test_several_outputs_are_items() -> None:
    gm = module("(float[4] x) => (float[2] y) { a, b = Split<num_outputs=2>(x) y = Add(a, b) }")
    split = by_target(gm, "Split")
    first, second = split.users
    assert [(item.op, item.target, item.args) for item in (first, second)] == [
        ("call_function", operator.getitem, (split, 0)),
        ("call_function", operator.getitem, (split, 1)),
    ]
    assert by_target(gm, "Add").args == (first, second)
    assert [node.name for node in (split, first, second)] == ["Split_a", "a", "b"]
    assert list(second.users) == [by_target(gm, "Add")]
    assert len(split.meta["val"]) == 2
    second.replace_all_uses_with(first)
    assert by_target(gm, "Add").args == (first, first)
    with pytest.raises(UsageError, match="has 2 outputs: take one of its users"):
        gm.graph.call_function("Neg", (split,))


def test_no_two_nodes_have_one_name() -> None:
    gm = module("""(float[4] x) => (float[4] y, float[4] output) {
        [d] y = Neg(x)  [d] u, v = Dropout(x)  [output_1] output = Abs(u)  [y] w = Exp(v) }""")
    assert [node.name for node in gm.graph.nodes] == [
        *("x", "d", "d_1", "u", "v", "output_1", "Exp_y", "output_1_1")
    ]


def test_nodes_are_made_copied_and_erased() -> None:
    gm = module()
    x, z, w, a, b, _, output = gm.graph.nodes
    named = gm.graph.create_node("call_function", "Neg", (a,), name="new")
    assert named.name == "new"
    copied = gm.graph.node_copy(b, lambda arg: x)
    assert copied.args == (x, x)
    assert gm.graph.create_node("get_attr", "w") == w
    for node in (named, copied):
        gm.graph.erase_node(node)
    with pytest.raises(ModelError, match="node 'new' was erased"), gm.graph.inserting_before(named):
        pass
    with pytest.raises(ModelError, match="'a' is used"):
        gm.graph.erase_node(a)
    with pytest.raises(ModelError, match="'output' cannot be erased"):
        gm.graph.erase_node(output)
    a.args, b.args = (x, x), (a, a)
    gm.graph.erase_node(z)
    gm.graph.erase_node(w)
    assert [node.name for node in gm.graph.nodes] == ["x", "a", "b", "y", "output"]
    with pytest.raises(UsageError, match="has no weight 'w'"):
        gm.graph.get_attr("w")
    with pytest.raises(UsageError, match="create_node makes call_function and get_attr"):
        gm.graph.create_node("call_module", "m")
    with pytest.raises(UsageError, match="an input needs a type"):
        gm.graph.placeholder("q")
    with pytest.raises(UsageError, match="cannot be copied"):
        gm.graph.node_copy(x)
    assert isinstance(x, FxNode)


def test_a_new_node_gets_the_notes_of_the_old_one() -> None:
    class ToSub(PassBase):
        def call(self, graph_module: Any) -> PassResult:
            for inner in graph_module.modules():
                for node in inner.graph.nodes:
                    if node.op == "call_function" and node.target == "Relu":
                        node.meta["note"] = 3
                        with inner.graph.inserting_after(node):
                            new = inner.graph.create_node("call_function", "Abs", args=node.args)
                        new.meta = node.meta
                        assert new.meta["note"] == 3
                        node.meta = node.meta
                        assert node.meta["note"] == 3
                        node.replace_all_uses_with(new)
                        inner.graph.erase_node(node)
                inner.recompile()
            return PassResult(graph_module, True)

    made = ToSub()(parse("(float[2] x) => (float[2] y) { a = Relu(x) y = Neg(a) }"))
    assert [node.op_type for node in made.graph_module.graph.node] == ["Abs", "Neg"]


def test_a_list_of_nodes_stands_for_several_operands() -> None:
    gm = module("(float[2] x, float[2] z) => (float[4] y) { y = Concat<axis=0>(x, z) }")
    old = by_target(gm, "Concat")
    new = gm.graph.call_function("Concat", ([old.args[1], old.args[0]],), {"axis": 0})
    old.replace_all_uses_with(new)
    gm.graph.erase_node(old)
    gm.graph.lint()
    feeds = {"x": np.array([1, 2], "f"), "z": np.array([3, 4], "f")}
    assert run(gm.to_proto(), feeds)["y"].tolist() == [3, 4, 1, 2]
    for given in (["a"], [], [new, "a"]):
        with pytest.raises(UsageError, match="an operand is a node"):
            gm.graph.call_function("Concat", (new, given), {"axis": 0})


def test_getitem_is_the_node_of_an_output() -> None:
    gm = module("(float[4] x) => (float[2] y) { a, b = Split<num_outputs=2>(x) y = Sub(a, b) }")
    split, sub = by_target(gm, "Split"), by_target(gm, "Sub")
    items = [gm.graph.call_function(operator.getitem, (split, at)) for at in (0, 1)]
    assert items == list(sub.args)
    for args in ((split, 2), (split, -1), (sub, 0), (split,), ()):
        with pytest.raises(UsageError, match="getitem takes an operator with several outputs"):
            gm.graph.call_function(operator.getitem, args)


def test_an_output_that_is_an_input_stays_that_input() -> None:
    gm = module("(float[2] x) => (float[2] x, float[2] y) { y = Neg(x) }")
    before = content(gm)
    x, neg = next(iter(gm.graph.nodes)), by_target(gm, "Neg")
    with pytest.raises(
        UsageError, match="output 'x' is an input of the graph: it stays that input"
    ):
        x.replace_all_uses_with(neg, lambda user: user.op == "output")
    assert content(gm) == before


def test_dead_weights_go_with_dead_operators() -> None:
    gm = module(
        """(float[2] x, float[2] d) => (float[2] y, float[2] k)
        <float[2] w = {1,2}, float[2] v = {1,2}, float[2] d = {1,2}, float[2] k = {1,2}> {
        a = Add(x, v)  b = Neg(a)  y = Neg(x) }"""
    )
    assert gm.graph.eliminate_dead_code() is True
    assert ops(gm) == ["Neg"]
    assert sorted(value.name for value in gm.main.initializers) == ["d", "k"]
    assert gm.graph.eliminate_dead_code() is False
    gm.graph.lint()


def test_a_model_becomes_a_module_once() -> None:
    view = Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Neg(x) }"))
    gm = GraphModule.of(view)
    assert gm is view
    assert GraphModule.of(gm) is gm
    assert gm.graph is gm.graph
    assert (gm.graph.owner, gm.graph.owning_module) == (gm.main, gm)
    assert list(gm.modules()) == [gm]


def test_nodes_are_in_topological_order_and_counted() -> None:
    gm = module(
        """(float[4] x, float[4] d) => (float[2] y) <float[4] d = {1,2,3,4}, float[2] w = {1,2}> {
        s = Add(x, d)  a, b = Split<num_outputs=2>(s)  c = Mul(a, w)  y = Sub(c, b) }"""
    )
    names = [node.name for node in gm.graph.nodes]
    assert names[:3] == ["x", "d", "w"]
    assert [node.op for node in gm.graph.nodes][:3] == ["placeholder", "placeholder", "get_attr"]
    assert names[-1] == "output"
    assert [node.name for node in reversed(gm.graph.nodes)] == names[::-1]
    assert len(gm.graph.nodes) == len(names) == 10
    assert gm.graph.output_node().op == "output"


def test_nodes_are_found_by_kind_and_target() -> None:
    gm = module(
        """(float[2] x) => (float[2] y) <float[2] w = {1,2}> {
            a = Add(x, w)  b = Neg(a)  y = Neg(b) }"""
    )
    find = gm.graph.find_nodes
    assert [node.name for node in find(op="placeholder")] == ["x"]
    assert [node.name for node in find(op="get_attr")] == ["w"]
    assert len(find(op="call_function")) == 3
    assert len(find(op="call_function", target="Neg", sort=False)) == 2
    assert len(find(op="call_function", target=operator.neg)) == 2
    assert find(op="call_function", target="Abs") == []
    assert find(op="placeholder", target="y") == []


def test_a_graph_is_printed_a_line_for_each_node(capsys: pytest.CaptureFixture[str]) -> None:
    gm = module("(float[2] x) => (float[2] y) { y = Neg(x) }")
    said = gm.print_readable(print_output=False)
    assert capsys.readouterr().out == ""
    assert len(said.splitlines()) == 3
    assert gm.print_readable() == said
    assert capsys.readouterr().out == f"{said}\n"


def test_numbers_are_constants_of_the_dtype_of_the_first_node() -> None:
    gm = module("(double[2] x, int64[2] i) => (double[2] y) { y = Neg(x) }")
    x, i = list(gm.graph.nodes)[:2]
    for first, number, dtype in (
        (x, 2, np.float64),
        (i, 3, np.int64),
        (x, np.float32(2), np.float64),
    ):
        made = gm.graph.call_function("Mul", (first, number))
        constant = made.subject.inputs[1]
        assert (constant.const, constant.const.dtype) == (number, dtype)
    array = gm.graph.call_function("Mul", (x, np.ones(2, np.float32))).subject.inputs[1]
    assert array.dtype == onnx.TensorProto.FLOAT
    clip = gm.graph.call_function("Clip", (x, None, 3.0)).subject
    assert clip.inputs[1] is None
    assert clip.inputs[2].dtype == onnx.TensorProto.DOUBLE


def test_operators_of_other_domains_and_kwargs_are_made() -> None:
    gm = module("(float[2,3] x) => (float[2,3] y) { y = Neg(x) }")
    x = next(iter(gm.graph.nodes))
    gelu = gm.graph.call_function("com.microsoft::Gelu", (x,))
    assert (gelu.subject.domain, gelu.target) == ("com.microsoft", "com.microsoft::Gelu")
    soft = gm.graph.call_function("Softmax", (x,), {"axis": 0})
    assert soft.kwargs == {"axis": 0}
    with pytest.raises(UsageError, match="is no operator of ONNX"):
        gm.graph.call_function(3, (x,))
    for wrong in ("Reluu", "ai.onnx.ml::Reluu"):
        with pytest.raises(UsageError, match=f"there is no operator '{wrong}'"):
            gm.graph.call_function(wrong, (x,))
        with pytest.raises(UsageError, match=f"there is no operator '{wrong}'"):
            soft.target = wrong


def test_a_local_function_and_what_the_model_has_already_are_operators() -> None:
    gm = module(
        """(float[2] x) => (float[2] y) { a = F(x) y = Wurst(a) }
        <opset_import: ["" : 18], domain: ""> F (u) => (v) { v = Neg(u) }"""
    )
    x = next(iter(gm.graph.nodes))
    assert gm.graph.call_function("F", (x,)).target == "F"
    assert gm.graph.node_copy(by_target(gm, "Wurst"), lambda arg: x).target == "Wurst"


def test_a_name_is_that_of_a_new_operator() -> None:
    gm = module("(float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Add(x, w) }")
    made = gm.graph.create_node("call_function", "Neg", (next(iter(gm.graph.nodes)),), {}, "mine")
    assert made.name == "mine"
    assert gm.graph.get_attr("w").name == "w"
    with pytest.raises(
        UsageError, match=r"the graph has no weight 'ww'; did you mean 'w'|no weight 'ww'"
    ):
        gm.graph.get_attr("ww")


def test_the_node_before_the_first_is_the_last() -> None:
    gm = module("(float[2] x) => (float[2] y) { y = Neg(x) }")
    x, neg, output = gm.graph.nodes
    assert (neg.next, neg.prev, x.prev, output.next) == (output, x, output, x)


def test_what_was_erased_is_no_operand() -> None:
    gm = module("(float[2] x) => (float[2] y) { y = Neg(x) }")
    x = next(iter(gm.graph.nodes))
    made = gm.graph.call_function("Abs", (x,))
    gm.graph.erase_node(made)
    with pytest.raises(ModelError, match="was erased"):
        gm.graph.call_function("Exp", (made,))
    with pytest.raises(ModelError, match="was erased"):
        gm.graph.erase_node(made)
    with gm.graph.inserting_after():
        gm.graph.call_function("Exp", (x,))


def test_notes_belong_to_operators_and_values() -> None:
    gm = module("(float[2] x) => (float[2] y) { y = Neg(x) }")
    x, neg, output = gm.graph.nodes
    x.meta["a"], neg.meta["b"] = 1, 2
    again = list(gm.graph.nodes)
    assert (again[0].meta["a"], again[1].meta["b"]) == (1, 2)
    assert neg.subject.scratch["b"] == 2
    assert "a" not in output.meta


def test_edits_of_graphs_are_recorded() -> None:
    def shown(gm: Any) -> object:
        return [node.format_node() for node in gm.graph.nodes]

    def edited(edit: Any, text: str = SPLIT) -> object:
        gm = module(text)
        named = {node.name: node for node in gm.graph.nodes}
        before, said = shown(gm), edit(gm.graph, named)
        gm.graph.lint()
        after = shown(gm)
        return None if said is None else str(said), "same" if after == before else after

    names = {
        "shown": shown, "edited": edited, "module": module, "operator": operator, "np": np,
        "Model": Model, "GraphModule": GraphModule, "first": lambda graph: next(iter(graph.nodes)),
        "ONE": "(float[2] x) => (float[2] y) { y = Neg(x) }",
        "BODY": "(float[2] x, bool c) => (float[2] y) { y = If (c) <then_branch = t () => "
        "(float[2] u) { u = Exp(x) }, else_branch = e () => (float[2] v) { v = Abs(x) }> }",
        "inserted": inserted,
    }  # fmt: skip
    assert_values(__file__, names)


SPLIT = """(float[4] x) => (float[2] y, float[2] z) <float[2] w = {1,2}, float[2] u = {3,4}>
    { a, b = Split<num_outputs=2>(x) c = Add(a, w) d = Neg(b) y = Mul(c, d) z = Abs(c) }"""


def inserted(graph: Any, before: Any = None) -> str:
    """Return that a place was taken."""
    with graph.inserting_before(before):
        return "inside"
