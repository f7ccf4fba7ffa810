"""The groups of a Reshape: axes that stay, and neighbours that hold the same elements."""

from itertools import pairwise
from math import prod

from hypothesis import given, strategies as st

from tiered.analysis.axes.regrouping import regrouped, sized
from tiered.graph.shape_inference.symbolic_dims import Dims

DIMS = Dims()


def groups(before: tuple[int | str | None, ...], after: tuple[int | str | None, ...]) -> object:
    found = regrouped(sized(before, DIMS), sized(after, DIMS))
    return None if found is None else found[2]


def test_axes_that_stay_have_one_label() -> None:
    found = regrouped(sized((4, 1, 6, 5), DIMS), sized((4, 2, 15, 1), DIMS))
    assert found == (
        (0, 1, 2, 3), (0, 101, 102, 103), (((0,), (0,)), ((2, 3), (101, 102)))
    )  # fmt: skip


def test_dynamic_axes_are_equal_by_their_size() -> None:
    assert groups(("N", 6), ("N", 2, 3)) == (((0,), (0,)), ((1,), (101, 102)))
    assert groups((6, "N"), (2, 3, "N")) == (((0,), (100, 101)), ((1,), (1,)))
    assert groups((6, "N"), ("M", 6)) == (((0, 1), (100, 101)),)


def test_numbers_are_multiples_or_not() -> None:
    """Quotients of integers are truncated: 2 / 6 is 0, and 2 no multiple of 6."""
    assert groups((6, 5, 4), (2, 3, 20)) == (((0,), (100, 101)), ((1, 2), (102,)))
    kept = ((1,), (1,))
    assert groups((4, 6, 5, 8), (2, 2, 6, 40)) == (((0,), (100, 101)), kept, ((2, 3), (103,)))


def test_elements_that_are_left_over_are_not_known() -> None:
    assert groups((2, 3), (2,)) is None
    assert groups((2,), (2, 3)) is None


def test_sizes_that_are_not_known_end_the_groups() -> None:
    kept = (((0,), (0,)), ((1,), (1,)))
    assert groups((None, 2), (3, 2)) == groups((3, 2), (None, 2)) == kept
    assert groups((2, None), (4, 3)) == groups((4, 3), (2, None)) == (((0, 1), (100, 101)),)
    assert groups((6, None), (5, None)) == (((0, 1), (100, 101)),)


@given(st.lists(st.integers(1, 4), max_size=5), st.data())
def test_each_group_has_as_many_elements_on_both_sides(
    sizes: list[int], data: st.DataObject
) -> None:
    """A shape of the same elements: neighbours are merged, and axes of size 1 are put between."""
    cuts = sorted(data.draw(st.sets(st.integers(0, len(sizes)))) | {0, len(sizes)})
    after = [prod(sizes[low:high]) for low, high in pairwise(cuts)] or [1]
    found = regrouped(sized(tuple(sizes), DIMS), sized(tuple(after), DIMS))
    assert found is not None
    source, target, named = found
    for one, other in named:
        old = [sizes[source.index(label)] for label in one]
        new = [after[target.index(label)] for label in other]
        assert prod(old) == prod(new)
        assert 1 not in (*old, *new)
    ends = [
        {prod(dims[:at]) for at in range(1, len(dims) + 1)}
        for dims in ([size for size in shape if size != 1] for shape in (sizes, after))
    ]
    assert len(named) == len(ends[0] & ends[1]), "groups end wherever both sides may"
    flat = [label for one, _ in named for label in one]
    assert flat == [label for label, size in zip(source, sizes, strict=True) if size != 1]
