"""Terms of tensors: what they cost, and what equal ones have in common."""

import pytest

from tests.small import parsed
from tiered.analysis.layout.cost import Cost, TensorCost, tensor_costs_of
from tiered.analysis.layout.cost_terms import CutWeights, TensorKind, terms_of
from tiered.analysis.layout.equivalence import LayoutOperator
from tiered.analysis.layout.expansion_cut import FIRST_OPERATOR, TensorCut
from tiered.analysis.layout.layout_conversion import reach_of
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.support.max_flow import SINK, SOURCE, UNLIMITED

# Two equal steps, and one of another size.
TEXT = """(float[2,3,4] x, float[2,3,4] v, float[2,3,5] u)
    => (float[2,3,4] y, float[2,3,4] z, float[2,3,5] w) {
    a = Transpose<perm=[2,0,1]>(x)  b = Relu(a)  y = Transpose<perm=[1,2,0]>(b)
    d = Transpose<perm=[2,0,1]>(v)  e = Relu(d)  z = Transpose<perm=[1,2,0]>(e)
    g = Transpose<perm=[2,0,1]>(u)  h = Relu(g)  w = Transpose<perm=[1,2,0]>(h) }"""


@pytest.fixture
def found() -> tuple[list[LayoutOperator], list[TensorCost]]:
    free = reach_of(parsed(TEXT)).free
    return free, list(tensor_costs_of(free, LayoutSizes()).values())


Found = tuple[list[LayoutOperator], list[TensorCost]]


def test_equal_tensors_are_of_one_kind(found: Found) -> None:
    operators, costs = found
    kinds = [term.kind for term in terms_of(operators, costs)]
    names = {cost.tensor.root.name: kind for cost, kind in zip(costs, kinds, strict=True)}
    assert names["x"] is names["v"]
    assert names["b"] is names["e"]
    assert len({*kinds}) == 4
    assert names["x"] is not names["u"]
    assert names["x"] is not names["b"]


def test_a_term_has_the_numbers_and_the_choices_of_its_operators(found: Found) -> None:
    operators, costs = found
    for term, cost in zip(terms_of(operators, costs), costs, strict=True):
        (own,) = cost.operators
        assert term.nodes == (SOURCE, SINK, FIRST_OPERATOR + operators.index(own))
        assert term.choices({each: at for at, each in enumerate(operators)}) == (
            operators.index(own),
        )


def test_choices_of_several_operators_are_in_their_order() -> None:
    text = """(float[2,3] x) => (float[2,3] y) {
        t = Transpose<perm=[1,0]>(x)  a = Relu(t)  b = Neg(t)  c = Add(a, b)
        y = Transpose<perm=[1,0]>(c) }"""
    free = reach_of(parsed(text)).free
    costs = list(tensor_costs_of(free, LayoutSizes()).values())
    assignment = {operator: number for number, operator in enumerate(free)}
    for term, cost in zip(terms_of(free, costs), costs, strict=True):
        assert term.choices(assignment) == tuple(assignment[each] for each in cost.operators)
        assert term.nodes[2:] == tuple(FIRST_OPERATOR + assignment[each] for each in cost.operators)


def test_a_tensor_costs_its_bytes_where_it_is_read_in_another_order(found: Found) -> None:
    _, costs = found
    by_name = {cost.tensor.root.name: TensorKind(cost) for cost in costs}
    # x is there as it comes; its reader has it in another order in choice 0 alone.
    assert by_name["x"].cost((0,))[:2] == (96, 1)
    assert by_name["x"].cost((1,)) == Cost(0, 0)
    # b is an output in the order of x.
    assert by_name["b"].cost((0,))[:2] == (96, 1)
    assert by_name["b"].cost((1,)) == Cost(0, 0)
    assert by_name["h"].cost((0,))[:2] == (120, 1)


def test_costs_and_cuts_are_computed_once(found: Found) -> None:
    kind = TensorKind(found[1][0])
    assert kind.cost((0,)) is kind.cost((0,))
    cut = kind.cut((0,), (1,))
    assert cut is kind.cut((0,), (1,))
    assert cut is not kind.cut((1,), (0,))
    assert cut.alone == TensorCut(found[1][0], (0,), (1,)).alone


def test_weights_of_a_cut_are_those_of_the_objective(found: Found) -> None:
    cut = TensorCut(found[1][0], (0,), (1,))
    cut.alone = {FIRST_OPERATOR: Cost(5, 1, 7)}
    cut.auxiliary = 3
    cut.pairs = {(2, 3): Cost(10, 0, 1), (3, 2): Cost(20, 0, 2), (5, 4): Cost(30, 0, 3)}
    cut.bound = [(6, 2)]
    weights = CutWeights(cut, lambda cost: cost.nbytes)
    assert weights.auxiliary == 3
    assert weights.alone == [(FIRST_OPERATOR, 5)]
    # A pair that is there in both directions is one entry, with both amounts.
    assert weights.pairs == [(2, 3, 10, 20), (5, 4, 30, 0), (6, 2, UNLIMITED, 0)]
    assert CutWeights(cut, lambda cost: cost.time).alone == [(FIRST_OPERATOR, 7)]
