"""Amounts as people read them."""

from tiered.support.amounts import change, counted, size


def test_a_small_change_is_not_shown_as_none() -> None:
    assert change(429_855, 429_597) == "-258 (-0.1%)"
    assert change(1_000_000, 999_999) == "-1"
    assert change(947, 440) == "-507 (-54%)"
    assert change(0, 3) == "+3"
    assert change(3, 3) == ""
    assert change(2000, 2001) == "+1 (+0.1%)"
    assert change(2001, 2002) == "+1"
    assert change(200, 202) == "+2 (+1%)"
    assert change(400, 403) == "+3 (+0.8%)"


def test_one_thing_is_singular() -> None:
    assert [counted(number, "pass", "passes") for number in (0, 1, 2000)] == [
        *("0 passes", "1 pass", "2,000 passes")
    ]
    assert [counted(number, "node") for number in (1, 2)] == ["1 node", "2 nodes"]


def test_bytes_have_a_unit() -> None:
    assert [size(count) for count in (0, 1023, 1024, 1_500_000)] == [
        *("0 B", "1023 B", "1.0 KiB", "1.4 MiB")
    ]
    assert size(-(5 << 40)) == "-5.0 TiB"
