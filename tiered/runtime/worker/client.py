"""Run models in a process of their own, so that no model can take this one with it.

onnxruntime is native code: it can crash (dividing the least integer by -1 is enough), never come
back (a Loop without end) or ask for all memory there is (an Expand to 100 GB). In a `Worker` each
of these is an error within seconds, and the next model runs in a new process.

The worker is a plain subprocess that exchanges the frames of `frames.py` on its standard streams:
nothing is forked and nothing pickled, and it is the same on every system.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from tiered.runtime.opening import plain_setting
from tiered.runtime.session import label_of, loadable
from tiered.runtime.worker.child import Child, Ended
from tiered.runtime.worker.frames import Blob, pack, unpack
from tiered.runtime.worker.limits import physical_memory
from tiered.support.errors import OutOfMemory, RuntimeFailure

if TYPE_CHECKING:
    from tiered.runtime.opening import Setting
    from tiered.runtime.session import ModelLike

_SERVER = "tiered.runtime.worker.server"

SECONDS = 60.0
"""The default limit of the time that one request may take."""


class Worker:
    """A process that opens and runs models, started at first use and kept for the next.

    Args:
        seconds: the longest that one request (opening, running) may take; None sets no limit.
        memory: the most bytes that the process may allocate after its start; None means the memory
            of the machine, if that is known.

    Use it as a context manager, or `close()` it; an unreferenced worker ends with its owner.
    It can be shared between threads, and then runs one request at a time.
    """

    def __init__(self, *, seconds: float | None = SECONDS, memory: int | None = None) -> None:
        self.seconds = seconds
        self.memory = physical_memory() if memory is None else memory
        self._child: Child | None = None
        self._lock = threading.RLock()
        self._numbers = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The number of the process, None while there is none."""
        child = self._child
        return child.process.pid if child is not None and child.is_alive else None

    def start(self) -> None:
        """Start the process, so that the first request need not wait for it."""
        with self._lock:
            if not self._is_alive():
                self._end()
                self._child = Child(_SERVER)

    def ready(self) -> None:
        """Start the process and wait until it takes requests, so that no request has that time.

        Raises:
            RuntimeFailure: it cannot start.
        """
        with self._lock:
            self.start()
            assert self._child is not None
            self._greet(self._child)

    def _greet(self, child: Child) -> None:
        if child.is_ready:
            return
        try:
            child.greet()
        except BaseException:
            self._end()
            raise

    def close(self) -> None:
        """End the process; a later request starts another one."""
        with self._lock:
            self._end()

    def open(
        self,
        model: ModelLike,
        *,
        reference: bool = False,
        setting: Setting = "reproducible",
        folder: str = "",
        libraries: Sequence[str] = (),
        label: str = "",
    ) -> WorkerSession:
        """Open a model; the result is used like a `Session`.

        Args:
            model: a ModelProto, its bytes, or the path of a file (required for external data).
                It must stay as it is: it is opened again if the process has ended meanwhile.
            reference: open it in onnx.reference instead of onnxruntime.
            setting: how onnxruntime opens it.
            folder: where onnxruntime finds the external data of a model that is no file.
            libraries: of custom operators, which onnxruntime registers.
            label: the name of the model in messages.

        Raises:
            RuntimeFailure: the runtime cannot load it; `Crashed`, `TimedOut` and `OutOfMemory` are
                kinds of that.
            HelperError: the process cannot start.
        """
        label = label or label_of(model)
        return WorkerSession(
            self,
            model,
            label,
            reference=reference,
            setting=setting,
            folder=folder,
            libraries=libraries,
        )

    def run(
        self, model: ModelLike, feeds: Mapping[str, Any], *, reference: bool = False
    ) -> dict[str, Any]:
        """Run a model once; see `open` and `Session.run`."""
        with self.open(model, reference=reference) as session:
            return session.run(feeds)

    def next_number(self) -> int:
        """Return a number that no open model has."""
        self._numbers += 1
        return self._numbers

    def ask(self, request: dict[str, Any], blobs: Sequence[Blob], doing: str) -> _Answer:
        """Send one request and wait for its answer; sessions call this.

        Raises:
            RuntimeFailure: the runtime refused, or the process ended while it was `doing` that.
        """
        with self._lock:
            self.start()
            assert self._child is not None
            try:
                if not self._child.is_ready:
                    self._child.greet()
                limits = {"seconds": self.seconds, "memory": self.memory}
                body, found = self._child.exchange({**request, **limits}, blobs, self.seconds)
            except Ended as end:
                self._end()
                raise end.failure(doing, self.seconds, self.memory) from None
            except BaseException:
                self._end()  # an unread answer would be taken for the next one's
                raise
        if "failed" in body:
            kind = OutOfMemory if body["is_memory"] else RuntimeFailure
            raise kind(body["failed"])
        return _Answer(body["done"], found)

    @property
    def generation(self) -> object:
        """The process as an object, to check that a session was opened in this one."""
        return self._child if self._is_alive() else None

    def _is_alive(self) -> bool:
        return self._child is not None and self._child.is_alive

    def _end(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None


class TimedRuns(NamedTuple):
    """Timed runs of a model.

    Attributes:
        wall, processor: seconds of each run, by the wall clock and of the thread that calls.
        started: the seconds that it took to open the model.
        memory: the bytes that it added to the peak of the process so far, None if unknown.
        nodes: how many nodes each provider takes; empty if unknown.
    """

    wall: list[float]
    processor: list[float]
    started: float
    memory: int | None
    nodes: Mapping[str, int]


class WorkerSession:
    """A model that is open in a worker; `inputs`, `outputs` and `run` are those of `Session`."""

    def __init__(
        self,
        worker: Worker,
        model: ModelLike,
        label: str,
        *,
        reference: bool,
        setting: Setting,
        folder: str,
        libraries: Sequence[str],
    ) -> None:
        self._libraries = [os.path.abspath(each) for each in libraries]
        self._worker = worker
        self._reference = reference
        self._setting = setting
        self._folder = os.path.abspath(folder) if folder else ""
        self._label = label
        self._model = os.path.abspath(model) if isinstance(model, str | os.PathLike) else model
        self._number = worker.next_number()
        self._opened_in: object = None
        done = self._open()
        self.inputs: tuple[str, ...] = tuple(done["inputs"])
        self.outputs: tuple[str, ...] = tuple(done["outputs"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """Return each output by name, as `Session.run` does.

        Args:
            feeds: input name to value.
            outputs: only these, in this order; None for all.

        Raises:
            RuntimeFailure: the runtime refuses the feeds or fails on them; `Crashed`, `TimedOut`
                and `OutOfMemory` are kinds of that.
        """
        blobs: list[Blob] = []
        fed = {name: pack(value, blobs) for name, value in feeds.items()}
        chosen = None if outputs is None else list(outputs)
        if self._opened_in is None or self._opened_in is not self._worker.generation:
            self._open()
        request = {"do": "run", "id": self._number, "feeds": fed, "outputs": chosen}
        answer = self._worker.ask(request, blobs, f"running {self._label}")
        return {name: unpack(value, answer.blobs) for name, value in answer.done.items()}

    def hold(self, samples: Sequence[Mapping[str, Any]]) -> None:
        """Send feeds that `time` runs on, so that no timed run has to wait for them.

        Raises:
            RuntimeFailure: the runtime refuses them.
        """
        blobs: list[Blob] = []
        held = [{name: pack(value, blobs) for name, value in feeds.items()} for feeds in samples]
        request = {"do": "hold", "id": self._number, "samples": held}
        self._worker.ask(request, blobs, f"reading inputs of {self._label}")

    def time(self, sample: int, runs: int, before: int) -> TimedRuns:
        """Time some runs in the worker, on feeds that `hold` sent.

        Args:
            sample: the place of the feeds.
            runs: how many runs are timed.
            before: how many are not, right before.

        Raises:
            RuntimeFailure: the runtime fails, or the process has ended meanwhile.
        """
        if self._opened_in is None or self._opened_in is not self._worker.generation:
            raise RuntimeFailure(f"the process that ran {self._label} has ended")
        request = {"do": "time", "id": self._number, "sample": sample, "runs": runs}
        answer = self._worker.ask({**request, "before": before}, (), f"timing {self._label}")
        return TimedRuns(**answer.done)

    def end_profile(self) -> str:
        """End the profile of the runs of a model that was opened with one; return its file.

        Raises:
            RuntimeFailure: the process has ended meanwhile.
        """
        request = {"do": "profile", "id": self._number}
        return str(self._worker.ask(request, (), f"profiling {self._label}").done)

    def close(self) -> None:
        """Free the model in the worker."""
        if self._opened_in is not None and self._opened_in is self._worker.generation:
            with contextlib.suppress(RuntimeFailure):
                self._worker.ask({"do": "close", "id": self._number}, (), "closing a model")
        self._opened_in = None

    def _open(self) -> Any:
        source = loadable(self._model, self._label)
        request = {
            "do": "open",
            "id": self._number,
            "model": source if isinstance(source, str) else None,
            "label": self._label,
            "reference": self._reference,
            "setting": plain_setting(self._setting),
            "folder": self._folder,
            "libraries": self._libraries,
        }
        blobs = [] if isinstance(source, str) else [source]
        answer = self._worker.ask(request, blobs, f"opening {self._label}")
        self._opened_in = self._worker.generation
        return answer.done


@cache
def shared_worker(seconds: float | None = SECONDS, memory: int | None = None) -> Worker:
    """Return the worker with these limits that all of this process share."""
    worker = Worker(seconds=seconds, memory=memory)
    atexit.register(worker.close)
    return worker


class _Answer:
    """What a request came to, and the bytes of its arrays."""

    def __init__(self, done: Any, blobs: Sequence[bytearray]) -> None:
        self.done = done
        self.blobs = blobs
