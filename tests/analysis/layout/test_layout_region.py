"""Regions: which operators are solved together, what an assignment costs, which choices go."""

import itertools

import pytest

from tests.recorded import assert_values
from tests.small import made_by, named, parsed
from tiered.analysis.layout.cost import Cost, tensor_costs_of, total
from tiered.analysis.layout.layout_conversion import reach_of
from tiered.analysis.layout.layout_region import (
    PREFERENCE_PENALTY,
    Assignment,
    LayoutRegion,
    _saves_nothing,
    prune_choices,
    regions,
)
from tiered.analysis.layout.reach import Reach
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.analysis.layout.solve import solve

SIZES = LayoutSizes()
TO, BACK = "Transpose<perm=[2,0,1]>", "Transpose<perm=[1,2,0]>"
CHAIN = f"(float[2,3,4] x) => (float[2,3,4] y) {{ t = {TO}(x)  r = Relu(t)  y = {BACK}(r) }}"
FORK = f"""(float[2,3,4] x) => (float[2,3,4] y, float[4,2,3] z) {{
    t = {TO}(x)  r = Relu(t)  y = {BACK}(r)  z = Neg(r) }}"""
TWO = f"""(float[2,3,4] x, float[2,3,4] v) => (float[2,3,4] y, float[2,3,4] z) {{
    t = {TO}(x)  r = Relu(t)  y = {BACK}(r)  u = {TO}(v)  s = Relu(u)  z = {BACK}(s) }}"""


def names(region: LayoutRegion) -> list[str]:
    return [operator.node.output.name for operator in region.operators]


def whole(text: str) -> LayoutRegion:
    """Return all operators that a permutation reaches as one region, none of their choices gone."""
    reach = reach_of(parsed(text))
    return LayoutRegion(reach, reach.free, tensor_costs_of(reach.free, SIZES))


def assigned(region: LayoutRegion, **numbers: int) -> Assignment:
    return {each: numbers.get(each.node.output.name, 0) for each in region.operators}


# --- costs ----------------------------------------------------------------------------------------


def test_an_assignment_costs_the_transposes_that_it_needs() -> None:
    region = whole(CHAIN)
    here, there = region.cost(assigned(region)), region.cost(assigned(region, r=1))
    assert here[:2] == (192, 2)  # 24 elements of 4 bytes, twice
    assert there[:2] == (0, 0)
    assert here.time > there.time >= 0


def test_a_tensor_that_is_read_in_two_orders_costs_one_transpose() -> None:
    region = whole(FORK)
    # The output z keeps its order: as Relu and Neg are, or with a Transpose in front of it.
    assert region.cost(assigned(region))[:2] == (192, 2)
    assert region.cost(assigned(region, r=1))[:2] == (96, 1)
    assert region.cost(assigned(region, r=1, z=1))[:2] == (96, 1)
    assert region.cost(assigned(region, z=1))[:2] == (288, 3)


def test_the_cost_of_some_operators_is_that_of_their_tensors() -> None:
    region = whole(TWO)
    first = [operator for operator in region.operators if operator.node.output.name == "r"]
    both = assigned(region)
    assert region.cost(both)[:2] == (384, 4)
    assert region.cost(both, first)[:2] == (192, 2)
    assert region.cost(both, [])[:2] == (0, 0)
    assert len(list(region.terms_at(first))) == 2
    assert len(list(region.terms_at(region.operators))) == 4


def test_work_of_a_choice_is_time() -> None:
    region = whole(CHAIN)
    (operator,) = region.operators
    plain = region.cost({operator: 1})
    operator.work = {1: 50}
    again = LayoutRegion(region.reach, region.operators, region.tensor_costs)
    assert again.cost({operator: 1}) == total([plain, Cost(0, 0, 50)])
    assert again.cost({operator: 1}, [operator]) == total([plain, Cost(0, 0, 50)])
    assert again.cost({operator: 0}) == region.cost({operator: 0})


