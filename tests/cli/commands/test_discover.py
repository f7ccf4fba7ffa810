"""`tiered discover`, and `tiered new --from`."""

import json
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tiered.testing import parse

LEVEL = ("--opt-level", "1")
"""Where no pass knows what is found."""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    onnx.save(parse("(float[4,6] x) => (float[4,6] y) { a = Round(x)  y = Floor(a) }"), path)
    return path


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("discover")


def test_a_finding_is_printed(cli: Cli, model: Path) -> None:
    ended = cli("discover", model, *LEVEL)
    assert ended.code == 0
    assert "0: Floor(Round(x0))  =>  Round(x0)  (1 place, 1 node fewer, equal bit for bit)" in (
        ended.out
    )


def test_kinds_that_were_not_searched_are_named(cli: Cli, model: Path) -> None:
    ended = cli("discover", model, *LEVEL, "--most-kinds", "1")
    assert "not searched (see --most-kinds)" in ended.out


def test_it_is_applied_once_and_certified(cli: Cli, model: Path) -> None:
    out = model.with_name("out.onnx")
    ended = cli("discover", model, *LEVEL, "--apply", out)
    assert ended.code == 0
    assert "1 subgraph replaced, 2 to 1 nodes, certified" in " ".join(ended.out.split())
    assert [node.op_type for node in onnx.load(out).graph.node] == ["Round"]


def test_nothing_to_apply_is_an_error(cli: Cli, model: Path) -> None:
    onnx.save(parse("(float[4] x) => (float[4] y) { y = Exp(x) }"), model)
    out = model.with_name("out.onnx")
    assert cli("discover", model, *LEVEL, "--apply", out).code == 4
    assert not out.exists()
    assert "nothing was found" in cli("discover", model, *LEVEL).out


def test_a_finding_becomes_a_pass_and_its_test(cli: Cli, model: Path, tmp_path: Path) -> None:
    found = tmp_path / "found.json"
    record = json.loads(cli("discover", model, *LEVEL, "--json").out)
    assert sorted(record) == [
        *("applied", "findings", "kinds", "left", "level", "model", "nodes", "skipped"),
        "subgraphs",
    ]
    found.write_text(json.dumps(record))
    (tmp_path / "tiered" / "function_passes").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    root = ("--root", tmp_path, "--from")
    assert cli("new", "arithmetic/fuse_round", *root, f"{found}#0").code == 0
    code = (tmp_path / "tiered/function_passes/arithmetic/fuse_round.py").read_text()
    assert "@rewrite(op.Floor(op.Round(var.x0)), opt_level=None)" in code
    assert cli("new", "arithmetic/fuse_other", *root, f"{found}#1").code == 2
    assert cli("new", "arithmetic/fuse_other", *root, model).code != 0
    assert cli("new", "arithmetic/fuse_other", *root, found, "--kind", "module").code == 2
