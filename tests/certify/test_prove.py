"""Rules are proved on generated instances, and the list of those that are not only shrinks."""

import pytest

from tests.certify.prove import listed, outcome, rules
from tiered.passes.index.proofs import PROOFS

MOST_LISTED = 10
BY_NAME = {info.name: info for info in rules()}


def test_the_list_names_passes_of_the_pipeline_with_a_reason() -> None:
    held = listed()
    assert len(held) <= MOST_LISTED
    assert held.keys() <= BY_NAME.keys()
    assert all(held.values())


@pytest.mark.parametrize(
    "name", ["eliminate_idempotent", "fuse_consecutive_clip", "fuse_consecutive_transpose"]
)
def test_a_rule_is_proved_on_its_instances(name: str) -> None:
    found = outcome(BY_NAME[name], variants=3, seed=1)
    assert found.is_proved, found.left
    assert found.instances > 3


def test_the_table_that_docs_print_has_each_rule() -> None:
    """`make prove PROVE_ARGS="--only NAME --write"` writes the row of a rule."""
    held = listed()
    assert PROOFS.keys() == BY_NAME.keys()
    assert {name: row.reason for name, row in PROOFS.items() if row.reason} == held
    for name, row in PROOFS.items():
        assert (row.proved == row.instances) == (name not in held), name


@pytest.mark.parametrize("name", ["fuse_gelu", "fuse_bias_add", "eliminate_idempotent"])
def test_the_table_is_what_is_found(name: str) -> None:
    found = outcome(BY_NAME[name], variants=2, seed=3)
    assert found.is_proved == (not PROOFS[name].reason)
    assert ("reals" in found.words) == (PROOFS[name].domain == "reals")
