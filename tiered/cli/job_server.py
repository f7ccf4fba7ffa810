"""A process that runs command lines of `tiered` on request: those of the jobs of a batch.

It is started as `python -m tiered serve-jobs` and exchanges frames on its standard streams, as
the worker that runs models. First it sends the bytes that it holds. The requests are

    {"do": "run", "words": [...], "files": [path, ...], "out": path or null, "target": path or
     null, "force": bool}
    {"do": "digest", "paths": [path, ...]}
    {"do": "data", "path": path}

each with "memory", the most bytes that it may hold, or null. An answer is {"done": ..., "retire":
whether the process holds so much that another one should take its place}; that of a run says with
"is_memory" whether there was too little memory. When the process that asks is gone, this one ends
with all processes that it has started.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import queue
import signal
import threading
import time
from collections import Counter
from typing import Any, BinaryIO, Final

from tiered.cli import main as run_command_line
from tiered.cli.files import check_output
from tiered.cli.outcome import Outcome, observed
from tiered.cli.output.failures import ran_out_of_memory
from tiered.cli.prepared import decided_by
from tiered.cli.source_mark import PRECISION, check_kept_file, check_replaced
from tiered.extensions.fleet.digests import data_files, sha256_of
from tiered.runtime.worker.frames import receive, send
from tiered.runtime.worker.limits import LEAST, MemoryLimit, end_before_parent, load_libraries
from tiered.support.errors import TieredError
from tiered.support.memory_limit import held_by
from tiered.support.peak import peak_since_reset, reset_peak

_COLLECTED: Final = 64 << 20
"""Bytes more than after the last collection from which garbage is collected between two jobs."""

_RETIRED: Final = 128 << 20
"""Bytes that an idle process may hold beyond those of its start."""

_LOADED: Final = 16
"""Jobs after which most code is loaded: what lives then is left out of later collections."""


class JobServer:
    """Answers requests, within a limit of memory."""

    def __init__(self) -> None:
        self.idle = held_by()
        self._settled = self.idle
        self._limit = MemoryLimit()
        self._jobs = 0

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Serve one request."""
        memory = request["memory"]
        self._limit.set(None if memory is None else max(LEAST, memory - self.idle))
        done = self._do(request)
        if request["do"] == "run":
            self._jobs += 1
            if self._jobs == _LOADED:
                gc.collect()
                gc.freeze()
        most = self.idle + _RETIRED
        if held_by() > min(most, self._settled + _COLLECTED):  # it takes long, so not each time
            gc.collect()
            self._settled = held_by()
        return {"done": done, "retire": held_by() > most}

    def _do(self, request: dict[str, Any]) -> Any:
        match request["do"]:
            case "run":
                return _run(request)
            case "digest":
                return [_digest(path) for path in request["paths"]]
            case "data":
                return data_files(request["path"])
        raise AssertionError(f"no such request: {request['do']}")


def _digest(path: str) -> str:
    try:
        return sha256_of(path) if os.path.exists(path) else ""
    except TieredError:
        return ""


def _run(request: dict[str, Any]) -> dict[str, Any]:
    """Run a command line, and return what it printed and the digests of its files."""
    reset_peak()
    start = time.perf_counter()
    out, err = io.StringIO(), io.StringIO()
    seen: list[Outcome | Exception] = []
    words, target = request["words"], request["target"]
    source = request["files"][-1]
    try:
        if target is not None:
            check_output(source, target)
            if not request["force"] and os.path.exists(target):
                check_replaced(source, target=target)
        printed = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
        with printed[0], printed[1], observed(seen.append):
            code = run_command_line(words)
        said = err.getvalue()
        is_written = code == 0 and request["out"] is not None and os.path.exists(request["out"])
        if is_written and target is not None and not request["force"]:
            last = _last(seen)
            asked = {PRECISION} if last is None else decided_by(last.prepared)
            check_kept_file(source, target, request["out"], asked)
    except TieredError as error:
        code, said = error.exit_code, str(error)
        seen.append(error)
    seconds = time.perf_counter() - start
    written = request["out"]
    is_written = written is not None and code == 0
    return {
        "code": code,
        "out": out.getvalue(),
        "err": said,
        "seconds": seconds,
        "is_memory": any(isinstance(each, Exception) and ran_out_of_memory(each) for each in seen),
        "figures": _figures(_last(seen)),
        "peak": peak_since_reset(),
        "sha256_in": [_digest(path) for path in request["files"]],
        "sha256_out": _digest(written) if is_written else "",
    }


def _last(seen: list[Outcome | Exception]) -> Outcome | None:
    return next((each for each in reversed(seen) if isinstance(each, Outcome)), None)


def _figures(outcome: Outcome | None) -> dict[str, Any]:
    """Return the figures of a model that was rewritten."""
    result = None if outcome is None else outcome.result
    if result is None:
        return {}
    fired = Counter[str]()
    for each in result.report.results:
        if each.rewrites and each.info.kind != "pipeline":
            fired[each.name] += each.rewrites
    return {
        "nodes_before": result.before.nodes,
        "nodes_after": result.after.nodes,
        "bytes_before": result.before.nbytes,
        "bytes_after": result.after.nbytes,
        "passes": " ".join(f"{name}={count}" for name, count in sorted(fired.items())),
        "verified": result.verify is not None and result.verify.verdict.is_proved,
    }


def _read(requests: BinaryIO, waiting: queue.Queue[dict[str, Any]]) -> None:
    """Read requests until the process that asks is gone; then end this one and all below it."""
    while True:
        try:
            request, _ = receive(requests)
        except EOFError:
            break
        waiting.put(request)
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def main() -> None:
    """Serve the process that started this one, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    end_before_parent()
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    load_libraries()
    server = JobServer()
    waiting: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_read, args=(requests, waiting), daemon=True).start()
    send(answers, {"done": server.idle})
    with contextlib.suppress(BrokenPipeError):
        while True:
            send(answers, server.answer(waiting.get()))
