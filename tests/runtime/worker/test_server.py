"""The server of the worker: what each request does, and which failures are of memory."""

import io
import os
from typing import Any

import numpy as np
import onnx
import pytest

from tests.small import proto
from tiered.runtime.worker import server
from tiered.runtime.worker.frames import Blob, pack, receive, send, unpack
from tiered.runtime.worker.server import Server, serve
from tiered.support.errors import RuntimeFailure

MODEL = proto("g (float[2] x) => (float[2] y, float[2] z) { y = Neg(x)  z = Abs(x) }")
X = np.array([1, -2], np.float32)


def opening(number: int = 1, **held: Any) -> dict[str, Any]:
    return {
        "do": "open", "id": number, "model": None, "label": "a model", "reference": False,
        "setting": "reproducible", "folder": "", "libraries": [], **held,
    }  # fmt: skip


def opened(number: int = 1, **held: Any) -> Server:
    made = Server()
    body, _ = made.answer(opening(number, **held), [bytearray(MODEL.SerializeToString())])
    assert body == {"done": {"inputs": ("x",), "outputs": ("y", "z")}}
    return made


def asked(given: Server, **request: Any) -> Any:
    """Return the answer to a request, with its arrays."""
    blobs: list[Blob] = []
    for name in ("feeds", "samples"):
        if name in request:
            packed = pack(request[name], blobs)
            maps = [packed] if name == "feeds" else packed["l"]
            pairs = [dict(each["m"]) for each in maps]
            request[name] = pairs[0] if name == "feeds" else pairs
    body, made = given.answer(request, [bytearray(blob) for blob in blobs])
    if "failed" in body or request["do"] != "run":
        return body
    return {
        name: unpack(value, [bytearray(b) for b in made]) for name, value in body["done"].items()
    }


@pytest.mark.parametrize("reference", [False, True])
def test_a_model_runs_on_its_runtime(reference: bool) -> None:
    made = opened(reference=reference)
    found = asked(made, do="run", id=1, feeds={"x": X}, outputs=None)
    assert {name: array.tolist() for name, array in found.items()} == {"y": [-1, 2], "z": [1, 2]}
    only = asked(made, do="run", id=1, feeds={"x": X}, outputs=["z"])
    assert list(only) == ["z"]


def test_a_model_may_be_a_file(tmp_path: Any) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(MODEL, path)
    made = Server()
    body, _ = made.answer(opening(7, model=str(path)), [])
    assert "done" in body
    assert asked(made, do="run", id=7, feeds={"x": X}, outputs=["y"])["y"].tolist() == [-1, 2]


def test_models_are_known_by_their_numbers_until_they_are_closed() -> None:
    made = opened(1)
    made.answer(opening(2), [bytearray(MODEL.SerializeToString())])
    assert asked(made, do="close", id=1) == {"done": None}
    with pytest.raises(KeyError):
        asked(made, do="run", id=1, feeds={"x": X}, outputs=None)
    with pytest.raises(KeyError):
        asked(made, do="time", id=1, sample=0, runs=1, before=0)
    assert set(asked(made, do="run", id=2, feeds={"x": X}, outputs=None)) == {"y", "z"}
    assert asked(made, do="close", id=9) == {"done": None}


def test_runs_are_timed_on_held_samples() -> None:
    made = opened()
    assert asked(made, do="hold", id=1, samples=[{"x": X}, {"x": X}]) == {"done": None}
    found = asked(made, do="time", id=1, sample=1, runs=3, before=1)["done"]
    assert set(found) == {"wall", "processor", "started", "memory", "nodes"}
    assert (len(found["wall"]), len(found["processor"])) == (3, 3)
    assert found["started"] > 0


def test_a_profile_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    made = opened()
    monkeypatch.setattr(made._timed[1], "end_profile", lambda: "a file")
    assert asked(made, do="profile", id=1) == {"done": "a file"}


def test_another_request_is_a_fault_of_the_code() -> None:
    with pytest.raises(AssertionError, match="no such request: dance"):
        asked(Server(), do="dance", id=1)


def test_what_the_runtime_refuses_is_an_answer() -> None:
    body, blobs = Server().answer(opening(), [bytearray(b"no model")])
    assert "a model" in body["failed"]
    assert (body["is_memory"], blobs) == (False, [])
    body = asked(opened(), do="run", id=1, feeds={}, outputs=None)
    assert "failed" in body
    assert not body["is_memory"]


def _caused(text: str, cause: BaseException | None) -> RuntimeFailure:
    error = RuntimeFailure(text)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "text", "is_memory"),
    [
        (MemoryError(), "no memory left", True),
        (MemoryError("of numpy"), "of numpy", True),
        (_caused("it fails", MemoryError()), "it fails", True),
        (_caused("it fails", ValueError()), "it fails", False),
        (RuntimeFailure("Failed to allocate memory for"), None, True),
        (RuntimeFailure("std::bad_alloc"), None, True),
        (RuntimeFailure("bad allocation"), None, True),
        (RuntimeFailure("Unable to allocate 3 GiB"), None, True),
        (RuntimeFailure("it fails"), None, False),
    ],
)
def test_failures_of_memory_are_named(
    monkeypatch: pytest.MonkeyPatch, error: Exception, text: str | None, is_memory: bool
) -> None:
    made = Server()

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(made, "_do", fail)
    body = {"failed": text or str(error), "is_memory": is_memory}
    assert made.answer({}, []) == (body, [])


def test_requests_are_answered_within_their_limits_until_there_are_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bounds: list[Any] = []

    class Limit:
        def set(self, nbytes: int | None) -> None:
            bounds.append(nbytes)

    monkeypatch.setattr(server, "MemoryLimit", Limit)
    monkeypatch.setattr(server, "die_after", bounds.append)
    monkeypatch.setattr(server, "end_before_parent", lambda: bounds.append("parent"))
    requests, answers = io.BytesIO(), io.BytesIO()
    limits = {"seconds": 5.0, "memory": 1 << 20}
    send(requests, {**opening(), **limits}, [MODEL.SerializeToString()])
    send(requests, {"do": "close", "id": 1, "seconds": None, "memory": None})
    requests.seek(0)
    serve(requests, answers)
    answers.seek(0)
    assert receive(answers)[0] == {"done": os.getpid()}
    assert receive(answers)[0] == {"done": {"inputs": ["x"], "outputs": ["y", "z"]}}
    assert receive(answers)[0] == {"done": None}
    with pytest.raises(EOFError):
        receive(answers)
    assert bounds == [1 << 20, 5.0, "parent", None, None, None, "parent", None]


def test_requests_and_answers_are_on_streams_that_no_library_writes_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[Any] = []

    class Os:
        devnull, O_RDONLY = os.devnull, os.O_RDONLY

        def dup(self, number: int) -> int:
            return number + 10

        def fdopen(self, number: int, mode: str) -> str:
            return f"{number} {mode}"

        def open(self, path: str, flags: int) -> int:
            return 99

        def dup2(self, number: int, place: int) -> None:
            calls.append((number, place))

    monkeypatch.setattr(server, "os", Os())
    monkeypatch.setattr(server, "end_before_parent", lambda: None)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr(server, "serve", lambda *streams: calls.append(streams))
    server.main()
    assert calls == [(99, 0), (2, 1), ("10 rb", "11 wb")]

    def ended(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(server, "serve", ended)
    with pytest.raises(SystemExit) as caught:
        server.main()
    assert caught.value.code == 0
