"""A limit of time for each pass, so that one without an end is a failure like any other."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Final

from tiered.context import PassContext
from tiered.passes.interrupts import may_stop

if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from tiered.graph import Model
    from tiered.passes.interface.pass_info import PassInfo

_RETRY: Final = 0.0005
"""Seconds; an edit takes microseconds."""

_LONGEST: Final = 1e8
"""Seconds; a longer limit is none."""


class TimeLimit:
    """An instrument that raises TimeoutError in a pass that runs longer than `verify.seconds`.

    It is raised between two edits, by SIGALRM. So it needs POSIX and the main thread, and there is
    no limit elsewhere, or while the program has an alarm of its own.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._depth = 0
        self._outer: Any = None

    def run_before_pass(self, model: Model, info: PassInfo) -> None:
        if info.kind == "pipeline":
            return
        self._depth += 1
        if self._depth == 1:
            self._start(PassContext.current().config["verify.seconds"])

    def run_after_pass(self, model: Model, info: PassInfo) -> None:
        if info.kind == "pipeline":
            return
        self._depth -= 1
        if not self._depth:
            self._stop()

    def run_after_pass_failed(self, model: Model, info: PassInfo, error: BaseException) -> None:
        self.run_after_pass(model, info)

    def exit_pass_ctx(self) -> None:
        self._depth = 0
        self._stop()

    def _start(self, seconds: float) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        if not hasattr(signal, "setitimer") or not is_main or not 0 < seconds < _LONGEST:
            return
        if signal.getitimer(signal.ITIMER_REAL)[0]:
            return
        self._seconds = seconds
        self._outer = signal.signal(signal.SIGALRM, self._raise)
        # Once more after the same time: the pass may have caught the error.
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds)

    def _stop(self) -> None:
        if self._seconds:
            self._seconds = 0.0
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._outer)

    def _raise(self, number: int, frame: FrameType | None) -> None:
        if not self._seconds:
            return
        if not may_stop(frame):
            signal.setitimer(signal.ITIMER_REAL, _RETRY, self._seconds)
            return
        raise TimeoutError(
            f"it ran for more than {self._seconds:g} s; the config option verify.seconds is the "
            "limit of a pass here"
        )