def test_an_unmet_wish_costs_more_than_all_transposes() -> None:
    region = whole(CHAIN)
    (operator,) = region.operators
    plain = [region.cost({operator: number}) for number in (0, 1)]
    operator.wanted = 0
    again = LayoutRegion(region.reach, region.operators, region.tensor_costs)
    penalty = Cost(PREFERENCE_PENALTY, 0, PREFERENCE_PENALTY)
    assert again.cost({operator: 0}) == plain[0]
    assert again.cost({operator: 1}) == total([plain[1], penalty])
    assert again.cost({operator: 1}, [operator]) == total([plain[1], penalty])


def test_only_tensors_of_its_operators_belong_to_a_region() -> None:
    reach = reach_of(parsed(TWO))
    costs = tensor_costs_of(reach.free, SIZES)
    assert len(costs) == 4
    (first, _) = reach.free
    assert len(LayoutRegion(reach, [first], costs).tensor_costs) == 2


# --- equal regions --------------------------------------------------------------------------------


def test_equal_regions_have_one_key() -> None:
    one, other = regions(reach_of(parsed(TWO)), SIZES)
    assert one.cache_key() == other.cache_key()
    (alone,) = regions(reach_of(parsed(CHAIN)), SIZES)
    assert alone.cache_key() == one.cache_key()


@pytest.mark.parametrize(
    "text",
    [
        CHAIN.replace("2,3,4", "2,3,5"),
        CHAIN.replace("float", "double"),
        FORK,
        CHAIN.replace("y = Transpose<perm=[1,2,0]>(r)", "y = Transpose<perm=[2,0,1]>(r)")
        .replace("float[2,3,4] y", "float[3,4,2] y"),
    ],
)  # fmt: skip
def test_other_regions_have_another_key(text: str) -> None:
    one, other = (whole(each) for each in (CHAIN, text))
    assert one.cache_key() != other.cache_key()


def test_a_wish_and_work_are_in_the_key() -> None:
    (region,) = regions(reach_of(parsed(CHAIN)), SIZES)
    (operator,) = region.operators
    before = region.cache_key()
    operator.wanted = 1
    wished = region.cache_key()
    operator.wanted = None
    operator.work = {1: 7}
    assert len({before, wished, region.cache_key()}) == 3


# --- which operators are solved together ----------------------------------------------------------


def test_operators_without_a_common_tensor_are_two_regions() -> None:
    assert [names(region) for region in regions(reach_of(parsed(TWO)), SIZES)] == [["r"], ["s"]]


def test_operators_of_a_common_tensor_are_one_region() -> None:
    text = f"""(float[2,3,4] x) => (float[2,3,4] y) {{
        t = {TO}(x)  r = Relu(t)  n = Neg(r)  y = {BACK}(n) }}"""
    (region,) = regions(reach_of(parsed(text)), SIZES)
    assert names(region) == ["r", "n"]


def test_a_model_without_transposes_has_no_region() -> None:
    text = "(float[2,3] x) => (float[2,3] y) { r = Relu(x)  y = Neg(r) }"
    assert not list(regions(reach_of(parsed(text)), SIZES))


def test_operators_that_were_removed_are_left_out() -> None:
    model = parsed(FORK)
    reach = reach_of(model)
    found = regions(reach, SIZES)
    assert next(found) is not None
    again = parsed(TWO)
    reach = reach_of(again)
    again.main.replace(made_by(again, "s"), [named(again, "u")])
    assert [names(region) for region in regions(reach, SIZES)] == [["r"]]


def test_readers_that_the_write_of_another_region_removed_are_left_out() -> None:
    model = parsed(TWO.replace("u = Trans", "n = Neg(v)  u = Trans").replace("v)  s", "n)  s"))
    model = parsed(
        f"""(float[2,3,4] x, float[2,3,4] v) => (float[2,3,4] y, float[2,3,4] z) {{
        t = {TO}(x)  r = Relu(t)  y = {BACK}(r)
        u = {TO}(v)  s = Relu(u)  z = {BACK}(s)  w = Neg(u)  k = {BACK}(w)  l = Abs(k) }}"""
    )
    found = regions(reach_of(model), SIZES)
    assert names(next(found)) == ["r"]
    (dead,) = model.main.nodes_of("Neg")
    model.main.prune([*model.main.nodes_of("Abs")])
    assert not dead.is_live
    (second,) = found
    assert names(second) == ["s"]
    readers = [each for term in second.tensor_costs.values() for each in term.consumers]
    assert [each.node.op_type for each in readers] == ["Relu"]


