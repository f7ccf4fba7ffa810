"""A cut of the network of a move costs what the tensors cost; proposals have every order."""

import itertools
from collections.abc import Sequence

import pytest

from tests.small import named, parsed
from tiered.analysis.layout.cost import FREE, Cost, TensorCost, tensor_costs_of, total
from tiered.analysis.layout.equivalence import LayoutOperator, TensorClass
from tiered.analysis.layout.expansion_cut import FIRST_OPERATOR, MAX_PROPOSALS, TensorCut
from tiered.analysis.layout.layout_conversion import reach_of
from tiered.analysis.layout.layout_region import LayoutRegion, regions
from tiered.analysis.layout.permutation import Permutation
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.support.max_flow import SINK, SOURCE

FORK = """(float[2,3,4] x, float[2,3,4] v) => (float[4,2,3] y, float[2,3,4] z, float[2,3,4] w) {
    t = Transpose<perm=[2,0,1]>(x)  s = Transpose<perm=[2,0,1]>(v)
    a = Add(t, s)  b = Transpose<perm=[1,2,0]>(a)
    y = Relu(a)  c = Neg(b)  d = Abs(b)  z = Mul(c, d)  w = Exp(c) }"""

ONES = FORK.replace("2,3,4", "2,1,4").replace("4,2,3", "4,2,1")

THREE = """(float[2,3,4] x) => (float[4,2,3] y, float[3,4,2] z, float[2,3,4] w) {
    r = Relu(x)  t = Transpose<perm=[2,0,1]>(r)  u = Transpose<perm=[1,2,0]>(r)
    a = Neg(t)  y = Exp(a)  b = Abs(u)  z = Exp(b)  c = Neg(r)  w = Tanh(c)
    }"""


def region_of(text: str) -> LayoutRegion:
    """Return all operators of a model that a permutation reaches, with all their candidates."""
    reach = reach_of(parsed(text))
    free = reach.free
    return LayoutRegion(reach, free, tensor_costs_of(free, LayoutSizes()))


def weigh(cut: TensorCut, taking: Sequence[int], operators: int) -> Cost:
    """Return the least cost of a cut in which these operators are on the sink side."""
    auxiliary = range(FIRST_OPERATOR + operators, FIRST_OPERATOR + operators + cut.auxiliary)
    best: Cost | None = None
    for count in range(len(auxiliary) + 1):
        for more in itertools.combinations(auxiliary, count):
            sink = {SINK, *taking, *more}
            if any(one not in sink and other in sink for one, other in cut.bound):
                continue
            costs = [cost for node, cost in cut.alone.items() if node in sink]
            costs += [
                cost for (one, other), cost in cut.pairs.items()
                if one not in sink and other in sink
            ]  # fmt: skip
            found = total(costs)
            best = found if best is None or found < best else best
    assert best is not None
    return best


def difference(one: Cost, other: Cost) -> Cost:
    return Cost(one.nbytes - other.nbytes, one.transposes - other.transposes, one.time - other.time)


def cost_of(term: TensorCost, choices: Sequence[int]) -> Cost:
    own = dict(zip(term.operators, choices, strict=True))
    made = term.tensor.identity
    if term.producer is not None:
        operator, at = term.producer
        made = operator.choices[own[operator]].orders[at]
    read = [
        operator.choices[own[operator]].orders[at]
        for operator, ports in term.consumers.items() for at in ports
    ]  # fmt: skip
    return term.cost(made, [*term.pinned, *read])


