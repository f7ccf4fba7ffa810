"""What a gradient rule is called with, and its registry."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.small import made_by
from tiered import Model, UsageError
from tiered.extensions.gradients import Expr, NoGradient, Step, expansion, gradient_rule
from tiered.extensions.gradients.reverse import ReverseMode
from tiered.extensions.gradients.rule_registry import GRADIENTS
from tiered.graph import Value
from tiered.testing import parse

TEXT = """(float[2,3] x, float[2] a, int64[2] d) => (float[1,3] y)
    <float low = {0}, int64[2] axes = {-1,0}> {
        y = ReduceSum(x, axes)  z = Clip(x, "", low)  v, i = TopK(x, d)  w = ReduceSum(x, d) }"""


def step_of(name: str, wanted: Sequence[str] = (), grads: Sequence[str | None] = ()) -> Step:
    """Return the step of the node that computes a value."""
    model = Model.from_proto(parse(TEXT))
    graph = model.main
    node = graph.values[name].producer
    assert node is not None
    seeds: list[Value | None] = [None if each is None else graph.values[each] for each in grads]
    return Step(
        node, graph, seeds or [None] * len(node.outputs), [graph.values[each] for each in wanted],
        ReverseMode(model),
    )  # fmt: skip


def test_operands_and_outputs_are_expressions_named_after_the_node() -> None:
    step = step_of("v")
    assert step.name == f"grad/{step.node.label}"
    assert [each.value.name for each in step.operands if each] == ["x", "d"]
    assert [each.value.name for each in step.outputs if each] == ["v", "i"]
    assert (step.x.name, step.x.graph) == (step.name, step.graph)
    assert (step.x.value.name, step.y.value.name) == ("x", "v")


@pytest.mark.parametrize(("place", "has"), [(0, True), (1, False), (2, True), (3, False)])
def test_an_operand_that_is_absent_is_not_there(place: int, *, has: bool) -> None:
    step = step_of("z")
    assert step.has(place) == has
    if has:
        assert step.operand(place).value is step.values[place]
    elif place < len(step.operands):
        assert step.operands[place] is None
        with pytest.raises(AssertionError, match="has no operand 1"):
            step.operand(place)


def test_the_gradients_of_some_operands_are_wanted() -> None:
    step = step_of("y", wanted=["x"])
    assert [step.wants(place) for place in range(4)] == [True, False, False, False]


def test_the_gradient_of_an_output_that_is_not_read_is_zero() -> None:
    step = step_of("v", grads=[None, "i"])
    made = step.g.value.producer
    assert made is not None
    assert made.op_type == "ConstantOfShape"
    assert step_of("y", grads=["a"]).g.value.name == "a"


def test_axes_are_counted_from_the_front() -> None:
    assert step_of("y").axes(1) == [1, 0]
    assert step_of("y").axes(2) is None
    for dims, axis, expected in (("[3]", -1, 0), ("", -1, 0), ("[2,3]", -2, 0), ("[2,3]", 1, 1)):
        text = f"(float{dims} x) => (float y) <int64[1] a = {{{axis}}}> {{ y = ReduceSum(x, a) }}"
        graph = (model := Model.from_proto(parse(text))).main
        step = Step(made_by(graph, "y"), graph, [None], [], ReverseMode(model))
        assert step.axes(1) == [expected], dims


def test_an_output_that_is_absent_is_none() -> None:
    text = '(float[2,3] x, int64[1] k) => (int64[2,1] i) { "", i = TopK(x, k) }'
    graph = (model := Model.from_proto(parse(text))).main
    step = Step(made_by(graph, "i"), graph, [None, None], [], ReverseMode(model))
    assert [each and each.value.name for each in step.outputs] == [None, "i"]


def test_axes_that_are_computed_have_no_gradient() -> None:
    with pytest.raises(NoGradient, match="its axes are not constant"):
        step_of("w").axes(1)


def test_an_error_names_the_node_and_the_way_out() -> None:
    step = step_of("z")
    assert str(step.error("it rains")) == (
        f"gradient: node {step.node.label!r} (Clip) has no gradient: it rains; "
        "name it in stop_at to treat its outputs as constants"
    )


def test_rules_are_registered_with_what_they_promise() -> None:
    try:

        @gradient_rule("F", "G", domain=("acme", "acme.v2"))
        def rule(step: Step) -> Sequence[Expr | None]:
            return (step.g,)

        @gradient_rule("H", domain="acme", broadcasts=True)
        def repeated(step: Step) -> Sequence[Expr | None]:
            return (step.g,)

        @expansion("E", domain="acme")
        def expanded(step: Step) -> Sequence[Expr | None]:
            return (step.x,)

        for name in ("F", "G"):
            for domain in ("acme", "acme.v2"):
                assert GRADIENTS.find((domain, name)) == (rule, False, False)
        assert GRADIENTS.find(("acme", "H")) == (repeated, False, True)
        assert GRADIENTS.find(("acme", "E")) == (expanded, True, False)
        with pytest.raises(UsageError, match="there is a gradient rule for acme::E already"):
            gradient_rule("E", domain="acme")(rule)
    finally:
        for name in "FGHE":
            GRADIENTS.remove(name, "acme")
            GRADIENTS.remove(name, "acme.v2")


def test_a_rule_without_an_operator_is_an_error() -> None:
    nameless: Any = np.abs
    for decorator in (gradient_rule, expansion):
        with pytest.raises(UsageError, match="takes names of operators"):
            decorator()
        with pytest.raises(UsageError, match="takes names of operators"):
            decorator(nameless)
