"""The worker process: opens models and runs them on request.

It is started as `python -m tiered.runtime.worker.server`.

It reads requests from its standard input and answers each on its standard output, in the frames of
`frames.py`. It ends when its input does. What native code prints goes to standard error.

    {"do": "open", "id": 1, "model": path, or null for blob 0, "label": text, "reference": bool,
     "setting": the name of a `Setting`, or the fields of an `Opening`, "folder": that of the
     external data of blob 0, or "", "libraries": [path, ...]}
    {"do": "run", "id": 1, "feeds": {name: value}, "outputs": [name, ...] or null}
    {"do": "hold", "id": 1, "samples": [{name: value}, ...]}
    {"do": "time", "id": 1, "sample": n, "runs": n, "before": n}
    {"do": "profile", "id": 1}: end the profile of the runs, and return its file
    {"do": "close", "id": 1}

each with "seconds" and "memory", its limits. The answer is `{"done": ...}`, or `{"failed": text,
"is_memory": bool}` where the runtime refused. A fault of this file ends the process, which its
parent reports with the end of standard error.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, BinaryIO

from tiered.runtime.opening import setting_of
from tiered.runtime.session import Reference, Session
from tiered.runtime.worker.frames import Blob, pack, receive, send, unpack
from tiered.runtime.worker.limits import MemoryLimit, die_after, end_before_parent
from tiered.runtime.worker.worker_clock import TimedModel, timed
from tiered.support.errors import RuntimeFailure

_MEMORY_WORDS = ("Failed to allocate memory", "bad_alloc", "bad allocation", "Unable to allocate")


class Server:
    """The models that are open, by the number that the parent gave them."""

    def __init__(self) -> None:
        self._open: dict[int, Session | Reference] = {}
        self._timed: dict[int, TimedModel] = {}

    def answer(self, request: dict[str, Any], blobs: list[bytearray]) -> tuple[Any, list[Blob]]:
        """Serve a request; return the answer and its blobs."""
        made: list[Blob] = []
        try:
            return {"done": self._do(request, blobs, made)}, made
        except MemoryError as error:
            return {"failed": f"{error}" or "no memory left", "is_memory": True}, []
        except RuntimeFailure as error:
            text = str(error)
            causes = isinstance(error.__cause__, MemoryError)
            is_memory = causes or any(words in text for words in _MEMORY_WORDS)
            return {"failed": text, "is_memory": is_memory}, []

    def _do(self, request: dict[str, Any], blobs: list[bytearray], made: list[Blob]) -> Any:
        number = request["id"]
        match request["do"]:
            case "open":
                return self._opened(request, blobs)
            case "run":
                feeds = {name: unpack(value, blobs) for name, value in request["feeds"].items()}
                results = self._open[number].run(feeds, request["outputs"])
                return {name: pack(value, made) for name, value in results.items()}
            case "hold":
                samples = [
                    {name: unpack(value, blobs) for name, value in feeds.items()}
                    for feeds in request["samples"]
                ]
                self._timed[number].hold(samples)
                return None
            case "time":
                timed_model = self._timed[number]
                found = timed_model.seconds(request["sample"], request["runs"], request["before"])
                return {
                    **found,
                    "started": timed_model.started,
                    "memory": timed_model.grown(),
                    "nodes": timed_model.nodes_by_provider,
                }
            case "profile":
                return self._timed[number].end_profile()
            case "close":
                self._open.pop(number, None)
                self._timed.pop(number, None)
                return None
        raise AssertionError(f"no such request: {request['do']}")

    def _opened(self, request: dict[str, Any], blobs: list[bytearray]) -> Any:
        number = request["id"]
        model = request["model"] if request["model"] is not None else bytes(blobs[0])
        session: Session | Reference
        if request["reference"]:
            session = Reference(model, label=request["label"])
        else:
            self._timed[number], session = timed(
                lambda: Session(
                    model,
                    label=request["label"],
                    folder=request["folder"],
                    setting=setting_of(request["setting"]),
                    libraries=request["libraries"],
                )
            )
        self._open[number] = session
        return {"inputs": session.inputs, "outputs": session.outputs}


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until there are no more."""
    server, memory = Server(), MemoryLimit()
    send(answers, {"done": os.getpid()})
    while True:
        try:
            request, blobs = receive(requests)
        except EOFError:
            return
        memory.set(request["memory"])
        die_after(request["seconds"])
        end_before_parent()  # it may have grown since
        body, made = server.answer(request, blobs)
        del blobs
        send(answers, body, made)
        die_after(None)


def main() -> None:
    """Serve the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    end_before_parent()
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    import onnxruntime  # noqa: F401 - so that its loading counts to no request

    try:
        serve(requests, answers)
    except BrokenPipeError:
        sys.exit(0)  # the parent has ended


if __name__ == "__main__":
    main()
