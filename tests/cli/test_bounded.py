"""--max-memory: each command that reads or writes a model holds no more, or ends with an error."""

import sys
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli
from tiered.cli.bounded import MemoryBound, within
from tiered.support.errors import MemoryLimitError, UsageError
from tiered.support.memory_limit import check_memory
from tiered.testing import parse

MODEL = """
(float[2,4] x) => (float[2,4] y) <float[4,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}> {
    a = MatMul(x, w) y = Relu(a) }
"""
COMMANDS = [
    "optimize M OUT",
    "convert M OUT --to fp16",
    "quantize M OUT",
    "quantize M OUT --dynamic",
    "prepare M OUT --to fp16",
    "extract M OUT --to a",
    "gradient M OUT --of y --seed ones",
    "merge M M OUT --map y=x --prefix b_",
    "split M --at a --out-dir DIR",
    "partition M OUT --backend onnxruntime_cpu",
    "inspect M",
    "check M --backend onnxruntime_cpu",
    "explain M fuse_gelu",
    "layout M",
    "memory M",
    "diff M M",
    "certify M M",
    "verify M M",
]
held = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what a process holds")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    onnx.save(parse(MODEL), tmp_path / "m.onnx")
    return tmp_path


def words(command: str, folder: Path) -> list[str]:
    places = {"M": "m.onnx", "OUT": "out.onnx", "DIR": "parts"}
    return [str(folder / places[word]) if word in places else word for word in command.split()]


@held
@pytest.mark.parametrize("command", COMMANDS)
def test_a_run_that_holds_more_is_an_error_and_writes_nothing(
    command: str, folder: Path, cli: Cli
) -> None:
    ended = cli(*words(command, folder), "--max-memory=8MB")
    assert ended.code == 1
    assert "--max-memory (memory.max) allows 8.0 MB" in ended.err
    assert [path.name for path in folder.iterdir()] == ["m.onnx"]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_size_is_an_error_before_the_file_is_read(
    command: str, folder: Path, cli: Cli
) -> None:
    (folder / "m.onnx").unlink()
    ended = cli(*words(command, folder), "--max-memory=much")
    assert ended.code == 2
    assert "--max-memory: 'much' is not a size" in ended.err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_run_that_holds_less_is_as_without(command: str, folder: Path, cli: Cli) -> None:
    assert cli(*words(command, folder), "--max-memory=100%").code == 0


def test_a_limit_that_no_run_can_keep_is_named() -> None:
    with pytest.raises(UsageError, match="3,999,999 bytes are too few to run"):
        within(3_999_999, "memory.max").__enter__()
    with pytest.raises(UsageError, match="--max-memory: 1,000 bytes are too few"):
        MemoryBound(max_memory="1KB").around().__enter__()


@held
def test_a_percentage_is_of_the_machine() -> None:
    with MemoryBound(max_memory="90%").around():
        check_memory()
        with pytest.raises(MemoryLimitError):
            check_memory(1 << 60)


def test_without_a_limit_nothing_is_checked() -> None:
    with MemoryBound().around():
        check_memory(1 << 60)
