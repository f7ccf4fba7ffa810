"""Where a Reshape may put the samples of a batch."""

from tiered.analysis.batching.placements import moves, placements
from tiered.analysis.batching.sample_facts import BatchRows, Sizes


def test_the_axes_that_may_carry_the_samples_the_likeliest_first() -> None:
    for rows, before, after, expected in (
        (BatchRows(0), (2, 3), (2, 3), [BatchRows(0)]),
        (BatchRows(0), (2, 3), (3, 2), []),
        (BatchRows(0), (2, 3), (6,), [BatchRows(0, 1, 3)]),
        (BatchRows(1), (3, 2), (6,), [BatchRows(0, 3, 1)]),
        (BatchRows(0), (2, 4), (4, 2), [BatchRows(0, 1, 2)]),
        (BatchRows(0, 1, 3), (6,), (2, 3), [BatchRows(0)]),
        (BatchRows(0), (2, 1), (1, 2), [BatchRows(1)]),
        # what is not known, or has no elements
        (BatchRows(0), (2, None), (2, 3), []),
        (BatchRows(0), (2, 3), (2, None), []),
        (BatchRows(1), (None, 2), (3, 2), []),
        (BatchRows(0), (2, 3), (None, 3), [BatchRows(0)]),
        (BatchRows(0), (2, 0), (2, 0), []),
    ):
        assert placements(rows, before, after, 2) == expected, (rows, before, after)
    # Of a batch of 1, the axis that is next to the one before is the likeliest.
    found = placements(BatchRows(1), (1, 1, 3), (1, 1, 3), 1)
    assert found == [BatchRows(1), BatchRows(0)]


def test_the_only_sample_may_be_moved_to_any_axis_of_size_1() -> None:
    before: Sizes = (1, 3)
    for rows, sizes, after, old, expected in (
        (BatchRows(0), before, (3, 1), 1, [BatchRows(1)]),
        (BatchRows(0), before, (1, 3, 1), 1, [BatchRows(0), BatchRows(2)]),
        (BatchRows(0), before, (3,), 1, []),
        (BatchRows(0), (2, 3), (3, 2, 1), 2, []),
        (BatchRows(0), (1, None), (3, 1), 1, []),
        (BatchRows(0), before, (None, 1), 1, []),
        (BatchRows(0), (1, 0), (0, 1), 1, []),
    ):
        assert moves(rows, sizes, after, old) == expected, (sizes, after)
