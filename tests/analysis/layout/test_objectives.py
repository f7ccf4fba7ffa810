"""What solutions are compared by: what is allowed, what pays, and what is minimised first."""

from tiered.analysis.layout.cost import Cost
from tiered.analysis.layout.kernel_times import TRANSPOSE_START
from tiered.analysis.layout.layout_region import PREFERENCE_PENALTY
from tiered.analysis.layout.solve import (
    _WORTH,
    ENUMERATED,
    LARGE_REGION,
    WORK,
    _by_bytes,
    _by_count,
    _by_time_and_count,
    _objectives,
    by_time,
    is_allowed,
    pays,
)


def test_what_is_no_worse_is_allowed_and_what_is_better_pays() -> None:
    now = Cost(100, 4, 1_000_000)
    for cost, allowed, pay in (
        (now, True, False),
        (Cost(99, 4, 1_000_000), True, True),
        (Cost(100, 3, 1_000_000), True, True),
        (Cost(101, 3, 1_000_000), False, True),
        (Cost(100, 5, 1_000_000), False, True),
        (Cost(100, 4, 1_000_001), False, False),
        (Cost(100, 4, 1_000_000 - 1_000_000 // _WORTH - TRANSPOSE_START), True, False),
        (Cost(100, 4, 1_000_000 - 1_000_000 // _WORTH - TRANSPOSE_START - 1), True, True),
    ):
        assert (is_allowed(cost, now), pays(cost, now)) == (allowed, pay), cost
    # A layout that the user asks for may need more Transposes, but no more bytes.
    asked = Cost(PREFERENCE_PENALTY, 4, 100)
    assert is_allowed(Cost(PREFERENCE_PENALTY, 9, 100), asked)
    assert not is_allowed(Cost(PREFERENCE_PENALTY + 1, 4, 100), asked)


def test_the_bounds_of_a_search() -> None:
    assert (ENUMERATED, LARGE_REGION, WORK) == (64, 1000, 4000)
    assert by_time(Cost(1, 1, 1)) == 2**90 + 2**24 + 1
    assert _by_bytes(Cost(1, 1, 1)) == 2**90 + 2**24 + 1
    assert _by_count(Cost(1, 1, 1)) == 2**180 + 2**90 + 1
    now = Cost(1, 4, 1600)
    prices = [objective(Cost(0, 1)) >> 90 for objective in _objectives(now)]
    assert prices == [0, 1600 // 16, 1600 // 4, 0, 2**90]
    assert PREFERENCE_PENALTY == 2**60


def test_the_numbers_that_are_minimised_go_by_one_thing_first() -> None:
    costs = [Cost(nbytes, count, time) for nbytes in (0, 5) for count in (0, 3) for time in (0, 2)]
    for objective, key in (
        (by_time, lambda each: (each.time, each.nbytes, each.transposes)),
        (_by_bytes, lambda each: (each.nbytes, each.time, each.transposes)),
        (_by_count, lambda each: (each.transposes, each.time, each.nbytes)),
    ):
        assert sorted(costs, key=objective) == sorted(costs, key=key)
    priced = _by_time_and_count(10)
    assert priced(Cost(0, 1, 0)) == by_time(Cost(0, 1, 10))
