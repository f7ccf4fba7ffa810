"""The target of a Reshape whose zeros would copy other dims."""

import pytest

from tiered.function_passes.shape._reshaping import moved_target


@pytest.mark.parametrize(
    ("sizes", "copied", "stays", "expected"),
    [
        ([2, 3], [5, 6], [False, False], [2, 3]),
        ([0, 3], [5, 6], [False, False], [5, 3]),
        ([0, 3], [5, 6], [True, False], [0, 3]),
        ([0, 3], ["N", 6], [False, False], [-1, 3]),
        ([0, 3], [None, 6], [False, False], [-1, 3]),
        ([0, 3], [0, 6], [False, False], [-1, 3]),  # what is empty is no target
        ([0, 0], ["N", "M"], [False, False], None),  # two are not inferred
        ([0, -1], ["N", 6], [False, False], None),
        ([-1, 0], [5, 6], [False, True], [-1, 0]),
        ([-1, 0], [5, 6], [False, False], [-1, 6]),
        ([0, 0], [5, "N"], [True, False], None),  # beside a dim that may be 0
        ([0, 0, 3], [5, 6, 7], [True, False, False], [0, 6, 3]),
    ],
)
def test_a_zero_becomes_the_dim_that_it_copies(
    sizes: list[int],
    copied: list[int | str | None],
    stays: list[bool],
    expected: list[int] | None,
) -> None:
    assert moved_target(sizes, copied, stays) == expected
