import json
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tests.debug.wrong_passes import WRONG
from tests.small import failing, registered
from tiered.testing import parse

SWAP = next(case for case in WRONG if case.name == "swap_operands_of_sub")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "m.onnx"
    onnx.save(parse(SWAP.model), path)
    with registered(SWAP.pass_):
        yield path


def test_the_wrong_rewrite_is_printed_with_its_nodes_and_ends_with_3(cli: Cli, file: Path) -> None:
    ended = cli("bisect", file, "--passes", "eliminate_identity,swap_operands_of_sub")
    assert ended.code == 3
    assert "swap_operands_of_sub, rewrite #1 of 1, at node 's'" in ended.out
    assert "- [s] b = Sub (a, z)" in ended.out
    assert "+ [s] b = Sub (z, a)" in ended.out
    assert "run 1: the first 1 rewrites are wrong" in ended.err


def test_a_right_pipeline_ends_with_0(cli: Cli, file: Path) -> None:
    ended = cli("bisect", file, "-O3")
    assert (ended.code, ended.out) == (0, "nothing is wrong\n")


def test_the_json_says_the_same(cli: Cli, file: Path) -> None:
    ended = cli("bisect", file, "--passes", "swap_operands_of_sub", "--json")
    said = json.loads(ended.out)
    assert (said["wrong"], said["pass"], said["node"]) == (True, "swap_operands_of_sub", "s")
    assert json.loads(cli("bisect", file, "--json").out) == {"wrong": False}


def test_a_level_that_is_none_is_a_usage_error(cli: Cli, file: Path) -> None:
    assert cli("bisect", file, "-O9").code == 2


def test_a_bundle_is_written_and_replayed(cli: Cli, file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    ended = cli("bisect", file, "--passes", "swap_operands_of_sub", "--reproducer", folder)
    assert f"tiered replay {folder}" in ended.out
    shown = cli("replay", folder)
    assert shown.code == 3
    assert "swap_operands_of_sub is wrong, at node 's'" in shown.err
    assert "+ [s] b = Sub (z, a)" in shown.err


def test_a_failed_verification_writes_the_bundle(cli: Cli, file: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "bundle", tmp_path / "out.onnx"
    ended = cli(
        *("optimize", file, out, "--passes", "swap_operands_of_sub", "--verify"),
        *("--reproducer", folder),
    )
    assert ended.code == 3
    assert not out.exists()
    assert f"reproduce  tiered replay {folder}" in ended.err
    assert cli("replay", folder).code == 3


def test_a_pass_that_raises_writes_the_bundle(cli: Cli, file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    with registered(failing(ValueError("no"))):
        ended = cli(
            *("optimize", file, "--dry-run", "--passes", "failing", "--reproducer", folder)
        )
        assert ended.code == 5
        assert "reproduce  tiered replay" in ended.err
        assert "ValueError: no" in cli("replay", folder).err


def test_what_is_no_bundle_is_a_model_error(cli: Cli, tmp_path: Path) -> None:
    assert cli("replay", tmp_path).code == 1


def test_a_mended_pass_ends_with_0(cli: Cli, file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    cli("bisect", file, "--passes", "swap_operands_of_sub", "--reproducer", folder)
    (folder / "pipeline.txt").write_text("eliminate_identity\n")
    said = json.loads((folder / "failure.json").read_text())
    said["pass_text"] = "eliminate_identity"
    (folder / "failure.json").write_text(json.dumps(said))
    ended = cli("replay", folder)
    assert ended.code == 0
    assert "does not fail any more" in ended.out
