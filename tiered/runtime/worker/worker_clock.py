"""The clock of the worker process: the seconds of runs, one by one."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tiered.runtime.session import Session
from tiered.support.errors import RuntimeFailure
from tiered.support.peak import peak_since_reset, reset_peak


class TimedModel:
    """An open model, and its feeds, which are converted once.

    Args:
        session: the model.
        started: the seconds that it took to open.
        base: the bytes that the process held before, None if unknown.
    """

    def __init__(self, session: Session, started: float, base: int | None) -> None:
        self._session = session
        self.started = started
        self._base = base
        self._calls: list[Callable[[], object]] = []

    @property
    def nodes_by_provider(self) -> dict[str, int]:
        """How many nodes each provider takes, as onnxruntime says."""
        return self._session.nodes_by_provider

    def hold(self, samples: Sequence[Mapping[str, Any]]) -> None:
        """Keep the feeds of the runs.

        Raises:
            RuntimeFailure: onnxruntime refuses one.
        """
        self._calls = [self._session.prepared(feeds) for feeds in samples]

    def seconds(self, sample: int, runs: int, before: int) -> dict[str, list[float]]:
        """Return the seconds of some runs: by the wall clock, and of this thread's processor.

        Args:
            sample: the place of the feeds.
            runs: how many runs are timed.
            before: how many are not, right before.

        Raises:
            RuntimeFailure: onnxruntime fails.
        """
        call, wall, processor = self._calls[sample], list[float](), list[float]()
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            for _ in range(before):
                call()
            for _ in range(runs):
                at, worked = time.perf_counter(), time.thread_time()
                call()
                processor.append(time.thread_time() - worked)
                wall.append(time.perf_counter() - at)
        except RuntimeFailure:
            raise
        except Exception as error:  # onnxruntime's errors have no common base but Exception
            raise RuntimeFailure(f"onnxruntime failed in a timed run: {error}") from error
        finally:
            if was_enabled:
                gc.enable()
        return {"wall": wall, "processor": processor}

    def end_profile(self) -> str:
        """End the profile of the runs, and return its file."""
        return self._session.end_profile()

    def grown(self) -> int | None:
        """Return the bytes that opening and running the model added to the peak."""
        peak = peak_since_reset()
        return None if peak is None or self._base is None else max(0, peak - self._base)


def timed(open_session: Callable[[], Session]) -> tuple[TimedModel, Session]:
    """Open a model, and note the seconds and the memory that it takes.

    Raises:
        RuntimeFailure: onnxruntime cannot load it.
    """
    reset_peak()
    base, start = peak_since_reset(), time.perf_counter()
    session = open_session()
    return TimedModel(session, time.perf_counter() - start, base), session
