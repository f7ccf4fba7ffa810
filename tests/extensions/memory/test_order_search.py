"""Orders of low peak: the search over sets of nodes, and orders that are chosen greedily."""

import pytest
from hypothesis import given, settings

from tests.extensions.memory.graphs import orders, sized_graphs, stretch
from tiered import Model
from tiered.extensions.memory.order_problem import Buffer, OrderStep, Stretch
from tiered.extensions.memory.order_search import (
    FoundOrder,
    backward_order,
    best_order,
    forward_order,
)
from tiered.testing import parse

# Two branches that grow and shrink again, one after the other or both at once.
BRANCHES = """(float[1] x) => (float[1] y) <int64[1] z = {0}> {
    a = Concat<axis=0>(x, x, x, x)  b = Concat<axis=0>(x, x, x, x)
    c = ReduceMean(a, z)  d = ReduceMean(b, z)  y = Add(c, d) }"""


def of(text: str) -> Stretch:
    return stretch(Model.from_proto(parse(text)))


def test_the_order_of_lowest_peak_is_found_and_proved() -> None:
    whole = of(BRANCHES)
    assert whole.peak(range(5)) == 4 + 16 + 16 + 4
    found = best_order(whole, floor=0, limit=1000)
    assert found.order == [0, 2, 1, 3, 4]
    assert found.is_decided
    assert whole.peak(found.order) == 4 + 4 + 16 + 4
    assert found.tried > 0


@given(sized_graphs(nodes=6))
@settings(max_examples=30, deadline=None)
def test_no_order_has_a_lower_peak(text: str) -> None:
    whole = of(text)
    present = whole.peak(range(len(whole)))
    lowest = min(whole.peak(order) for order in orders(whole))
    found = best_order(whole, floor=0, limit=100_000)
    assert found.is_decided
    assert (found.order is None) == (lowest == present)
    if found.order is not None:
        assert whole.peak(found.order) == lowest


@pytest.mark.parametrize(("floor", "is_found"), [(0, True), (28, True), (39, True), (40, False)])
def test_a_peak_at_the_floor_is_good_enough(floor: int, *, is_found: bool) -> None:
    whole = of(BRANCHES)
    found = best_order(whole, floor=floor, limit=1000)
    assert (found.order is not None) == is_found
    assert found.is_decided
    if found.order is not None:
        assert whole.peak(found.order) <= max(floor, 28)


def test_a_search_ends_at_its_limit() -> None:
    whole = of(BRANCHES)
    assert best_order(whole, floor=0, limit=0) == FoundOrder(None, False, 0)
    cut = best_order(whole, floor=0, limit=1)
    assert (cut.order, cut.is_decided) == (None, False)
    enough = best_order(whole, floor=0, limit=1000).tried
    assert best_order(whole, floor=0, limit=enough).order is not None


def test_without_a_lower_peak_there_is_no_order() -> None:
    chain = of("(float[4] x) => (float[4] y) { a = Softmax(x)  b = Softmax(a)  y = Softmax(b) }")
    assert best_order(chain, floor=0, limit=1000)[:2] == (None, True)
    assert not best_order(Stretch([], [], 3), floor=0, limit=9).order


@pytest.mark.parametrize("make", [forward_order, backward_order])
def test_greedy_orders_put_a_branch_after_the_other(make: object) -> None:
    assert callable(make)
    whole = of(BRANCHES)
    order = make(whole)
    assert whole.peak(order) == 28


@given(sized_graphs(nodes=7))
@settings(max_examples=30, deadline=None)
def test_greedy_orders_are_topological(text: str) -> None:
    whole = of(text)
    for order in (forward_order(whole), backward_order(whole)):
        assert sorted(order) == list(range(len(whole)))
        place = {node: at for at, node in enumerate(order)}
        for node, step in enumerate(whole.steps):
            assert all(place[each] < place[node] for each in step.before)


def choice(first: int, second: int) -> Stretch:
    """Return two nodes without an order that make buffers, and one that reads both."""
    steps = [
        OrderStep(after=[2], makes=[0], allocated=first),
        OrderStep(after=[2], makes=[1], allocated=second),
        OrderStep(before=[0, 1], reads=[0, 1], makes=[2], allocated=1),
    ]
    return Stretch(steps, [Buffer(first, [2]), Buffer(second, [2]), Buffer(1, [], True)], 0)


@pytest.mark.parametrize(
    ("sizes", "order"), [((1, 2), [0, 1, 2]), ((2, 1), [1, 0, 2]), ((2, 2), [0, 1, 2])]
)
def test_the_next_node_is_the_one_after_which_the_fewest_bytes_are_alive(
    sizes: tuple[int, int], order: list[int]
) -> None:
    assert forward_order(choice(*sizes)) == order


def consumers(first: int, second: int) -> Stretch:
    """Return a node that makes two buffers, and two nodes that read one each."""
    steps = [
        OrderStep(after=[1, 2], makes=[0, 1], allocated=first + second),
        OrderStep(before=[0], reads=[0]),
        OrderStep(before=[0], reads=[1]),
    ]
    return Stretch(steps, [Buffer(first, [1]), Buffer(second, [2])], 0)


@pytest.mark.parametrize(
    ("sizes", "forward", "backward"),
    [
        ((1, 2), [0, 2, 1], [0, 2, 1]),
        ((2, 1), [0, 1, 2], [0, 1, 2]),
        ((2, 2), [0, 1, 2], [0, 1, 2]),
    ],
)
def test_the_largest_is_freed_first(
    sizes: tuple[int, int], forward: list[int], backward: list[int]
) -> None:
    assert forward_order(consumers(*sizes)) == forward
    assert backward_order(consumers(*sizes)) == backward


def test_a_buffer_that_is_needed_later_is_not_freed() -> None:
    whole = consumers(9, 1)
    whole.buffers[0].is_needed_later = True
    # Reading it frees nothing, so that the small one goes first.
    assert forward_order(whole) == [0, 2, 1]
