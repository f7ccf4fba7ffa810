"""Where weights go, and what a process that is stopped at any moment leaves behind."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.cli.conftest import Cli
from tiered.testing import parse

ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("TIERED_LONG", "2")) * 2
"""How often a process is killed: 200 times with TIERED_LONG=100."""


def weighty(folder: Path, seed: int = 0, megabytes: int = 1) -> Path:
    """Save a model of so many megabytes, with something to remove."""
    proto = parse(
        f"(float[{megabytes * 512},512] x) => (float[{megabytes * 512},512] y)"
        " { a = Identity(x) y = Add(a, w) }"
    )
    one = np.random.default_rng(seed).standard_normal((512, 512), dtype=np.float32)
    array = np.tile(one, (megabytes, 1))
    proto.graph.initializer.append(numpy_helper.from_array(array, "w"))
    path = folder / f"m{seed}.onnx"
    onnx.save(proto, path)
    return path


def files(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_weights_go_where_they_are_asked_to_go(cli: Cli, tmp_path: Path) -> None:
    source = weighty(tmp_path)
    out, single, shared = (tmp_path / name for name in ("out.onnx", "single.onnx", "shared.onnx"))
    assert cli("optimize", source, out, "--external-data").code == 0
    assert files(tmp_path) == ["m0.onnx", "out.onnx", "out.onnx.data"]
    assert cli("optimize", source, out, "--external-data=2MiB").code == 0
    assert out.stat().st_size > 1 << 20
    assert cli("optimize", source, out, "--external-data", "-q").code == 0
    assert cli("optimize", out, single, "--single-file").code == 0
    assert cli("optimize", out, shared, "--share-weights").code == 0
    assert {"single.onnx.data", "shared.onnx.data"}.isdisjoint(files(tmp_path))
    expected = onnx.load(source).graph.initializer[0]
    for path in (out, single, shared):
        assert onnx.load(path).graph.initializer[0].raw_data == expected.raw_data


def test_weights_may_be_in_a_file_of_safetensors(cli: Cli, tmp_path: Path) -> None:
    source, out = weighty(tmp_path), tmp_path / "out.onnx"
    assert cli("optimize", source, out, "--safetensors").code == 0
    assert files(tmp_path) == ["m0.onnx", "out.onnx", "out.onnx.safetensors"]
    assert cli("optimize", source, out, "--safetensors", "--external-data=2MiB").code == 0
    assert out.stat().st_size > 1 << 20
    assert cli("optimize", source, out, "--safetensors").code == 0
    expected = onnx.load(source).graph.initializer[0]
    assert onnx.load(out).graph.initializer[0].raw_data == expected.raw_data
    ended = cli("optimize", out, out.with_name("out.onnx.safetensors"), "--force")
    assert ended.code == 2
    assert "would overwrite" in ended.err


@pytest.mark.parametrize(
    "tokens",
    [
        ["--external-data", "--single-file"],
        ["--safetensors", "--single-file"],
        ["--single-file", "--share-weights"],
        ["--external-data=lots"],
    ],
)
def test_what_cannot_be_both_is_a_usage_error(cli: Cli, tmp_path: Path, tokens: list[str]) -> None:
    ended = cli("optimize", weighty(tmp_path), tmp_path / "o.onnx", *tokens)
    assert ended.code == 2, ended.err


def test_too_much_for_one_file_is_an_error_before_any_work(cli: Cli, tmp_path: Path) -> None:
    proto = parse("(float[2] x) => (float[2] y) { y = Relu(x) }")
    tensor = proto.graph.initializer.add(name="w", data_type=1, dims=[1 << 30])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    (tmp_path / "w.bin").touch()
    os.truncate(tmp_path / "w.bin", 1 << 32)  # a file with nothing in it takes no room
    onnx.save(proto, tmp_path / "m.onnx")
    ended = cli("optimize", tmp_path / "m.onnx", tmp_path / "o.onnx", "--single-file")
    assert ended.code == 1
    assert "4,294,967,296 bytes of weights, and a model file holds at most 2 GiB" in ended.err
    assert files(tmp_path) == ["m.onnx", "w.bin"]


def _started(source: Path, out: Path, *options: str) -> subprocess.Popen[bytes]:
    code = "import sys; from tiered.cli import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.Popen(
        [sys.executable, "-c", code, "optimize", "-q", str(source), str(out), *options],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_kill_at_any_moment_leaves_the_old_model_or_the_new_one(tmp_path: Path) -> None:
    sources = [weighty(tmp_path, seed, 16) for seed in (0, 1)]
    whole = [onnx.load(path).graph.initializer[0].raw_data for path in sources]
    out = tmp_path / "out.onnx"
    began = time.monotonic()
    assert _started(sources[0], out, "--external-data").wait() == 0
    usual = time.monotonic() - began
    source = random.Random(0)
    for turn in range(KILLS):
        for path in tmp_path.glob("out.onnx*") if source.random() < 0.3 else ():
            path.unlink()
        had_one = out.exists()
        options = [["--external-data"], [], ["--external-data", "-O3"]][turn % 3]
        process = _started(sources[turn % 2], out, *options)
        time.sleep(usual * source.uniform(0.6, 1.1))
        process.send_signal(source.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)))
        process.wait()
        if had_one or out.exists():
            assert onnx.load(out).graph.initializer[0].raw_data in whole
        assert [onnx.load(path).graph.initializer[0].raw_data for path in sources] == whole
        for path in tmp_path.glob(".*"):  # what SIGKILL left
            path.unlink()


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_process_takes_its_temporary_files_along(
    tmp_path: Path, number: signal.Signals
) -> None:
    source = weighty(tmp_path, megabytes=64)
    process = _started(source, tmp_path / "out.onnx", "--external-data=1")
    while len(files(tmp_path)) < 2 and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(number)
    process.wait()
    assert process.returncode in (0, 130)
    assert not [name for name in files(tmp_path) if name.startswith(".")]


@pytest.mark.skipif(os.name != "posix", reason="quotas of POSIX")
def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    source = weighty(tmp_path, megabytes=4)
    limited = "import resource, signal, sys; from tiered.cli import main;"
    limited += "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
    limited += "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 21, 1 << 21));"
    limited += "sys.exit(main(sys.argv[1:]))"
    for options in ([], ["--external-data"]):
        ended = subprocess.run(
            [sys.executable, "-c", limited, "optimize", str(source), str(tmp_path / "o"), *options],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 1
        assert "cannot write" in ended.stderr
        assert "Traceback" not in ended.stderr
        assert files(tmp_path) == ["m0.onnx"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds what is allocated")
def test_a_run_takes_no_more_memory_than_it_may(tmp_path: Path) -> None:
    source, out = weighty(tmp_path, megabytes=64), tmp_path / "out.onnx"
    assert _started(source, out, "--max-memory=500MB").wait() == 0
    out.unlink()
    process = _started(source, out, "--max-memory=1MB")
    assert b"1,000,000 bytes are too few to run; at least 4,000,000" in process.communicate()[1]
    assert process.returncode == 2
    assert files(tmp_path) == ["m0.onnx"]


def test_a_memory_that_is_no_size_is_a_usage_error(cli: Cli, small: Path, tmp_path: Path) -> None:
    ended = cli("optimize", small, tmp_path / "o.onnx", "--max-memory=lots")
    assert ended.code == 2
    assert "--max-memory: 'lots' is not a size" in ended.err


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds what is allocated")
@pytest.mark.parametrize(
    ("words", "limit"),
    [
        *((("optimize",), limit) for limit in (5, 20, 200, 2000)),
        *((("convert", "--to=bf16", "--no-measure"), limit) for limit in (20, 200)),
    ],
)
def test_the_limit_and_the_peak_are_one_figure(
    tmp_path: Path, words: Sequence[str], limit: int
) -> None:
    source, out = weighty(tmp_path, megabytes=4), tmp_path / "out.onnx"
    command = (*words, str(source), str(out), "--json", f"--max-memory={limit}MB")
    ended = subprocess.run(
        [sys.executable, "-m", "tiered", *command],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == (1 if limit < 200 else 0)
    if ended.returncode:
        assert f"--max-memory (memory.max) allows {limit}.0 MB" in ended.stderr
        assert files(tmp_path) == ["m0.onnx"]
    else:
        assert json.loads(ended.stdout)["peak_memory"] <= limit * 1_000_000


@pytest.mark.skipif(os.name != "posix", reason="two processes and a lock of POSIX")
def test_two_processes_that_write_one_file_leave_the_work_of_one(tmp_path: Path) -> None:
    sources = [weighty(tmp_path, seed, 16) for seed in (0, 1)]
    whole = [onnx.load(path).graph.initializer[0].raw_data for path in sources]
    out = tmp_path / "out.onnx"
    running = [_started(source, out, "--external-data", "--force") for source in sources]
    assert [process.wait() for process in running] == [0, 0]
    assert onnx.load(out).graph.initializer[0].raw_data in whole
    shutil.rmtree(tmp_path)


def test_sharing_weights_says_when_it_copies(cli: Cli, tmp_path: Path) -> None:
    source, external = weighty(tmp_path), tmp_path / "external.onnx"
    ended = cli("optimize", source, tmp_path / "o.onnx", "--share-weights")
    assert "note: --share-weights: the model has no external weights" in ended.err
    assert cli("optimize", source, external, "--external-data", "-q").code == 0
    shared = cli("optimize", external, tmp_path / "shared.onnx", "--share-weights")
    assert (shared.code, shared.err) == (0, "")
    (tmp_path / "other").mkdir()
    out = tmp_path / "other" / "out.onnx"
    copied = cli("optimize", external, out, "--share-weights")
    assert "note: --share-weights: 1 tensor (" in copied.err
    assert "copied to out.onnx.data" in copied.err
    assert (tmp_path / "other" / "out.onnx.data").exists()
    assert cli("optimize", external, out, "--share-weights", "-q", "--force").err == ""
    assert cli("optimize", external, out, "--force").err == ""
