"""Memory plans: lifetimes, the peak, and what takes no memory."""

import pytest
from hypothesis import given, settings, strategies as st

from tiered import Model
from tiered.extensions.memory import MemoryPlan, memory_line, memory_plan, memory_svg
from tiered.support.errors import UsageError
from tiered.testing import parse

SVG = "{http://www.w3.org/2000/svg}"
DIAMOND = "(float[4] x) => (float[4] y) { a = Relu(x) b = Sin(a) c = Cos(a) y = Add(b, c) }"


def planned(text: str, **options: object) -> MemoryPlan:
    return memory_plan(Model.from_proto(parse(text)), **options)  # type: ignore[arg-type]  # of any


def sizes(plan: MemoryPlan) -> list[int]:
    return [step.nbytes for step in plan.steps]


def test_a_tensor_is_alive_from_its_producer_to_its_last_reader() -> None:
    plan = planned(DIAMOND, in_place=False)
    # x is alive all the time: x a, x a b, x a b c, x b c y
    assert sizes(plan) == [32, 48, 64, 64]
    assert (plan.peak, plan.peak_at) == (64, 2)
    alive = {each.name: (each.first, each.last) for each in plan.lifetimes}
    assert alive == {"x": (-1, 4), "a": (0, 2), "b": (1, 3), "c": (2, 3), "y": (3, 4)}
    assert [each.name for each in plan.alive_at(2)] == ["x", "a", "b", "c"]


def test_an_elementwise_operator_writes_over_an_operand_that_is_not_read_later() -> None:
    # c takes the memory of a, and y that of b; the input is not written over.
    assert sizes(planned(DIAMOND)) == [32, 48, 48, 48]


def test_views_take_no_memory_and_keep_their_source_alive() -> None:
    text = (
        "(float[2,2] x) => (float[4] y) <int64[1] s = {-1}> "
        "{ a = Relu(x) b = Reshape(a, s) c = Transpose(x) d = Reshape(c, s) y = Add(b, d) }"
    )
    plan = planned(text, in_place=False)
    assert sizes(plan) == [32, 32, 48, 48, 64]
    assert [each.name for each in plan.lifetimes] == ["x", "a", "c", "y"]
    assert plan.lifetimes[1].last == 4
    assert sizes(planned(text, in_place=False, views=False)) == [32, 48, 48, 64, 64]


def test_constants_are_apart() -> None:
    text = (
        "(float[2] x) => (float[2] y) <float[2] w = {1,2}> "
        "{ c = Constant<value_float=1.0>() a = Add(x, w) y = Mul(a, c) }"
    )
    plan = planned(text)
    assert plan.weights == 12
    assert {each.name for each in plan.lifetimes} == {"x", "a"}


def test_an_input_with_a_default_is_a_tensor() -> None:
    text = "(float[2] x, float[2] w) => (float[2] y) <float[2] w = {1,2}> { y = Add(x, w) }"
    plan = planned(text)
    assert sizes(plan) == [24]


def test_the_peak_of_a_body_counts_at_its_node() -> None:
    text = (
        "(bool c, float[4] x) => (float[4] y) { y = If(c) <then_branch = t () => (float[4] p) "
        "{ a = Sin(x) b = Cos(x) p = Add(a, b) }, "
        "else_branch = e () => (float[4] q) { q = Exp(x) }> }"
    )
    # c, x, y; and in the larger branch a, b, p
    assert sizes(planned(text, in_place=False)) == [33 + 48]


def test_a_body_keeps_alive_what_it_captures() -> None:
    text = (
        "(bool c, float[4] x) => (float[4] y) { a = Exp(x) b = Sin(x) "
        "d = If(c) <then_branch = t () => (float[4] p) { p = Cos(a) }, "
        "else_branch = e () => (float[4] q) { q = Exp(x) }> y = Add(b, d) }"
    )
    plan = planned(text, in_place=False)
    assert {each.name: each.last for each in plan.lifetimes}["a"] == 2


