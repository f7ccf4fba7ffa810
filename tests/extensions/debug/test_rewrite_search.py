import math
from collections.abc import Sequence

import pytest

from tiered.extensions.debug.rewrite_search import _between, fewest, first_wrong


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


@pytest.mark.parametrize(
    ("needed", "count", "expected"),
    [
        ("3", 10, "3: 01234 01 234 2 34 3 "),
        ("", 10, ": 01234 01 0 "),
        ("05", 10, "05: 01234 56789 01 234 56 789 23456789 0156789 01 56 789 56789 01789 0156 01 "
         "56 0 1 5 6 156 056 0 5 6 56 06 05 0 5"),
        ("234", 10, "234: 01234 01 234 2 34 2 3 4 34 24 23"),
        ("148", 10, "148: 01234 56789 01 234 56 789 23456789 0156789 01234789 01 234 789 234789 "
         "01789 01234 0 1 23 4 7 89 1234789 1 2 34 7 89 234789 134789 1 34 7 89 34789 1789 13489 "
         "1 34 89 3489 189 134 1 3 4 8 9 3489 1489 1 4 8 9 489 189 149 148 1 4 8 48 18 14"),
        ("01", 2, "01: 0 1"),
        ("0", 1, "0: "),
        ("", 1, ": "),
        ("", 0, ": "),
    ],
)  # fmt: skip
def test_what_is_asked_to_find_the_fewest(needed: str, count: int, expected: str) -> None:
    asked: list[str] = []

    def is_wrong(part: Sequence[int]) -> bool:
        asked.append("".join(map(str, part)))
        return set(needed) <= set(asked[-1])

    found = "".join(map(str, fewest(range(count), is_wrong)))
    assert f"{found}: {' '.join(asked)}" == expected


def test_the_end_of_a_pass_in_the_middle_third_is_asked_first() -> None:
    ends: tuple[list[int], ...] = ([], [3], [2], [6, 4], [6], [7])
    assert [_between(0, 9, each) for each in ends] == [4, 3, 4, 4, 6, 4]
    assert _between(0, 10, [4, 6]) == 4
