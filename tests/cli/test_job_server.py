"""The process of a batch: how it holds its memory, and what it answers."""

import gc
import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import SMALL
from tests.small import loaded_apart, registered
from tiered import Model, PassContext, module_pass
from tiered.cli import job_server
from tiered.runtime.worker.limits import LEAST
from tiered.testing import parse

_MIB = 1 << 20


def _answered(held: list[int], monkeypatch: pytest.MonkeyPatch) -> tuple[int, list[bool]]:
    """Answer a request for each amount of memory, in MiB; return the collections, and who ends."""
    collected: list[int] = []
    now = [0]
    monkeypatch.setattr(job_server, "held_by", lambda: now[0] * _MIB)
    monkeypatch.setattr(gc, "collect", lambda: collected.append(now[0]))
    server = job_server.JobServer()
    retires = []
    for amount in held:
        now[0] = amount
        answer = server.answer({"do": "digest", "paths": [], "memory": None})
        retires.append(bool(answer["retire"]))
    return len(collected), retires


def test_memory_that_stays_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _answered([70, 80, 90, 100, 120], monkeypatch) == (1, [False] * 5)


def test_what_holds_too_much_is_collected_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _answered([100, 130], monkeypatch) == (2, [False, True])


@pytest.mark.parametrize(
    ("held", "collections"),
    [([64], 0), ([65], 1), ([65, 128], 1), ([65, 130], 2), ([128], 1), ([60, 40, 64], 0)],
)
def test_garbage_is_collected_64_mib_after_the_last_time(
    held: list[int], collections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _answered(held, monkeypatch)[0] == collections


def test_a_process_ends_that_holds_more_than_128_mib(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _answered([128, 129, 20], monkeypatch)[1] == [False, True, False]


@pytest.mark.parametrize(
    ("memory", "limit"),
    [(None, None), (LEAST + 300, LEAST + 200), (LEAST + 100, LEAST), (1, LEAST)],
)
def test_the_limit_is_what_the_process_holds_less(
    memory: int | None, limit: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_server, "held_by", lambda: 100)
    server = job_server.JobServer()
    limits: list[int | None] = []
    monkeypatch.setattr(server._limit, "set", limits.append)
    answer = server.answer({"do": "digest", "paths": [], "memory": memory})
    assert (answer, limits) == ({"done": [], "retire": False}, [limit])


@pytest.fixture
def server() -> job_server.JobServer:
    return job_server.JobServer()


def test_files_have_digests_and_what_cannot_be_read_has_none(
    server: job_server.JobServer, tmp_path: Path
) -> None:
    loaded_apart(parse(SMALL), tmp_path)
    plain = tmp_path / "small.onnx"
    plain.write_bytes(parse(SMALL).SerializeToString())
    paths = [str(plain), str(tmp_path / "none.onnx"), str(tmp_path), str(tmp_path / "model.onnx")]
    asked = {"do": "digest", "paths": paths, "memory": None}
    small, none, folder, large = server.answer(asked)["done"]
    assert small == hashlib.sha256(plain.read_bytes()).hexdigest()
    assert (none, folder, len(large)) == ("", "", 64)
    assert server.answer({"do": "data", "path": paths[3], "memory": None})["done"] == ["weights"]


def test_what_is_no_request_is_a_bug(server: job_server.JobServer) -> None:
    with pytest.raises(AssertionError, match="no such request: sing"):
        server.answer({"do": "sing", "memory": None})


def _ran(
    source: Path, *words: str, target: Path | None = None, force: bool = False
) -> dict[str, Any]:
    """Optimise a model into `out.onnx` beside it as a job of a batch does."""
    out = source.with_name("out.onnx")
    request = {
        "do": "run",
        "words": ["optimize", str(source), str(out), "--force", *words],
        "files": [str(source)],
        "out": str(out),
        "target": None if target is None else str(target),
        "force": force,
    }
    done: dict[str, Any] = job_server.JobServer()._do(request)
    return done


def test_a_run_returns_what_it_printed_and_what_it_did(small: Path) -> None:
    done = _ran(small)
    out = small.with_name("out.onnx")
    assert (done["code"], done["err"]) == (0, "")
    assert "out.onnx" in done["out"]
    assert done["sha256_in"] == [hashlib.sha256(small.read_bytes()).hexdigest()]
    assert done["sha256_out"] == hashlib.sha256(out.read_bytes()).hexdigest()
    assert done["seconds"] > 0
    assert done["peak"] > 0
    figures = done["figures"]
    assert (figures["nodes_before"], figures["nodes_after"]) == (3, 1)
    assert figures["bytes_before"] == small.stat().st_size
    assert figures["bytes_after"] == out.stat().st_size
    assert figures["passes"] == "eliminate_identity=2 eliminate_unused_initializer=1"
    assert figures["verified"] is False
    assert _ran(small, "--verify")["figures"]["verified"] is True


def test_a_command_that_fails_has_its_code_and_message(small: Path) -> None:
    done = _ran(small, "--expect", "nodes<=0")
    assert done["code"] == 4
    assert "nodes" in done["err"]
    assert (done["sha256_out"], done["out"]) == ("", "")
    assert done["figures"] == {}
    unread = _ran(small.with_name("none.onnx"))
    assert (unread["code"], unread["figures"], unread["sha256_in"]) == (1, {}, [""])


@module_pass(opt_level=None)
def raise_for_memory(model: Model, ctx: PassContext) -> None:
    raise MemoryError


def test_a_command_that_fails_says_whether_it_is_for_want_of_memory(small: Path) -> None:
    with registered(raise_for_memory):
        done = _ran(small, "--passes", "raise_for_memory")
    assert (done["code"], done["is_memory"]) == (1, True)
    assert _ran(small, "--expect", "nodes<=0")["is_memory"] is False


def test_a_file_of_an_earlier_run_is_no_result_of_one_that_fails(small: Path) -> None:
    small.with_name("out.onnx").write_bytes(b"earlier")
    done = _ran(small, "--expect", "nodes<=0")
    assert (done["code"], done["sha256_out"]) == (4, "")


def test_a_model_that_is_no_earlier_result_stays(small: Path) -> None:
    target = small.with_name("target.onnx")
    target.write_bytes(small.read_bytes().replace(b"unused", b"unuser"))
    refused = _ran(small, target=target)
    assert refused["code"] == 2
    assert "target.onnx' is an ONNX model and not an earlier result" in refused["err"]
    assert not small.with_name("out.onnx").exists()
    assert _ran(small, target=target, force=True)["code"] == 0
    assert _ran(small, target=small.with_name("new.onnx"))["code"] == 0


@pytest.mark.parametrize("force", [False, True])
def test_the_model_that_is_read_is_never_replaced(small: Path, force: bool) -> None:
    refused = _ran(small, target=small, force=force)
    assert (refused["code"], refused["figures"]) == (2, {})
    assert "is the model that is read" in refused["err"]


def test_a_result_of_a_higher_opset_is_replaced_only_if_that_is_asked_for(small: Path) -> None:
    target = small.with_name("target.onnx")
    raised = ("--passes", "convert_opset{to=22}")
    _ran(small, *raised)
    small.with_name("out.onnx").rename(target)
    refused = _ran(small, target=target)
    assert refused["code"] == 2
    assert "use --force to replace it" in refused["err"]
    assert _ran(small, *raised, target=target)["code"] == 0
    assert _ran(small, target=target, force=True)["code"] == 0