# --- choices that no optimal assignment needs -----------------------------------------------------


def cheapest(region: LayoutRegion, candidates: list[list[int]]) -> Cost:
    found = [
        region.cost(dict(zip(region.operators, numbers, strict=True)))
        for numbers in itertools.product(*candidates)
    ]
    return min(found, key=lambda cost: (cost.time, cost.nbytes))


PRUNED = [
    CHAIN,
    FORK,
    TWO,
    f"(float[2,3,4] x) => (float[4,2,3] y) {{ t = {TO}(x)  y = Relu(t) }}",
    f"""(float[2,3,4] x) => (float[2,3,4] y) {{
        r = Relu(x)  t = {TO}(r)  n = Neg(t)  y = {BACK}(n) }}""",
    f"""(float[2,3,4] x, float[2,3,4] v) => (float[2,3,4] y) {{
        t = {TO}(x)  u = {TO}(v)  a = Add(t, u)  y = {BACK}(a) }}""",
    f"""(float[2,1,4] x) => (float[2,1,4] y) {{ t = {TO}(x)  r = Relu(t)  y = {BACK}(r) }}""",
]


@pytest.mark.parametrize("text", PRUNED)
def test_the_cheapest_assignment_is_left(text: str) -> None:
    reach = reach_of(parsed(text))
    free = reach.free
    costs = tensor_costs_of(free, SIZES)
    before = cheapest(LayoutRegion(reach, free, costs), [list(each.candidates) for each in free])
    whole_region = LayoutRegion(reach, list(free), tensor_costs_of(free, SIZES))
    prune_choices(free, costs)
    left = [list(each.candidates) for each in free]
    assert all(numbers[0] == 0 for numbers in left)
    assert cheapest(whole_region, left) == before


def candidates(reach: Reach) -> dict[str, list[int]]:
    return {each.node.output.name: each.candidates for each in reach.operators.values()}


def pruned(text: str) -> dict[str, list[int]]:
    reach = reach_of(parsed(text))
    free = reach.free
    prune_choices(free, tensor_costs_of(free, SIZES))
    return candidates(reach)


def test_a_choice_that_only_moves_a_transpose_goes() -> None:
    # The Transpose in front of Relu would be behind it.
    assert pruned(PRUNED[3]) == {"y": [0]}
    added = PRUNED[3].replace("x)", "x, float[3] b)", 1).replace("Relu(t)", "Add(t, b)")
    assert pruned(added) == {"y": [0]}


def test_a_choice_that_saves_two_transposes_stays() -> None:
    assert pruned(CHAIN) == {"r": [0, 1]}


def test_a_wanted_choice_stays() -> None:
    reach = reach_of(parsed(PRUNED[3]))
    (operator,) = reach.free
    operator.wanted = 1
    prune_choices([operator], tensor_costs_of([operator], SIZES))
    assert operator.candidates == [0, 1]


def test_a_choice_whose_work_costs_more_than_it_saves_goes() -> None:
    reach = reach_of(parsed(CHAIN))
    (operator,) = reach.free
    costs = tensor_costs_of([operator], SIZES)
    saved = LayoutRegion(reach, [operator], costs).cost({operator: 0}).time
    # Bytes and Transposes are saved nevertheless, so it stays: both must pay off.
    operator.work = {1: saved + 1}
    prune_choices([operator], costs)
    assert operator.candidates == [0, 1]


@pytest.mark.parametrize("order", ["xv", "vx"])
def test_operators_of_other_parts_are_looked_at_too(order: str) -> None:
    parts = {"x": f"t = {TO}(x)  r = Relu(t)  y = {BACK}(r)", "v": f"u = {TO}(v)  z = Relu(u)"}
    nodes = "  ".join(parts[name] for name in order)
    text = f"(float[2,3,4] x, float[2,3,4] v) => (float[2,3,4] y, float[4,2,3] z) {{ {nodes} }}"
    assert pruned(text) == {"r": [0, 1], "z": [0]}
    assert [names(region) for region in regions(reach_of(parsed(text)), SIZES)] == [["r"]]