def test_dynamic_dims_have_sizes() -> None:
    text = "(float[N,3] x) => (float[N,3] y) { y = Softmax(x) }"
    plan = planned(text)
    assert (plan.peak, plan.assumed) == (2 * 16 * 12, ("N",))
    plan = planned(text, dims={"N": 2})
    assert (plan.peak, plan.assumed) == (2 * 2 * 12, ())
    assert planned(text, default_dim=1).peak == 24


def test_a_dim_that_no_input_has_is_refused() -> None:
    text = "(float[?,batch] x) => (float[A,batch] y) { y = Neg(x) }"
    with pytest.raises(UsageError) as caught:
        planned(text, dims={"batch": 3, "bath": 2})
    said = "no input of the model has a dim 'bath'; did you mean 'batch'?; it has batch"
    assert str(caught.value) == said


def test_values_of_unknown_rank_are_listed() -> None:
    text = (
        '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> '
        "g (float[2] x) => (float[2] y) { a = own.Any(x) y = Relu(a) }"
    )
    assert planned(text).unknown == ("a",)


def test_a_model_without_nodes_has_no_peak() -> None:
    plan = planned("(float[2] x) => (float[2] x) { }")
    assert (plan.peak, plan.peak_at, memory_line(plan)) == (0, -1, "")
    assert memory_svg(plan).startswith("<svg")


OPERATORS = ("Relu", "Add", "Transpose", "Concat")


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Return a random graph of matrices."""
    names, lines = ["x"], []
    for at in range(draw(st.integers(1, 8))):
        operator = draw(st.sampled_from(OPERATORS))
        one, other = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        call = {
            "Relu": f"Relu({one})",
            "Add": f"Add({one}, {other})",
            "Transpose": f"Transpose({one})",
            "Concat": f"Slice({one}, zero, two, zero)",
        }[operator]
        names.append(f"v{at}")
        lines.append(f"v{at} = {call}")
    outputs = draw(st.lists(st.sampled_from(names[1:]), min_size=1, max_size=2, unique=True))
    shown = ", ".join(f"float[2,2] {name}" for name in outputs)
    return (
        f"(float[2,2] x) => ({shown}) <int64[1] zero = {{0}}, int64[1] two = {{2}}> "
        f"{{ {' '.join(lines)} }}"
    )


@given(texts())
@settings(max_examples=60, deadline=None)
def test_the_steps_are_what_lifetimes_say(text: str) -> None:
    model = Model.from_proto(parse(text))
    order = list(model.main.topological_order())
    plan = memory_plan(model, in_place=False, views=False)
    for at, step in enumerate(plan.steps):
        alive = 16  # the input
        for place, node in enumerate(order):
            readers = [order.index(user.node) for user in node.output.users]
            last = len(order) if node.output.is_graph_output else max(readers, default=place)
            alive += 16 if place <= at <= last else 0
        assert step.nbytes == alive
    reused = memory_plan(model)
    assert reused.peak <= plan.peak
    assert all(a.nbytes <= b.nbytes for a, b in zip(reused.steps, plan.steps, strict=True))


def test_operators_of_other_domains_have_memory_of_their_own() -> None:
    for operator in ("Reshape", "Relu"):
        text = f"""(float[4] x) => (float[4] y) <float[4] y, float[4] a, float[4] b> {{
            a = Sin(x) b = com.acme.{operator}(a) y = Softmax(b) }}"""
        assert sizes(planned(text)) == [32, 48, 48], operator


def test_absent_outputs_and_dims_without_a_name() -> None:
    text = '(float[4] x, int64[1] k) => (int64[2] i) { "", i = TopK(x, k) }'
    assert [each.name for each in planned(text).lifetimes] == ["x", "k", "i"]
    plan = planned("(float[?,N] x) => (float[?,N] y) { y = Softmax(x) }")
    assert plan.assumed == ("", "N")
    assert planned("(float[] x, float s) => (float s2) { s2 = Neg(s) }").assumed == ("",)
