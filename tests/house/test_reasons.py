"""Which texts name a reason."""

import pytest

from tests.house.reasons import unmet

REASONS = ["the axis is not known", "the axis is {}", "the scale is not one number"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("the axis is not known", ["the axis is not known"]),
        ("the axis is 3", ["the axis is {}"]),
        ("is not one number", ["the scale is not one number"]),
        ("the axis is", []),
        ("number", []),
        ("", []),
    ],
)
def test_a_text_names_the_one_reason_that_it_fits(text: str, named: list[str]) -> None:
    assert [reason for reason in REASONS if reason not in unmet(REASONS, [text])] == named
