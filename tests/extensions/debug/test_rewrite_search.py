import math

import pytest

from tiered.extensions.debug.rewrite_search import fewest, first_wrong


@pytest.mark.parametrize("ends", [[], [3, 40, 41, 300, 999], list(range(1, 1000, 7))])
@pytest.mark.parametrize("wrong", [1, 2, 41, 500, 999, 1000])
def test_the_first_wrong_number_is_found_with_few_questions(wrong: int, ends: list[int]) -> None:
    asked = []

    def is_wrong(number: int) -> bool:
        asked.append(number)
        return number >= wrong

    assert first_wrong(0, 1000, is_wrong, ends) == wrong
    assert len(asked) <= 2 * math.log2(1000)


def test_a_boundary_is_found_where_right_and_wrong_alternate() -> None:
    found = first_wrong(0, 64, lambda number: number in (5, 6, 40, 64))
    assert found in (5, 40, 64)


@pytest.mark.parametrize("needed", [(3,), (0, 9), (1, 4, 8), tuple(range(10))])
def test_the_fewest_items_are_found(needed: tuple[int, ...]) -> None:
    assert fewest(range(10), lambda part: set(needed) <= set(part)) == list(needed)


def test_nothing_is_needed_where_nothing_is_wrong_already() -> None:
    assert fewest(range(10), lambda part: True) == []
