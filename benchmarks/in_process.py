"""Runs of small models in this process, in turn: what one operator or one chain takes.

For whole models there is `tiered.bench`. Opening a process takes longer than all runs of these.
"""

import time
from typing import Any

from tiered.runtime import Session
from tiered.runtime.opening import Opening


def opened(model: bytes, on: bool) -> Session:
    """Return a session of one thread, with onnxruntime's own optimisations on or off."""
    return Session(model, setting=Opening("all" if on else "off"))


def seconds_in_turn(
    first: Session, second: Session, feeds: Any, runs: int
) -> tuple[list[float], list[float]]:
    """Return the processor's seconds of each run of two sessions that take turns, first and last.

    What is fed is converted once.
    """
    times: tuple[list[float], list[float]] = ([], [])
    calls = [session.prepared(feeds) for session in (first, second)]
    pair = list(zip(calls, times, strict=True))
    for turn in range(runs):
        for call, noted in pair if turn % 2 else reversed(pair):
            start = time.thread_time()
            call()
            noted.append(time.thread_time() - start)
    return times