def test_a_region_has_proposals_of_its_operators() -> None:
    region = whole(FORK)
    assert region.proposals is region.proposals
    assert {each for proposal in region.proposals for each in proposal} == set(region.operators)


def test_what_goes_lets_others_go() -> None:
    """Neg alone saves nothing where Relu keeps its order."""
    text = f"""(float[2,3,4] x) => (float[4,2,3] y) {{ t = {TO}(x)  r = Relu(t)  y = Neg(r) }}"""
    assert pruned(text) == {"r": [0], "y": [0]}


# --- whole regions --------------------------------------------------------------------------------


def solved(text: str, **wanted: str) -> None:
    """Print the tensors and operators of each region, what all assignments cost, and the best."""
    reach = reach_of(parsed(text), wanted)
    for region in regions(reach, SIZES):
        numbers = {each: at for at, each in enumerate(region.operators)}
        for tensor, term in region.tensor_costs.items():
            made = (
                "-" if term.producer is None else f"{numbers[term.producer[0]]}.{term.producer[1]}"
            )
            read = " ".join(
                f"{numbers[each]}.{','.join(map(str, own))}" for each, own in term.consumers.items()
            )
            pinned = " ".join("".join(map(str, order)) for order in sorted(term.pinned))
            print(
                f"{tensor.root.name} {term.dims}: {term.nbytes} bytes, {term.start} + "
                f"{term.most_time} ns; by {made} to {read or '-'}, pinned {pinned or '-'}"
            )
        for operator, at in numbers.items():
            print(
                f"{at}: {operator.node.op_type} {operator.node.label} in {operator.candidates}, "
                f"work {dict(operator.work)}, wants {operator.wanted}"
            )
        options = [each.candidates for each in region.operators]
        for chosen in itertools.islice(itertools.product(*options), 16):
            print(chosen, *region.cost(dict(zip(region.operators, chosen, strict=True))))
        print("best", *solve(region, {}).values())
    print(*(f"{each.node.label}{each.candidates}" for each in reach.operators.values()))


def test_whole_regions() -> None:
    assert_values(__file__, {"solved": solved, "TO": TO, "BACK": BACK})


def test_what_a_tensor_saves_if_one_operator_has_it_in_another_order() -> None:
    text = FORK.replace("=> (", "=> (float w, ").replace("z = Neg(r)", "z = Neg(r)  w = acme.A(t)")
    reach = reach_of(parsed(text))
    costs = tensor_costs_of(reach.free, SIZES)
    relu, neg = (
        next(each for each in reach.free if each.node.op_type == name) for name in ("Relu", "Neg")
    )
    x, r = costs[relu.ports[0].tensor], costs[relu.ports[1].tensor]
    assert (x.pinned, r.pinned) == ({(2, 0, 1)}, {(1, 2, 0)})
    assert _saves_nothing(x, relu.ports[0], (0, 1, 2))  # another one reads it in this order, too
    assert not _saves_nothing(r, neg.ports[0], (1, 2, 0))
    assert _saves_nothing(r, neg.ports[0], (0, 1, 2))  # the same order
    x.pinned.clear()
    assert not _saves_nothing(x, relu.ports[0], (0, 1, 2))  # no producer, but a Transpose less
    r.pin(relu)
    assert _saves_nothing(r, neg.ports[0], (1, 2, 0))  # it is made in this order


def test_one_transpose_less_pays_whatever_the_work_is() -> None:
    text = (
        f"(float[2,1,1] x) => (y, z) {{ t = {TO}(x)  r = Relu(t)  y = {BACK}(r)  z = acme.A(r) }}"
    )
    (relu,) = reach_of(parsed(text)).free
    relu.work = {1: 10**6}
    prune_choices([relu], tensor_costs_of([relu], SIZES))
    assert relu.candidates == [0, 1]
