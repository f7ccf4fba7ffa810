"""Rules are proved on generated instances, and the list of those that are not only shrinks."""

import pytest

from tests.certify.prove import listed, outcome, rules

MOST_LISTED = 4
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
