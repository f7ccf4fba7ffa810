"""Several models in one run, into one folder."""

import json
import os
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import SMALL, Cli
from tiered.testing import parse


@pytest.fixture
def models(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "models"
    folder.mkdir()
    paths = [folder / f"{name}.onnx" for name in "abc"]
    for path in paths:
        onnx.save(parse(SMALL), path)
    return paths


def test_several_models_need_a_folder(cli: Cli, models: list[Path]) -> None:
    before = [path.read_bytes() for path in models]
    ended = cli("optimize", *models, "-O3")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("\n") == 1
    assert "3 files" in ended.err
    assert "--out-dir DIR" in ended.err
    assert [path.read_bytes() for path in models] == before


def test_each_result_is_written_into_the_folder(cli: Cli, models: list[Path]) -> None:
    folder = models[0].parent.parent / "new" / "out"
    for _ in range(2):
        ended = cli("optimize", *models, "--out-dir", folder)
        assert (ended.code, ended.err) == (0, "")
    assert sorted(os.listdir(folder)) == ["a.onnx", "b.onnx", "c.onnx"]
    for path in models:
        made = onnx.load(folder / path.name)
        assert [node.op_type for node in made.graph.node] == ["Add"]
    assert ended.out.count("What changed") == 3


def test_a_single_model_can_be_written_into_a_folder(cli: Cli, small: Path) -> None:
    assert cli("optimize", small, "--out-dir", small.parent / "out").code == 0
    assert os.listdir(small.parent / "out") == ["small.onnx"]


def test_a_model_that_fails_does_not_stop_the_others(cli: Cli, models: list[Path]) -> None:
    folder = models[0].parent.parent / "out"
    models[0].write_bytes(b"no model")
    models[1].unlink()
    ended = cli("optimize", *models, "--out-dir", folder, "-q")
    assert ended.code == 1
    assert os.listdir(folder) == ["c.onnx"]
    first, second, last = ended.err.splitlines()
    assert "a.onnx" in first
    assert "b.onnx" in second
    assert "no such file" in second
    assert last == f"tiered: error: 2 of 3 models failed: {models[0]}, {models[1]}"


def test_the_exit_code_is_that_of_the_first_failure(cli: Cli, models: list[Path]) -> None:
    folder = models[0].parent.parent / "out"
    models[2].write_bytes(b"no model")
    ended = cli("optimize", *models, "--out-dir", folder, "--expect", "Identity>=1", "--json")
    assert ended.code == 4
    records = json.loads(ended.out)
    assert [record["exit_code"] for record in records] == [4, 4]
    assert os.listdir(folder) == []


def test_json_is_one_array(cli: Cli, models: list[Path]) -> None:
    ended = cli("optimize", *models, "--out-dir", models[0].parent / "out", "--json")
    assert [record["input"] for record in json.loads(ended.out)] == list(map(str, models))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-o", "x.onnx"], "-o names one file"),
        (["--trace", "x.json"], "--trace names one file"),
        (["-O", "9"], "-O takes 0 to 4"),
    ],
)
def test_wrong_options_are_reported_before_any_work(
    cli: Cli, models: list[Path], options: list[str], words: str
) -> None:
    folder = models[0].parent.parent / "out"
    ended = cli("optimize", *models, "--out-dir", folder, *options)
    assert (ended.code, words in ended.err) == (2, True), ended.err
    assert not folder.exists()


def test_no_other_model_is_replaced(cli: Cli, models: list[Path]) -> None:
    folder = models[0].parent.parent / "out"
    folder.mkdir()
    (folder / "c.onnx").write_bytes(models[0].read_bytes())
    models[2].write_bytes(models[2].read_bytes() + b"\x0a\x00")
    ended = cli("optimize", *models, "--out-dir", folder)
    assert ended.code == 2
    assert os.listdir(folder) == ["c.onnx"]
    assert cli("optimize", *models, "--out-dir", models[0].parent).code == 2


def test_two_models_of_one_name_are_an_error(cli: Cli, models: list[Path], small: Path) -> None:
    other = small.rename(small.with_name("a.onnx"))
    ended = cli("optimize", models[0], other, "--out-dir", small.parent / "out")
    assert ended.code == 2
    assert "would both be written to" in ended.err


def test_what_is_dumped_goes_into_a_folder_for_each_model(cli: Cli, models: list[Path]) -> None:
    folder, dump = models[0].parent.parent / "out", models[0].parent.parent / "dump"
    assert cli("optimize", *models[:2], "--out-dir", folder, "--dump", dump).code == 0
    assert sorted(os.listdir(dump)) == ["a", "b"]


def test_a_dry_run_writes_nothing(cli: Cli, models: list[Path]) -> None:
    folder = models[0].parent.parent / "out"
    assert cli("optimize", *models, "--out-dir", folder, "--dry-run").code == 0
    assert not folder.exists()
