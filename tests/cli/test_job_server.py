"""The process of a batch: how it holds its memory, and how it reads what is no valid model."""

import gc
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tiered.cli import job_server
from tiered.extensions.fleet.digests import data_files, sha256_of

_MIB = 1 << 20


def _answered(held: list[int], monkeypatch: pytest.MonkeyPatch) -> tuple[int, list[bool]]:
    """Answer a request for each amount of memory, in MiB; return the collections, and who ends."""
    collected: list[int] = []
    now = [0]
    monkeypatch.setattr(job_server, "held_by", lambda: now[0] * _MIB)
    monkeypatch.setattr(gc, "collect", lambda: collected.append(now[0]))
    server = job_server.Server()
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


def _saved(folder: Path, model: onnx.ModelProto) -> str:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return str(path)


def _model(name: str) -> onnx.ModelProto:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    node = helper.make_node("Relu", ["x"], ["y"], name=name)
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    return helper.make_model(helper.make_graph([node], "g", [value], [out]))


def test_a_name_does_not_make_external_data(tmp_path: Path) -> None:
    assert data_files(_saved(tmp_path, _model("location"))) == []


def test_an_operator_that_is_not_utf8_has_a_digest(tmp_path: Path) -> None:
    path = Path(_saved(tmp_path, _model("location")))
    path.write_bytes(path.read_bytes().replace(b"Relu", b"Re\xfflu"[:4]))
    assert data_files(str(path)) == []
    assert len(sha256_of(str(path))) == 64
