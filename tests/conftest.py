"""What holds for every test."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

# How long an example takes depends on the machine, and nothing is left in the checkout.
settings.register_profile("tiered", deadline=None, database=None)
settings.load_profile("tiered")


@pytest.fixture
def exact_products() -> Iterator[None]:
    """Let products of 8 bits be exact in onnxruntime, which they are not on every processor."""
    from tests.saturation import products_that

    with products_that("exact"):
        yield
