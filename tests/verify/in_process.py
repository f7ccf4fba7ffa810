"""A worker that is no process: models open here, as in the worker, without its limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, cast

from tiered.runtime import Session, Worker
from tiered.runtime.session import Reference, Runner


class Opened:
    """An open model; it can be closed and is a context."""

    def __init__(self, worker: InProcess, session: Runner) -> None:
        self.inputs, self.outputs = session.inputs, session.outputs
        self.is_closed = False
        self._worker, self._session = worker, session

    def __enter__(self) -> Opened:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> Any:
        self._worker.runs += 1
        return self._session.run(feeds, outputs)

    def close(self) -> None:
        self.is_closed = True


class InProcess:
    """Opens models here; what a test sets in `refuses` is raised for the kinds of runtimes."""

    def __init__(self) -> None:
        self.opened: list[Opened] = []
        self.how: list[dict[str, Any]] = []
        self.runs = 0
        self.refuses: dict[str, Exception] = {}

    def open(self, model: Any, *, reference: bool = False, **how: Any) -> Opened:
        kind = "reference" if reference else "onnxruntime"
        self.how.append({"runtime": kind, **how})
        if kind in self.refuses:
            raise self.refuses[kind]
        plain = Reference(model) if reference else Session(model, folder=how.get("folder", ""))
        made = Opened(self, cast(Runner, plain))
        self.opened.append(made)
        return made


def in_process() -> tuple[InProcess, Worker]:
    """Return a worker of this process, twice: as it is, and as the code under test takes it."""
    made = InProcess()
    return made, cast(Worker, made)