@pytest.mark.parametrize("text", [FORK, ONES, THREE])
def test_a_cut_costs_what_the_tensor_costs_beyond_the_present_choices(text: str) -> None:
    """Of two orders it does so exactly; of more, it is a lower bound."""
    region = region_of(text)
    checked = 0
    for term in region.tensor_costs.values():
        operators = term.operators
        options = [operator.candidates for operator in operators]
        for kept, taken in itertools.product(itertools.product(*options), repeat=2):
            cut = TensorCut(term, kept, taken)
            pairs = list(zip(operators, kept, taken, strict=True))
            proposed = {_order_at(term, operator, then) for operator, _, then in pairs}
            present = {_order_at(term, operator, now) for operator, now, _ in pairs}
            if len(proposed) > 1:
                continue  # a proposal has one order of each tensor
            orders = {*proposed, *present, term.tensor.identity, *term.pinned}
            for sides in itertools.product((False, True), repeat=len(operators)):
                movable = [
                    number for number, (side, now, then) in enumerate(
                        zip(sides, kept, taken, strict=True), FIRST_OPERATOR
                    ) if side and now != then
                ]  # fmt: skip
                chosen = [
                    then if side else now
                    for side, now, then in zip(sides, kept, taken, strict=True)
                ]
                expected = difference(cost_of(term, chosen), cost_of(term, kept))
                base = weigh(cut, [], len(operators))
                found = difference(weigh(cut, movable, len(operators)), base)
                assert found.nbytes <= expected.nbytes
                assert found.transposes <= expected.transposes
                if len(orders) == 2:
                    assert found == expected, (term.tensor.root, kept, taken, sides)
                    checked += 1
    assert checked > 1


def _order_at(term: TensorCost, operator: LayoutOperator, number: int) -> Permutation:
    """Return the order that an operator has a tensor in; it is one at all its ports."""
    (order,) = {
        operator.choices[number].orders[at] for port, at in term.free_ports if port is operator
    }
    return order


def test_the_same_choices_need_no_edge() -> None:
    region = region_of(FORK)
    for term in region.tensor_costs.values():
        kept = [0] * len(term.operators)
        cut = TensorCut(term, kept, kept)
        assert (cut.auxiliary, cut.alone, cut.pairs, cut.bound) == (0, {}, {}, [])


def test_readers_that_need_one_order_share_an_auxiliary_node() -> None:
    """The Transpose for `c` and `d` is paid once."""
    region = region_of(FORK)
    term = next(each for each in region.tensor_costs.values() if each.tensor.root.name == "a")
    names = [operator.node.output.name for operator in term.operators]
    taken = [1 if name in "cd" else 0 for name in names]
    cut = TensorCut(term, [0] * len(names), taken)
    # For those that keep the order; the other one is needed by `y`, whatever they decide.
    assert cut.auxiliary == 1
    assert {len({one, other} - {FIRST_OPERATOR + at for at in range(len(names))})
            for one, other in cut.bound} == {1}  # fmt: skip
    assert SOURCE not in cut.alone
    assert FREE not in cut.pairs.values()


# --- proposals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [FORK, ONES, THREE])
def test_proposals_have_a_choice_of_every_operator_and_every_order(text: str) -> None:
    region = region_of(text)
    proposals = region.proposals
    assert 0 < len(proposals) <= MAX_PROPOSALS == 6
    for proposal in proposals:
        orders: dict[TensorClass, set[tuple[int, ...]]] = {}
        for operator, number in proposal.items():
            assert number in operator.candidates
            for port, order in zip(operator.ports, operator.choices[number].orders, strict=True):
                orders.setdefault(port.tensor, set()).add(order)
        assert all(len(found) == 1 for found in orders.values())
    for operator in region.operators:
        proposed = {each[operator] for each in proposals if operator in each}
        assert proposed == set(operator.candidates)


def test_a_region_of_one_operator_has_a_proposal_for_each_choice() -> None:
    text = """(float[2,3,4] x) => (float[2,3,4] y) {
        t = Transpose<perm=[2,0,1]>(x)  r = Relu(t)  y = Transpose<perm=[1,2,0]>(r) }"""
    (region,) = regions(reach_of(parsed(text)), LayoutSizes())
    (operator,) = region.operators
    assert [dict(each) for each in region.proposals] == [{operator: 0}, {operator: 1}] or [
        dict(each) for each in region.proposals
    ] == [{operator: 1}, {operator: 0}]
    assert named(region.reach.model, "r").producer is operator.node
