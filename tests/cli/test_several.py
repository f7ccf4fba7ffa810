"""`tiered optimize` of several models: a batch without a manifest."""

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
    for number, path in enumerate(paths, 5):
        onnx.save(parse(SMALL.replace("{1,2}", f"{{1,{number}}}")), path)
    return paths


WRONG = """
from tiered import Graph, Value, op, rewrite, var


@rewrite(op.Add(var.x, var.w), opt_level=None)
def wrong(graph: Graph, x: Value, w: Value) -> Value:
    \"\"\"Subtract instead.\"\"\"
    return graph.op.Sub(x, w)
"""


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
        assert ended.code == 0
        assert all(f"{path}: done, 3 -> 1 node" in ended.err for path in models)
    assert sorted(os.listdir(folder)) == ["a.onnx", "b.onnx", "c.onnx"]
    for path in models:
        made = onnx.load(folder / path.name)
        assert [node.op_type for node in made.graph.node] == ["Add"]
    assert "3 models: 3 done" in ended.out


def test_a_single_model_can_be_written_into_a_folder(cli: Cli, small: Path) -> None:
    assert cli("optimize", small, "--out-dir", small.parent / "out").code == 0
    assert os.listdir(small.parent / "out") == ["small.onnx"]


def test_a_model_that_fails_does_not_stop_the_others(cli: Cli, models: list[Path]) -> None:
    folder = models[0].parent.parent / "out"
    models[0].write_bytes(b"no model")
    ended = cli("optimize", *models, "--out-dir", folder)
    assert ended.code == 1
    assert sorted(os.listdir(folder)) == ["b.onnx", "c.onnx"]
    assert f"{models[0]}: failed: {models[0]} is not an ONNX model" in ended.err
    assert "3 models: 2 done, 1 failed" in ended.out


def test_a_missing_model_is_found_before_any_work(cli: Cli, models: list[Path]) -> None:
    folder = models[0].parent.parent / "out"
    models[1].unlink()
    ended = cli("optimize", *models, "--out-dir", folder)
    assert ended.code == 1
    assert f"cannot read {str(models[1])!r}: no such file" in ended.err
    assert not folder.exists()


def test_the_exit_code_is_that_of_the_first_failure(cli: Cli, models: list[Path]) -> None:
    folder = models[0].parent.parent / "out"
    models[2].write_bytes(b"no model")
    ended = cli("optimize", *models, "--out-dir", folder, "--expect", "Identity>=1", "--json")
    assert ended.code == 4
    codes = {line["source"]: line["exit_code"] for line in map(json.loads, ended.out.splitlines())}
    assert [codes[str(path)] for path in models] == [4, 4, 1]
    assert os.listdir(folder) == []


def test_json_has_a_line_for_each_model(cli: Cli, models: list[Path]) -> None:
    ended = cli("optimize", *models, "--out-dir", models[0].parent / "out", "--json")
    assert {json.loads(line)["source"] for line in ended.out.splitlines()} == set(map(str, models))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-o", "x.onnx"], "-o names one file"),
        (["--trace", "x.json"], "--trace is for one model, not a batch"),
        (["--dump", "x"], "--dump is for one model, not a batch"),
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
    assert "c.onnx' is an ONNX model and not an earlier result" in ended.err
    assert (folder / "c.onnx").read_bytes() != (folder / "a.onnx").read_bytes()
    assert cli("optimize", *models, "--out-dir", models[0].parent).code == 2


def test_two_models_of_one_name_are_an_error(cli: Cli, models: list[Path], small: Path) -> None:
    other = small.rename(small.with_name("a.onnx"))
    ended = cli("optimize", models[0], other, "--out-dir", small.parent / "out")
    assert ended.code == 2
    assert "would both be written to" in ended.err


def test_one_model_takes_all_options_of_a_single_run(cli: Cli, small: Path) -> None:
    folder, dump = small.parent / "out", small.parent / "dump"
    ended = cli("optimize", small, "--out-dir", folder, "--dump", dump, "--json")
    assert (ended.code, json.loads(ended.out)["input"]) == (0, str(small))
    assert os.listdir(folder) == ["small.onnx"]
    assert dump.is_dir()


def test_reproducers_are_in_a_folder_for_each_model(cli: Cli, models: list[Path]) -> None:
    folder, bundles = models[0].parent.parent / "out", models[0].parent.parent / "bundles"
    own = models[0].with_name("own.py")
    own.write_text(WRONG)
    given = ("--load", own, "--passes", "wrong", "--verify", "--reproducer", bundles)
    assert cli("optimize", *models[:2], "--out-dir", folder, *given).code == 3
    assert sorted(os.listdir(bundles)) == ["a.onnx", "b.onnx"]


def test_the_pipeline_is_printed_once(cli: Cli, models: list[Path]) -> None:
    folder = models[0].parent.parent / "out"
    ended = cli("optimize", *models, "--out-dir", folder, "--print-pipeline")
    assert ended.code == 0
    assert ended.out == cli("optimize", models[0], "--print-pipeline").out
    assert not folder.exists()


def test_a_dry_run_writes_nothing(cli: Cli, models: list[Path]) -> None:
    folder = models[0].parent.parent / "out"
    assert cli("optimize", *models, "--out-dir", folder, "--dry-run").code == 0
    assert not folder.exists()
