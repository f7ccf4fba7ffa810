"""The outcome of a command: an error, or of `tiered optimize` what summary and JSON describe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tiered.cli.prepared import PreparedRun
    from tiered.passes.interface.pass_info import PassResult
    from tiered.pipeline.result import OptimizeResult


class Failed(NamedTuple):
    """The error that ended a run, and the results of the passes before it."""

    error: str
    exit_code: int
    passes: Sequence[PassResult]


class Outcome(NamedTuple):
    """The input, options and result of one run.

    `target` is None if nothing was written, `result` is None if the run failed before its result.
    `what` describes the run in the first line of the summary, if its options do not.
    """

    source: str
    target: str | None
    prepared: PreparedRun
    result: OptimizeResult | None
    failed: Failed | None = None
    what: str = ""


Observer = Callable[[Outcome | Exception], None]

_OBSERVERS: list[Observer] = []


@contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Call a function with each outcome of the commands in the block, and the error of each."""
    _OBSERVERS.append(observer)
    try:
        yield
    finally:
        _OBSERVERS.remove(observer)


def note_outcome(outcome: Outcome | Exception) -> None:
    """Pass an outcome on to the functions that observe them."""
    for observer in _OBSERVERS:
        observer(outcome)
