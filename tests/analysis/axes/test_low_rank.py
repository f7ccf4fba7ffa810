"""Fewer axes hold the same elements in the same order."""

from itertools import permutations
from random import Random

import numpy as np
import pytest

from tests.small import content, parsed
from tiered.analysis.axes.low_rank import around, lower_ranks, merged_broadcast, transposes


@pytest.mark.parametrize("dims", [(2, 3, 4, 5, 6), (2, 1, 3, 1, 4), (2, 2, 2, 2, 2, 3), (1, 1, 1)])
def test_the_steps_do_what_the_permutation_does(dims: tuple[int, ...]) -> None:
    x = np.arange(np.prod(dims)).reshape(dims)
    for perm in permutations(range(len(dims))):
        found = x
        for read, order in transposes(dims, perm, 4):
            assert len(read) <= 4
            assert 1 not in read
            found = found.reshape(read).transpose(order)
        assert found.tobytes() == x.transpose(perm).tobytes(), perm


def test_neighbours_are_one_axis() -> None:
    windows = transposes((2, 8, 4, 8, 4, 16), (0, 1, 3, 2, 4, 5), 4)
    assert windows == [((16, 4, 8, 64), (0, 2, 1, 3))]
    assert transposes((2, 1, 3), (1, 0, 2), 4) == []


def test_a_broadcast_of_merged_axes_is_the_same() -> None:
    random = Random(0)
    for _ in range(200):
        result = tuple(random.choice((1, 2, 3)) for _ in range(5))
        shapes = []
        for _ in range(2):
            shape = tuple(size if random.random() < 0.6 else 1 for size in result)
            shapes.append(shape[random.randrange(6) :] if random.random() < 0.3 else shape)
        result = np.broadcast_shapes(*shapes)
        merged, target = merged_broadcast(shapes, result)
        a, b = (np.random.default_rng(at).random(shape) for at, shape in enumerate(shapes))
        low = a.reshape(merged[0]) + b.reshape(merged[1])
        assert np.array_equal(np.broadcast_to(low, target).ravel(), (a + b).ravel())


def test_the_elements_around_an_axis() -> None:
    assert around((2, 3, 4, 5), 2) == (6, 4, 5)


HIGH = """(float[32] x) => (float[U,4] y) <int64[5] s = {2,2,2,2,2}, int64[2] t = {-1,4},
    int64[2] ends = {0,4}, int64[2] twins = {1,2}, int64[1] none = {0}> {
    r = Reshape(x, s)  %s  y = Reshape(c, t) }"""


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        ("c = ReduceMax(r, ends)", "the axes that it combines are no neighbours"),
        ("c = Trilu(r)", "Trilu has no rule for lower ranks"),
        ("c = ReduceMax(r, twins)", None),
        ("c = Softmax<axis = 2>(r)", None),
    ],
)
def test_operators_of_one_axis_have_a_lower_rank(node: str, reason: str | None) -> None:
    model, said = parsed(HIGH % node), list[str]()
    model.refresh_types()
    before = content(model)
    lower_ranks(model.main, lambda node, skip: said.append(str(skip)), 4)
    assert said == ([] if reason is None else [reason])
    assert (content(model) == before) is (reason is not None)
    highest = max(value.rank or 0 for value in model.main.values.values())
    assert highest <= 4 or reason is not None


def test_a_rank_below_four_is_too_low() -> None:
    model, said = parsed(HIGH % "c = Softmax(r)"), list[str]()
    model.refresh_types()
    lower_ranks(model.main, lambda node, skip: said.append(str(skip)), 3)
    assert said == ["the highest rank is 3, under 4"]
