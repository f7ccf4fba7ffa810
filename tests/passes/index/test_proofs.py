"""What is said of how a rule is covered by proofs."""

import pytest

from tiered.passes.index.proofs import PROOFS, Proved
from tiered.passes.index.table import INDEX


@pytest.mark.parametrize(
    ("proved", "text"),
    [
        (Proved(3, 3, "bits"), "each of 3 generated instances is proved bit for bit"),
        (
            Proved(3, 3, "reals"),
            "each of 3 generated instances is proved bit for bit or over the reals",
        ),
        (Proved(0, 0, "bits"), "no instance is generated"),
        (Proved(0, 0, "bits", "why"), "no instance is generated"),
        (Proved(0, 4, "bits", "why"), "none of 4 generated instances is proved: why"),
        (Proved(1, 4, "reals", "why"), "1 of 4 generated instances are proved: why"),
    ],
)
def test_how_a_rule_is_covered_is_a_sentence(proved: Proved, text: str) -> None:
    assert str(proved) == text


def test_the_table_is_of_passes_that_there_are_and_says_why_where_not_all_is_proved() -> None:
    assert set(PROOFS) <= set(INDEX)
    for name, proved in PROOFS.items():
        assert 0 <= proved.proved <= proved.instances, name
        assert bool(proved.reason) is (proved.proved < proved.instances), name
    assert list(PROOFS) == sorted(PROOFS)
