"""Fewer axes hold the same elements in the same order."""

from itertools import permutations
from random import Random

import numpy as np
import pytest

from tiered.analysis.axes.low_rank import around, merged_broadcast, transposes


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
