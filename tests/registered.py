"""Passes that a test registers, and that the tests after it must not see."""

import contextlib
from collections.abc import Iterator

from tiered.passes.registry import registry


@contextlib.contextmanager
def passes_forgotten() -> Iterator[None]:
    """Unregister the passes that a block registers."""
    before = registry.names()
    try:
        yield
    finally:
        for name in set(registry.names()).difference(before):
            registry.unregister(name)
