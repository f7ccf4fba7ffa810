"""Variants of the models in the tests beside, each with one thing changed."""

import pytest

from tests.conformance.variants.recorded import assert_as_recorded, passes_beside
from tiered.passes import PassInfo


@pytest.mark.parametrize("info", passes_beside(__file__), ids=lambda info: info.name)
def test_a_pass_makes_of_variants_what_is_recorded(info: PassInfo) -> None:
    assert_as_recorded(info)
