"""Rewrites of a pass that is bound to a part of a model: those with edits outside are undone."""

import pytest

from tests.small import look, made_by, ops, parsed
from tiered.graph import Model
from tiered.graph.edits.operand_edits import exchange_outputs
from tiered.passes.interface.pass_info import Place
from tiered.passes.pass_run import PassRun
from tiered.passes.scope_guard import OUTSIDE, Inside, scoped

TEXT = "(float[2] x) => (float[2] y) <float[2] w = {1,2}> { a = Neg(x) b = Abs(a) y = Add(b, w) }"


@pytest.fixture
def of() -> Model:
    return parsed(TEXT)


def run_of(model: Model, *names: str) -> PassRun:
    inside = {made_by(model, name).id for name in names}
    return PassRun(look, Place(), lambda node: node.id in inside)


def test_a_run_may_touch_the_nodes_of_its_beginning_and_new_ones(of: Model) -> None:
    inside = Inside(of, lambda node: node.op_type == "Abs")
    assert [inside.holds(made_by(of, name)) for name in "aby"] == [False, True, False]
    assert inside.holds(of.main.op.Exp(of.main.inputs[0]).producer)  # type: ignore[arg-type]  # it has one


def rewritten(of: Model, name: str, run: PassRun) -> list[str]:
    """Replace a node by an Exp under a guard, and return the operators of the model."""
    graph, node = of.main, made_by(of, name)
    with scoped(of, run), graph.rewrite("law", node):
        graph.replace(node, [graph.op.Exp(node.given(0))])
    return ops(of)


def test_a_rewrite_inside_stays_and_its_consumers_may_be_outside(of: Model) -> None:
    run = run_of(of, "b")
    assert rewritten(of, "b", run) == ["Neg", "Exp", "Add"]
    assert not run.notes()


def test_a_rewrite_of_a_node_outside_is_undone_and_noted(of: Model) -> None:
    run = run_of(of, "b")
    assert rewritten(of, "a", run) == ["Neg", "Abs", "Add"]
    (note,) = run.notes()["missed"]
    assert note.reason == OUTSIDE.reason


def test_without_a_scope_nothing_is_guarded(of: Model) -> None:
    run = PassRun(look, Place())
    with scoped(of, run) as inside:
        assert inside is None
    assert rewritten(of, "a", run) == ["Exp", "Abs", "Add"]


def test_the_guard_before_comes_back(of: Model) -> None:
    before = of.gate.accepts
    with scoped(of, run_of(of, "b")) as inside:
        assert inside is not None
        assert of.gate.accepts is not before
    assert of.gate.accepts is before


def test_a_constant_is_changed_if_all_that_read_it_are_inside(of: Model) -> None:
    graph = of.main
    constant = made_by(of, "y").given(1)
    tensor = constant.tensor
    assert tensor is not None
    doubled = type(tensor).of(tensor.numpy() * 2)
    for names, expected in ((("b",), [1, 2]), (("y",), [2, 4])):
        with scoped(of, run_of(of, *names)), graph.rewrite("law", made_by(of, "y")):
            graph.set_constant(constant, doubled)
        assert constant.const is not None
        assert constant.const.tolist() == expected, names


def test_an_operand_outside_is_changed_only_where_its_producer_is_inside(of: Model) -> None:
    graph, y = of.main, made_by(of, "y")
    x = graph.inputs[0]
    for names, expected in ((("a",), "b"), (("b",), "x")):
        with scoped(of, run_of(of, *names)), graph.rewrite("law", y):
            graph.set_input(y, 0, x)
        assert y.given(0).name == expected, names


def test_names_and_types_of_values_may_change_in_a_scope(of: Model) -> None:
    graph = of.main
    with scoped(of, run_of(of, "b")), graph.rewrite("law", made_by(of, "b")):
        graph.rename_value(made_by(of, "a").output, "renamed")
    assert made_by(of, "renamed").op_type == "Neg"


def test_an_absent_operand_of_a_node_outside_stays_absent() -> None:
    of = parsed("(float[2] x) => (float[2] y) <float m = {1}> { a = Neg(x)  y = Clip(a, , m) }")
    graph, y = of.main, made_by(of, "y")
    run = run_of(of, "a")
    with scoped(of, run), graph.rewrite("law", made_by(of, "a")):
        graph.set_input(y, 1, y.given(2))
    assert y.input(1) is None


def test_outputs_are_exchanged_between_nodes_inside_only() -> None:
    text = "(float[2] x) => (float[2] y, float[2] z) { y = Neg(x)  z = Abs(x) }"
    for names, expected in (("yz", ["Abs", "Neg"]), ("y", ["Neg", "Abs"]), ("z", ["Neg", "Abs"])):
        of = parsed(text)
        graph, one, other = of.main, made_by(of, "y"), made_by(of, "z")
        with scoped(of, run_of(of, *names)), graph.rewrite("law", one):
            exchange_outputs(graph, one, 0, other, 0)
        assert [made_by(of, name).op_type for name in "yz"] == expected, names


def test_a_rewrite_at_an_input_is_noted_without_a_node(of: Model) -> None:
    graph, run = of.main, run_of(of, "b")
    with scoped(of, run), graph.rewrite("law", graph.inputs[0]):
        graph.set_attribute(made_by(of, "a"), "odd", 1)
    (note,) = run.notes()["missed"]
    assert (note.reason, note.op_type) == (OUTSIDE.reason, "")
