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
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final, Self, cast

from tiered.errors import Crashed, HelperError, OutOfMemory, RuntimeFailure, TimedOut
from tiered.runtime.session import label_of, loadable
from tiered.runtime.worker.frames import Blob, pack, receive, send, unpack
from tiered.runtime.worker.limits import OUT_OF_MEMORY, physical_memory

if TYPE_CHECKING:
    from tiered.runtime.session import ModelLike, Setting

_START_SECONDS = 60.0  # to load Python and onnxruntime, from the slowest of disks
_END_SECONDS = 5.0
_LAST_WORDS = 600  # characters of the end of standard error that an error repeats

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
        self._child: _Child | None = None
        self._lock = threading.RLock()
        self._numbers = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The number of the process, None while there is none."""
        return self._child.process.pid if self._is_alive() and self._child is not None else None

    def start(self) -> None:
        """Start the process, so that the first request need not wait for it."""
        with self._lock:
            if not self._is_alive():
                self._end()
                self._child = _Child()

    def ready(self) -> None:
        """Start the process and wait until it takes requests, so that no request has that time.

        Raises:
            RuntimeFailure: it cannot start.
        """
        with self._lock:
            self.start()
            assert self._child is not None
            self._greet(self._child)

    def _greet(self, child: _Child) -> None:
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
            except _Ended as end:
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
            "setting": self._setting,
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


class _Ended(Exception):
    """The process ended before it answered."""

    def __init__(self, child: _Child, *, is_overdue: bool) -> None:
        super().__init__()
        self._is_overdue = is_overdue
        self._code = child.wait()
        self._stderr_end = child.last_words()

    def failure(self, doing: str, seconds: float | None, memory: int | None) -> RuntimeFailure:
        """Return the error for a process that ended or took too long."""
        if self._is_overdue:
            return TimedOut(f"{doing} took more than {seconds:g} s and was stopped")
        if self._code == OUT_OF_MEMORY:
            size = "its limit" if memory is None else f"{memory / 2**30:.1f} GiB"
            return OutOfMemory(f"{doing} took more memory than {size} and was stopped")
        words = f"; its last words: {self._stderr_end}" if self._stderr_end else ""
        return Crashed(f"the runtime crashed while {doing} ({_reason(self._code)}){words}")


def _reason(code: int | None) -> str:
    """Say how a process ended."""
    if code is None:
        return "it does not end"
    if code < 0:
        with contextlib.suppress(ValueError):
            name = signal.Signals(-code).name
            also = ", perhaps out of memory" if name == "SIGKILL" else ""
            return f"{name}{also}"
    return f"exit code {code:#x}" if code > 255 else f"exit code {code}"


_COMMAND: Final = (sys.executable, "-P", "-m", "tiered.runtime.worker.server")


def _cannot_start(found: str) -> HelperError:
    return HelperError(
        f"the process that runs models cannot start: {found} ({' '.join(_COMMAND)}); "
        "sys.executable must be a Python that can import tiered and onnxruntime"
    )


class _Child:
    """One process, and the pipes to it.

    Raises:
        HelperError: the process cannot start.
    """

    def __init__(self) -> None:
        # A file and not a pipe, which would fill up unread; it is closed by `end`.
        self._errors = cast(IO[bytes], tempfile.TemporaryFile(prefix="tiered-"))  # noqa: SIM115 - see above
        self.is_ready = False
        self._owner = os.getpid()
        # What this process can import, that one can; -P keeps the current folder out of it. What is
        # Python's own comes first: a `types.py` beside a script would end the process at its start.
        own = os.path.dirname(os.__file__)
        first = {own, os.path.join(own, "lib-dynload")}
        path = os.pathsep.join(sorted(filter(None, sys.path), key=lambda each: each not in first))
        try:
            self.process = subprocess.Popen(
                _COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, "PYTHONPATH": path},
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except OSError as error:
            self._errors.close()
            raise _cannot_start(error.strerror or str(error)) from error
        self._requests = cast(BinaryIO, self.process.stdin)
        self._answers = cast(BinaryIO, self.process.stdout)
        self._finalizer = weakref.finalize(self, _kill, self.process)

    @property
    def is_alive(self) -> bool:
        """Whether it runs and is ours: a fork of this process must start its own."""
        return self._owner == os.getpid() and self.process.poll() is None

    def greet(self) -> None:
        """Wait until it is ready.

        Raises:
            HelperError: it cannot start.
        """
        try:
            with self._bounded(_START_SECONDS):
                receive(self._answers)
        except _Ended as end:
            raise _cannot_start(str(end.failure("starting", _START_SECONDS, None))) from None
        self.is_ready = True

    def exchange(
        self, request: dict[str, Any], blobs: Sequence[Blob], seconds: float | None
    ) -> tuple[Any, list[bytearray]]:
        """Send a request and return the answer.

        Raises:
            _Ended: there was none.
        """
        with self._bounded(seconds):
            with contextlib.suppress(BrokenPipeError):  # the read then reports the end
                send(self._requests, request, blobs)
            return receive(self._answers)

    @contextlib.contextmanager
    def _bounded(self, seconds: float | None) -> Iterator[None]:
        """Kill the process if the block takes too long.

        Raises:
            _Ended: the process has ended.
        """
        overdue = threading.Event()

        def stop() -> None:
            overdue.set()
            self.process.kill()

        timer = None if seconds is None else threading.Timer(seconds, stop)
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            yield
        except (EOFError, OSError):
            raise _Ended(self, is_overdue=overdue.is_set()) from None
        finally:
            if timer is not None:
                timer.cancel()

    def wait(self) -> int | None:
        """Return how it ended; its pipes are closed, so that it will."""
        self._close()
        try:
            return self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait(_END_SECONDS)

    def last_words(self) -> str:
        """Return the end of its standard error, in one line."""
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - 4 * _LAST_WORDS))
        text = " ".join(self._errors.read().decode(errors="replace").split())
        return text if len(text) <= _LAST_WORDS else f"... {text[-_LAST_WORDS:]}"

    def end(self) -> None:
        """End it, whatever it is doing."""
        if self._owner == os.getpid():
            self._finalizer()
            self._close()
        self._errors.close()

    def _close(self) -> None:
        for stream in (self._requests, self._answers):
            with contextlib.suppress(OSError):
                stream.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)
