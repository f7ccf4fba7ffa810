"""`tiered bench`: tables, JSON, expectations, errors; times are made up."""

import json
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tests.fake_worker import FakeSession
from tiered.testing import parse

ADD = "(float[n,2] x) => (float[n,2] y) <float[2] w = {1,2}> { y = Add(x, w) }"


@pytest.fixture
def models(
    tmp_path: Path, fake_worker: type[FakeSession], monkeypatch: pytest.MonkeyPatch
) -> tuple[str, str, str]:
    """Return models, in this folder, that take 1, 0.5 and 2 ms."""
    monkeypatch.chdir(tmp_path)
    names = ("a.onnx", "b.onnx", "c.onnx")
    for name in names:
        onnx.save(parse(ADD), name)
    return names


def test_models_stand_side_by_side(cli: Cli, models: tuple[str, ...]) -> None:
    ended = cli("bench", *models)
    assert (ended.code, ended.err) == (0, "")
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert ", CPUExecutionProvider, 1 thread, optimisations all; wall time, 12 rounds, " in lines[1]
    assert lines[1].startswith("onnxruntime ")
    size = Path("a.onnx").stat().st_size
    beside = f"2400 250.00 ms 4.0 KiB {size} B".replace("2400", "{}")
    assert f"A a.onnx 1.00 ms 1.00 ms to 1.00 ms {beside.format('2,400')}" in lines
    assert "B b.onnx 0.500 0.500 to 0.500 faster" in lines
    assert "C c.onnx 2.000 2.000 to 2.000 slower" in lines


def test_one_model_has_no_ratio(cli: Cli, models: tuple[str, ...]) -> None:
    ended = cli("bench", models[0], "--threads", "0", "--runtime-level", "off", "--runs", "24")
    assert ended.code == 0
    assert "its choice of threads, optimisations off; wall time, 12 rounds" in ended.out
    assert "Beside A" not in ended.out


def test_json_has_all_of_it(cli: Cli, models: tuple[str, ...]) -> None:
    ended = cli(
        "bench", *models[:2], "--json", "--clock", "processor", "--expect", "B<=0.9*A", "--dim",
        "n=3", "--expect", "B<=0.1*A",
    )  # fmt: skip
    assert ended.code == 4
    record = json.loads(ended.out)
    assert (record["provider"], record["threads"]) == ("CPUExecutionProvider", 1)
    assert (record["runtime_level"], record["clock"]) == ("all", "processor")
    assert (record["rounds"], record["interrupted"]) == (12, False)
    assert record["confidence"] >= 0.99
    assert "x [3, 2]" in record["inputs"][0]
    first, second = record["models"]
    assert (first["letter"], first["file"], second["letter"]) == ("A", "a.onnx", "B")
    assert first["latency"] == {"low": 0.001, "median": 0.001, "high": 0.001}
    assert (first["memory"], first["start"]["median"]) == (4096, 0.25)
    (ratio,) = record["ratios"]
    assert (ratio["of"], ratio["to"], ratio["verdict"]) == ("B", "A", "faster")
    met, missed = record["expectations"]
    assert met == {"text": "B<=0.9*A", "ok": True, "reason": ""}
    assert (missed["ok"], missed["reason"][:18]) == (False, "expected B<=0.1*A:")
    assert record["remarks"] == []


def test_an_expectation_that_fails_is_exit_code_4(cli: Cli, models: tuple[str, ...]) -> None:
    assert cli("bench", *models, "--expect", "B<=0.9*A,C>A").code == 0
    ended = cli("bench", *models, "--expect", "C<=A")
    assert ended.code == 4
    assert "Beside A" in ended.out
    assert "tiered: error: expected C<=A: C/A is 2.000 (2.000 to 2.000)" in ended.err


def test_an_interruption_prints_what_is_there(
    cli: Cli,
    models: tuple[str, ...],
    fake_worker: type[FakeSession],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Each model opens once before, then once in each round.
    monkeypatch.setattr(
        fake_worker, "interrupt", staticmethod(lambda: len(fake_worker.openings) > 2 + 2 * 9)
    )
    ended = cli("bench", *models[:2], "--expect", "C<=A")
    assert ended.code == 2
    ended = cli("bench", *models[:2], "--expect", "B<=0.1*A")
    assert ended.code == 130
    assert "wall time, 9 rounds" in ended.out
    assert "faster" in ended.out
    assert "interrupted: the figures are those of the rounds until then" in ended.out
    fake_worker.openings.clear()
    ended = cli("bench", *models[:2], "--json")
    assert (ended.code, json.loads(ended.out)["interrupted"]) == (130, True)


def test_an_interruption_before_anything_prints_nothing(
    cli: Cli,
    models: tuple[str, ...],
    fake_worker: type[FakeSession],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fake_worker, "interrupt", staticmethod(lambda: True))
    ended = cli("bench", *models)
    assert (ended.code, ended.out) == (130, "")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("a.onnx", "none.onnx"), 1, "cannot read 'none.onnx': no such file"),
        (("a.onnx", "--provider", "cudda"), 2, "no provider 'cudda' here"),
        (("a.onnx", "--runtime-level", "some"), 2, "runtime-level"),
        (("a.onnx", "b.onnx", "--expect", "B<=0.9A"), 2, "--expect 'B<=0.9A': expected two models"),
        (("a.onnx", "--expect", "B<A"), 2, "no model B; A is the only model"),
        (("a.onnx", "--minutes", "0"), 2, "minutes are a number above 0"),
        (("a.onnx", "--dim", "m=3"), 2, "has a dim 'm'"),
        ((), 2, "requires"),
    ],
)
def test_what_is_wrong_is_named(
    cli: Cli, models: tuple[str, ...], arguments: tuple[str, ...], code: int, said: str
) -> None:
    ended = cli("bench", *arguments)
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
