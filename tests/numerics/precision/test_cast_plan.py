"""The type of each variable of a model, with the fewest Casts between them."""

from collections.abc import Collection

import pytest

from tests.small import named, parsed
from tiered import DataType, Node
from tiered.numerics.precision.cast_plan import CAST, CastPlan, Price, plan_of, read_value
from tiered.numerics.precision.narrowing import FloatNarrowing
from tiered.numerics.precision.variables import VariableUse, variables_of

BETWEEN = "between values that keep their type"


class Keeping(FloatNarrowing):
    """Keeps the nodes of some outputs."""

    def __init__(self, names: Collection[str]) -> None:
        super().__init__(DataType.FLOAT16)
        self.names = names

    def keep(self, node: Node) -> str:
        return "it is to" if node.outputs[0] and node.outputs[0].name in self.names else ""


def planned(text: str, *kept: str, keeps_io: bool = True) -> CastPlan:
    return plan_of(variables_of(parsed(text), Keeping(kept), keeps_io=keeps_io))


def low(plan: CastPlan) -> set[str]:
    return {value.name for variable in plan.low for value in variable.values}


def test_what_computes_is_narrow_unless_it_is_kept() -> None:
    text = "(float[2] x) => (float[2] y) { a = Sin(x)  b = Cos(a)  y = Exp(b) }"
    plan = planned(text, "b")
    assert low(plan) == {"a", "y"}
    assert [(node.output.name, reason) for node, reason in plan.kept_nodes] == [("b", "it is to")]
    reasons = [reason for _, reason in plan.kept]
    assert reasons == ["an input of the model", "it is to", "an output of the model"]


def test_a_move_between_wide_values_stays_wide() -> None:
    text = "(float[2] x) => (float[2] y) { y = Identity(x) }"
    plan = planned(text)
    assert low(plan) == set()
    assert [(node.output.name, reason) for node, reason in plan.kept_nodes] == [("y", BETWEEN)]
    assert low(planned(text, keeps_io=False)) == {"x", "y"}


def test_a_move_between_narrow_values_is_narrow() -> None:
    text = "(float[2] x) => (float[2] y) { a = Sin(x)  b = Identity(a)  y = Exp(b) }"
    assert low(planned(text)) == {"a", "b", "y"}


def test_a_move_that_needs_as_many_casts_either_way_is_narrow() -> None:
    text = "(float[2] x) => (float[2] y) { a = Sin(x)  b = Identity(a)  y = Exp(b) }"
    assert low(planned(text, "y")) == {"a", "b"}
    assert low(planned(text, "a")) == {"b", "y"}


def test_a_value_is_cast_once_for_all_its_readers() -> None:
    text = """(float[2] x) => (float[2] y, float[2] z) {
        a = Sin(x)  b = Identity(a)  y = Exp(b)  z = Cos(b) }"""
    # One Cast before b, or one behind it for both.
    assert low(planned(text, "y", "z")) == {"a", "b"}


def test_a_move_that_is_read_by_wide_nodes_through_several_values_is_wide() -> None:
    text = """(float[4] x) => (float[2] y, float[2] z) <int64[2] s = {2,2}> {
        a = Sin(x)  b, c = Split(a, s)  y = Exp(b)  z = Cos(c) }"""
    assert low(planned(text, "y", "z")) == {"a"}
    assert low(planned(text, "y")) == {"a", "b", "c", "z"}


def test_constants_need_no_cast() -> None:
    text = """(float[2] x) => (float[4] y) <float[2] k = {1,2}> {
        a = Sin(x)  b = Concat<axis=0>(k, a)  y = Exp(b) }"""
    assert low(planned(text, "a", "y")) == set()
    assert low(planned(text, "y")) == {"a", "b"}


@pytest.mark.parametrize(
    ("wide", "low_price", "is_low"),
    [
        (0, 0, False),
        (2 * CAST - 1, 0, False),
        (2 * CAST, 0, True),
        (3 * CAST, 2 * CAST, False),
        (4 * CAST, 2 * CAST, True),
    ],
)
def test_a_price_decides_beside_the_two_casts_of_a_narrow_node(
    wide: int, low_price: int, is_low: bool
) -> None:
    text = "(float[2] x) => (float[2] y) { a = Sin(x)  b = Cos(a)  y = Exp(b) }"
    model = parsed(text)
    variables = variables_of(model, Keeping(("a", "y")), keeps_io=True)
    node = named(model, "b").producer
    assert node is not None
    plan = plan_of(variables, {node: Price(wide, low_price)})
    assert ("b" in low(plan)) == is_low


LOOP = """(float[2] x, int64 n, bool c) => (float[2] y) {
    a = Sin(x)
    b = Loop(n, c, a) <body = f (int64 i, bool g, float[2] s) => (bool h, float[2] o)
        { h = Identity(g)  o = Cos(s) }>
    y = Exp(b) }"""


def test_a_cast_in_a_loop_costs_more_than_outside() -> None:
    assert low(planned(LOOP)) == {"a", "s", "o", "b", "y"}
    # Wide inside: the state is wide too, which needs two Casts outside of the loop.
    assert low(planned(LOOP, "o")) == {"a", "y"}


def test_a_cast_in_a_branch_costs_what_it_costs_outside() -> None:
    text = """(float[2] x, bool c) => (float[2] y) {
        b = If(c) <then_branch = t () => (float[2] p) { p = Sin(x) },
                   else_branch = e () => (float[2] q) { q = Cos(x) }>
        y = Exp(b) }"""
    assert low(planned(text, "y")) == {"p", "q", "b"}


def test_a_use_is_of_an_operand_or_of_an_output_of_a_graph() -> None:
    model = parsed("(float[2] x, float[2] z) => (float[2] y) { y = Sub(x, z) }")
    (node,) = model.main.nodes
    assert read_value(VariableUse(node, 1)) is named(model, "z")
    assert read_value(VariableUse(model.main, 0)) is named(model, "y")
