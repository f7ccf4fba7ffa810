"""Reverse mode over some nodes: what is active, what is added up, and what needs a rule."""

from collections.abc import Collection, Sequence

import numpy as np
import onnx
import pytest

from tests.extensions.gradients.differences import Reference, gradients_of
from tiered import Model, get_pass
from tiered.extensions.gradients import Expr, NoGradient
from tiered.extensions.gradients.reverse import ReverseMode
from tiered.graph import Value
from tiered.testing import parse


def reversed_from(
    model: Model, output: str, targets: Sequence[str], stop_at: Collection[str] = ()
) -> dict[str, Value]:
    """Return the gradients of some values by name, from ones for an output."""
    graph = model.main
    nodes = graph.topological_order()
    seed = Expr(graph, graph.values[output], "seed").ones().value
    reverse = ReverseMode(model, stop_at)
    found = reverse(graph, nodes, {graph.values[output]: seed}, [graph.values[t] for t in targets])
    reverse.release()
    return {value.name: grad for value, grad in found.items()}


def model_of(text: str, opset: int = 21) -> Model:
    return Model.from_proto(parse(text, opset=opset))


CHAIN = """(float[2] x, float[2] w, int64[2] k) => (float[2] y) {
    h = Mul(x, w)  c = Cast <to = 1> (k)  p = Add(h, c)  q = Add(h, x)  y = Mul(p, q) }"""


def test_only_gradients_that_are_not_zero_are_returned() -> None:
    assert set(reversed_from(model_of(CHAIN), "y", ["x", "w", "c"])) == {"x", "w", "c"}
    assert set(reversed_from(model_of(CHAIN), "h", ["x", "c"])) == {"x"}
    assert reversed_from(model_of(CHAIN), "y", ["x"], stop_at=["x"]) == {}


def test_the_seed_is_the_gradient_of_the_output_itself() -> None:
    model = model_of(CHAIN)
    found = reversed_from(model, "y", ["y"])
    made = found["y"].producer
    assert made is not None
    assert made.op_type == "ConstantOfShape"


def test_nodes_that_depend_on_no_target_are_not_differentiated() -> None:
    model = model_of("""(float[2] x, float[2] z) => (float[2] y) {
        a = com.acme.F(z)  y = Add(x, a) }""")
    assert set(reversed_from(model, "y", ["x"])) == {"x"}
    with pytest.raises(NoGradient, match=r"node 'a' \(com.acme::F\) .*: there is no rule for"):
        reversed_from(model, "y", ["z"])


def test_a_node_that_computes_a_target_alone_needs_no_rule() -> None:
    text = """(float[2] z, int64[2] k) => (float[2] y) {
        c = Cast <to = 1> (k)  a = com.acme.F(c)  h = Neg(c)  b = Add(a, h)  y = Add(b, z) }"""
    for targets in (["b"], ["z"], ["h", "z"], ["a"]):
        model = model_of(text)
        assert set(reversed_from(model, "y", targets)) == {*targets}
        graph = model.main
        nodes = graph.topological_order()
        ReverseMode(model).check_rules(nodes, [graph.values[name] for name in targets])


def test_a_target_that_is_named_as_a_constant_has_no_gradient() -> None:
    text = "(float[2] x, float[2] w) => (float[2] y) { y = Mul(x, w) }"
    assert set(reversed_from(model_of(text), "y", ["x", "w"], stop_at=["x"])) == {"w"}


def test_an_absent_output_is_passed_over() -> None:
    text = """(float[4] x, int64[1] k) => (float[4] y, int64[1] i) {
        "", i = TopK(x, k)  y = Neg(x) }"""
    assert set(reversed_from(model_of(text), "y", ["x"])) == {"x"}


def test_a_captured_value_without_a_gradient_in_a_branch() -> None:
    text = """(float[2] x, float[2] z, bool c) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] a) { r = Ceil(x)  a = Mul(r, z) },
                   else_branch = e () => (float[2] b) { b = Floor(x) }> }"""
    assert set(reversed_from(model_of(text), "y", ["x"])) <= {"x"}
    assert set(reversed_from(model_of(text), "y", ["z"])) == {"z"}


@pytest.mark.parametrize("stop", ["a", "mark"])
def test_nodes_and_values_to_stop_at_need_no_rule(stop: str) -> None:
    text = "(float[2] x) => (float[2] y) { [mark] a = com.acme.F(x)  y = Add(x, a) }"
    assert set(reversed_from(model_of(text), "y", ["x"], stop_at=[stop])) == {"x"}


def test_an_integer_between_ends_the_path() -> None:
    text = """(float[2] x) => (float[2] y) {
        i = Cast <to = 7> (x)  f = Cast <to = 1> (i)  y = Mul(f, x) }"""
    found = gradients_of(text, x=[2.5, -3.5])["x"]
    np.testing.assert_array_equal(found, [2, -3])


