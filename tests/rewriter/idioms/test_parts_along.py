"""Parts of a tensor along an axis: the ranges, and how a part is computed."""

import numpy as np

from tests.small import named, parsed
from tests.written import Writer
from tiered.graph import Value
from tiered.rewriter.idioms.parts_along import part_along, part_ranges


def test_the_first_parts_are_longer_if_any_are() -> None:
    assert part_ranges(7, 3) == [(0, 3), (3, 5), (5, 7)]
    assert part_ranges(8, 3) == [(0, 3), (3, 6), (6, 8)]
    assert part_ranges(6, 3) == [(0, 2), (2, 4), (4, 6)]
    assert part_ranges(2, 3) == [(0, 1), (1, 2), (2, 2)]


def test_constants_are_cut_and_other_values_sliced() -> None:
    model = parsed(
        "(float[2,3] x) => (float[2,3] y) <float[2,3] w = {1,2,3,4,5,6}> { y = Add(x, w) }"
    )
    graph, x, w = model.main, named(model, "x"), named(model, "w")
    assert part_along(graph, x, None, 0, 1) is x
    assert part_along(graph, w, None, 0, 1) is w
    taken = part_along(graph, w, -1, 1, 3)
    assert isinstance(taken, np.ndarray)
    assert taken.tolist() == [[2, 3], [5, 6]]
    sliced = part_along(graph, x, -1, 1, 3)
    assert isinstance(sliced, Value)
    assert Writer()(sliced) == "Slice(x, [1], [3], [-1])"
