"""Which nodes of two models are one place, in which order, and what is said of them."""

import pytest

import tiered
from tiered.extensions.differences.places import DifferingPlace, operators_of
from tiered.testing import parse

CHAIN = """(float[2,4] x) => (float[2,4] y) {
    [one] a = Relu(x)  [two] b = Neg(a)  [three] c = Abs(b)  [four] d = Exp(c)
    [five] y = Tanh(d) }"""


def places(before: str, after: str) -> tuple[DifferingPlace, ...]:
    return tuple(tiered.diff(parse(before), parse(after)).places)


def test_places_come_in_the_order_of_the_first_model() -> None:
    after = CHAIN.replace("d = Exp(c)", "d = Sqrt(c)").replace(
        "[one] a = Relu(x)", "[new] a = Sin(x)"
    )
    found = places(CHAIN, after)
    assert [place.kind[:2] for place in found] == [("Relu", "Sin"), ("Exp", "Sqrt")]


def test_a_new_node_stands_where_its_inputs_are() -> None:
    after = CHAIN.replace("[five] y = Tanh(d)", "[more] e = Sin(d)  [five] y = Tanh(e)").replace(
        "[two] b = Neg(a)", "[less] b = Cos(a)"
    )
    found = places(CHAIN, after)
    assert [place.kind[1].split(", ")[0] for place in found] == ["Cos", "Sin"]
    first = CHAIN.replace("[one] a = Relu(x)", "[zero] z = Sin(x)  [one] a = Relu(z)")
    changed = first.replace("[five] y = Tanh(d)", "[five] y = Cos(d)")
    assert [place.kind[1] for place in places(CHAIN, changed)][-1] == "Cos"


def test_a_place_grows_along_new_values_and_ends_at_those_of_both() -> None:
    after = CHAIN.replace(
        "[two] b = Neg(a)  [three] c = Abs(b)", "[n] m = Sin(a)  [o] b = Cos(m)  [p] c = Tan(b)"
    )
    found = places(CHAIN, after)
    assert [place.kind[:2] for place in found] == [("Neg", "Sin, Cos"), ("Abs", "Tan")]
    assert [place.at for place in found] == ["two", "three"]


@pytest.mark.parametrize(
    ("was", "has", "note"),
    [
        ("Softmax<axis=1>(x)", "Softmax<axis=0>(x)", "attribute axis: 1 -> 0"),
        ("Sub(x, z)", "Sub(z, x)", "input 0: x -> z"),
        ("Sub(x, z)", "Sub(x, x)", "input 1: z -> x"),
        ("Clip(x, low)", "Clip(x, , low)", "input 1: low -> absent"),
    ],
)
def test_what_of_a_node_differs_is_said(was: str, has: str, note: str) -> None:
    text = "(float[2,4] x, float[2,4] z) => (float[2,4] y) <float low = {{0}}> {{ [n] y = {} }}"
    (found,) = places(text.format(was), text.format(has))
    assert note in [each for change in found.changes for each in change.notes]
    assert found.kind[2] == ", ".join(
        sorted({each.partition(":")[0] for change in found.changes for each in change.notes})
    )


def test_operators_are_counted() -> None:
    graph = tiered.Model.from_proto(parse(CHAIN.replace("Abs(b)", "Neg(b)"))).main
    assert operators_of(graph.nodes) == "Relu, 2 Neg, Exp, Tanh"
    assert operators_of(()) == "nothing"
