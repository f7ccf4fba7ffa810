"""Dims that are written as arithmetic are computed, and anything else is refused."""

import pytest

from tiered.runtime.inputs.dim_expression import Expression

SIZES = {"past": 3, "seq": 8, "N": 2}


@pytest.mark.parametrize(
    ("text", "value", "names"),
    [
        ("past + 1", 4, ("past",)),
        ("past + seq", 11, ("past", "seq")),
        ("seq - past", 5, ("seq", "past")),
        ("seq * seq", 64, ("seq",)),
        ("seq / past", 2, ("seq", "past")),
        ("seq // past", 2, ("seq", "past")),
        ("seq % past", 2, ("seq", "past")),
        ("-(past - seq)", 5, ("past", "seq")),
        ("Min(seq, past, N)", 2, ("seq", "past", "N")),
        ("Max(seq, past)", 8, ("seq", "past")),
        ("ceiling(seq / 2)", 4, ("seq",)),
        ("floor(seq)", 8, ("seq",)),
        (" 7 ", 7, ()),
        ("past" + " + 1" * 49, 52, ("past",)),  # 200 characters
    ],
)
def test_arithmetic_over_names_is_computed(text: str, value: int, names: tuple[str, ...]) -> None:
    found = Expression(text)
    assert found.value(SIZES) == value
    assert found.names == names


@pytest.mark.parametrize(
    "text",
    [
        *("past +", "past(1)", "a.b", "[1]", "1.5", "True", "'a'", "a if b else c", "min()"),
        *("past ** 2", "~past", "min(1, key=past)", "not a", "past" + " + 1" * 50, ""),
    ],
)
def test_anything_else_is_no_dim(text: str) -> None:
    with pytest.raises(ValueError, match=r"arithmetic|too long"):
        Expression(text)


def test_an_unbound_name_and_a_division_by_zero_are_errors() -> None:
    with pytest.raises(KeyError):
        Expression("other + 1").value(SIZES)
    with pytest.raises(ValueError, match="division by zero"):
        Expression("seq // (past - 3)").value(SIZES)
