"""Passes and rules that a test registers, and that the tests after it must not see."""

import contextlib
from collections.abc import Iterator
from unittest.mock import patch

from tiered.analysis.aspects import ASPECTS, aspect
from tiered.passes.interface.registry import registry


@contextlib.contextmanager
def passes_forgotten() -> Iterator[None]:
    """Unregister the passes that a block registers."""
    before = registry.names()
    try:
        yield
    finally:
        for name in set(registry.names()).difference(before):
            registry.unregister(name)


@contextlib.contextmanager
def rules_forgotten() -> Iterator[None]:
    """Forget the rules of operators that a block registers, in all aspects."""
    with contextlib.ExitStack() as stack:
        for name in ASPECTS:
            stack.enter_context(patch.dict(aspect(name).rules))
        yield
