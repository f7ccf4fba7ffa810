"""What holds for every test."""

import gc
from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings

# How long an example takes depends on the machine, and nothing is left in the checkout.
settings.register_profile("tiered", deadline=None, database=None)
settings.load_profile("tiered")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the collector from visiting all tests and modules again and again: they stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def exact_products() -> Iterator[None]:
    """Let products of 8 bits be exact in onnxruntime, which they are not on every processor."""
    from tests.saturation import products_that

    with products_that("exact"):
        yield
