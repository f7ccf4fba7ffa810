"""`tiered batch`: the command line of many models."""

import json
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import SMALL, Cli
from tiered.cli.commands import load_command
from tiered.testing import parse


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    onnx.save(parse(SMALL), folder / "a.onnx")
    (folder / "b.onnx").write_bytes(b"no model")
    return folder


def test_a_batch_prints_lines_a_table_and_totals(cli: Cli, models: Path, tmp_path: Path) -> None:
    table = tmp_path / "all.jsonl"
    ended = cli("batch", models, "--out-dir", tmp_path / "out", "-O3", "--results", table)
    assert ended.code == 1
    assert f"{models}/a.onnx: done, 3 -> 1 node" in ended.err
    assert f"{models}/b.onnx: failed: " in ended.err
    assert "2 models: 1 done, 1 failed" in ended.out
    assert [json.loads(line)["status"] for line in table.read_text().splitlines()] == [
        *("done", "failed")
    ]
    assert "eliminate_identity=2" in json.loads(table.read_text().splitlines()[0])["passes"]
    again = cli("batch", models, "--out-dir", tmp_path / "out", "-O3", "--resume", "--json")
    assert [json.loads(line)["status"] for line in again.out.splitlines()] == ["skipped", "failed"]
    only = cli("batch", models / "a.onnx", "--out-dir", tmp_path / "out", "-O3", "--resume", "-q")
    assert (only.code, only.out, only.err) == (0, "", "")


def test_check_and_inspect_write_reports(cli: Cli, models: Path, tmp_path: Path) -> None:
    (models / "b.onnx").unlink()
    given = ("--out-dir", tmp_path / "out", "-q")
    assert cli("batch", "inspect", models, *given).code == 0
    assert json.loads((tmp_path / "out" / "a.onnx.json").read_text())["nodes"] == 3
    ended = cli("batch", "check", models, *given, "--backend", "onnxruntime_cpu")
    assert ended.code == 0
    assert json.loads((tmp_path / "out" / "a.onnx.json").read_text())["is_met"] is True


def test_quantize_is_that_of_single_runs(cli: Cli, models: Path, tmp_path: Path) -> None:
    (models / "b.onnx").unlink()
    numbers = ",".join(str(number / 7) for number in range(256))
    weights = f"<float[16,16] w = {{{numbers}}}>"
    text = f"(float[n,16] x) => (float[n,16] y) {weights} {{ y = MatMul(x, w) }}"
    onnx.save(parse(text), models / "a.onnx")
    out = tmp_path / "out"
    ended = cli("batch", "quantize", models, "--out-dir", out, "--dynamic", "-q")
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    single = tmp_path / "a.onnx"
    assert cli("quantize", models / "a.onnx", single, "--dynamic", "-q").code == 0
    assert (out / "a.onnx").read_bytes() == single.read_bytes()
    assert single.read_bytes() != (models / "a.onnx").read_bytes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "--out-dir DIR"),
        (["--out-dir", "out", "-o", "x.onnx"], "--output is for one model"),
        (["--out-dir", "out", "--reproducer", "x"], "use --reproducers DIR"),
        (["--out-dir", "out", "--html", "x.html"], "--html is for one model"),
        (["--out-dir", "out", "--certify=x.json"], "--certify=x.json is for one model"),
        (["--out-dir", "out", "--results", "x.csv"], ".jsonl, .html or .parquet"),
        (["--out-dir", "out", "--max-memory", "lots"], "--max-memory: 'lots' is not a size"),
        (["--out-dir", "out", "-O", "9"], "-O takes 0 to 4"),
        (["--out-dir", "s3://bucket/out"], "--manifest FILE"),
    ],
)
def test_wrong_options_are_reported_before_any_work(
    cli: Cli, models: Path, options: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(models)
    ended = cli("batch", models, *options)
    assert (ended.code, words in ended.err) == (2, True), ended.err
    assert not (models / "out").exists()


@pytest.mark.parametrize("name", ["check", "inspect"])
def test_the_options_of_a_report_are_those_of_the_single_command(cli: Cli, name: str) -> None:
    def options(command: str) -> dict[str, str]:
        return {each.names[0]: each.option.doc for each in load_command(command).described()[1]}

    single, batch = options(name), options(f"batch {name}")
    assert len(single) > 3
    assert single.pop("--max-memory") != batch["--max-memory"]  # of one process, or of all
    assert single.items() <= batch.items()