def test_a_value_of_an_unknown_dtype_is_on_the_path() -> None:
    text = "(float[2] x) => (float[2] y) { a = com.acme.F(x)  b = com.acme.G(a)  y = Add(b, x) }"
    with pytest.raises(NoGradient, match=r"\(com.acme::G\)"):
        reversed_from(model_of(text), "y", ["x"])


def test_two_users_are_added_by_add_and_more_by_sum() -> None:
    for count, operator in ((2, "Add"), (3, "Sum")):
        operands = ", ".join(["x"] * count)
        model = model_of(f"(float[2] x) => (float[2] y) {{ y = Sum({operands}) }}")
        made = reversed_from(model, "y", ["x"])["x"].producer
        assert made is not None
        assert made.op_type == operator


def test_a_node_with_two_outputs_that_are_both_read() -> None:
    text = "(double[4] x) => (double[2] y) { a, b = Split <num_outputs = 2> (x)  y = Mul(a, b) }"
    found = gradients_of(text, x=[1, 2, 3, 4], seed=[1, 10])["x"]
    np.testing.assert_array_equal(found, [3, 40, 1, 20])


FUNCTION = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
    g (double[3] x) => (double[3] y) { y = own.scaled <by = 3.0> (x) }
    <domain: "own", opset_import: ["" : 21]> scaled <by: float = 2.0> (a) => (b) {
        k = Constant <value_float: float = @by> ()  d = CastLike(k, a)  b = Mul(d, a) }"""


def test_attributes_of_a_call_reach_the_body_of_the_function() -> None:
    np.testing.assert_array_equal(gradients_of(FUNCTION, x=[1, 2, 3])["x"], [3, 3, 3])
    default = FUNCTION.replace("<by = 3.0> (x)", "(x)")
    found = gradients_of(default.replace("double", "float"), x=[1, 2, 3], in_float=True)["x"]
    np.testing.assert_array_equal(found, [2, 2, 2])


def test_bodies_of_operators_are_functions_of_the_model_only_meanwhile() -> None:
    text = "(float[2,3] x) => (float[2,3] y) { h = Mish(x)  y = Mish(h) }"
    model = model_of(text)
    graph = model.main
    reverse = ReverseMode(model)
    seed = Expr(graph, graph.values["y"], "seed").ones().value
    reverse(graph, graph.topological_order(), {graph.values["y"]: seed}, [graph.values["x"]])
    assert len(list(model.functions)) == 1  # one for both nodes
    reverse.release()
    assert not list(model.functions)


def test_a_body_with_an_operator_of_another_meaning_is_refused() -> None:
    text = "(float[2,3,4,4] x) => (float[2,3,4,4] y) { y = MeanVarianceNormalization(x) }"
    with pytest.raises(NoGradient, match="has ReduceMean, which has another meaning in Reduce"):
        reversed_from(model_of(text, opset=11), "y", ["x"])


def test_the_rules_are_checked_without_a_backward_pass() -> None:
    model = model_of("""(float[2] x, float[2] z) => (float[2] y) {
        a = com.acme.F(z)  b = Mish(x)  y = Add(b, a) }""")
    graph, reverse = model.main, ReverseMode(model)
    nodes, count = graph.topological_order(), len(graph.nodes)
    reverse.check_rules(nodes, [graph.values["x"]])
    with pytest.raises(NoGradient, match=r"node 'a' \(com.acme::F\).*there is no rule"):
        reverse.check_rules(nodes, [graph.values["z"]])
    ReverseMode(model, ["a"]).check_rules(nodes, [graph.values["z"]])
    assert len(graph.nodes) == count


def test_calls_of_functions_have_a_rule() -> None:
    model = Model.from_proto(parse(FUNCTION))
    graph = model.main
    ReverseMode(model).check_rules(graph.topological_order(), [graph.values["x"]])


def test_gradients_are_summed_over_repeated_axes_for_rules_that_broadcast() -> None:
    text = """(double[2,3] x, double[3] b, double c) => (double[2,3] y) {
        h = Add(x, b)  y = Add(h, c) }"""
    found = gradients_of(text, x=np.zeros((2, 3)), b=[0, 0, 0], c=0, seed=[[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(found["b"], [5, 7, 9])
    assert found["c"] == 21


def test_the_forward_pass_stays_as_it_is() -> None:
    proto = parse(CHAIN)
    made = get_pass("gradient", seed="ones")(proto)
    assert isinstance(made, onnx.ModelProto)
    assert list(made.graph.node)[: len(proto.graph.node)] == list(proto.graph.node)
    feeds = {"x": np.array([1, 2], "f4"), "w": np.array([3, 4], "f4"), "k": np.array([5, 6])}
    found = Reference(made)(feeds)
    # y = (x w + k) (x w + x)
    np.testing.assert_allclose(found["grad/x"], [3 * 4 + 8 * 4, 4 * 10 + 14 * 5])
    np.testing.assert_allclose(found["grad/w"], [1 * 4 + 8 * 1, 2 * 10 + 14 * 2])
