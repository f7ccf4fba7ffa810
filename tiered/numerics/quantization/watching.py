"""Whoever runs the pass `quantize` may follow it: its steps, and the result layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from tiered.support.records import Record

if TYPE_CHECKING:
    from tiered.numerics.quantization.quantization_result import QuantizationResult


class QuantizationWatcher(Record):
    """What is called while models are quantised.

    Attributes:
        on_step: with what is done next.
        on_result: with each result, before any pass that follows.
    """

    on_step: Callable[[str], None]
    on_result: Callable[[QuantizationResult], None]


_WATCHER: Final[ContextVar[QuantizationWatcher | None]] = ContextVar("watcher", default=None)


@contextmanager
def watching_quantization(watcher: QuantizationWatcher) -> Iterator[None]:
    """Let a watcher follow the quantisations in the block; their ratios are measured."""
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)


def quantization_watcher() -> QuantizationWatcher | None:
    """Return the watcher of the block that runs, if any."""
    return _WATCHER.get()
