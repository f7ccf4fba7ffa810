"""The command as a process: imports, pipes, signals, memory."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

import tiered
from tests.cli.conftest import SMALL
from tiered.testing import parse

ROOT = Path(tiered.__file__).parent.parent
HEAVY = ("onnx", "numpy", "networkx", "onnxruntime")

SLOW_PASS = """
import sys, time
from tiered import PassContext, Model, module_pass, register
from tiered.cli import main

@module_pass(opt_level=0)
def wait(model: Model, ctx: PassContext) -> None:
    \"\"\"Wait.\"\"\"
    print("waiting", flush=True)
    time.sleep(600)

register(wait)
sys.exit(main(sys.argv[1:]))
"""


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""}


def tiered_process(
    *tokens: str | Path,
    stdout: int = subprocess.PIPE,
    preexec: Callable[[], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tiered", *map(str, tokens)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        timeout=300,
        preexec_fn=preexec,
        check=False,
    )


@pytest.mark.parametrize(
    "tokens",
    [["--help"], ["--version"], ["optimize", "--help"], ["quantize", "--help"], ["optimise"]],
)
def test_what_needs_no_model_loads_nothing_heavy(tokens: list[str]) -> None:
    program = (
        "import sys; from tiered.cli import main; main(sys.argv[1:]);"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *tokens],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=300,
        check=True,
    )
    assert ended.stdout.endswith("[]\n")


def test_it_runs_as_a_module_and_is_quiet_in_a_pipe(small: Path) -> None:
    out = small.with_name("out.onnx")
    ended = tiered_process("optimize", small, out, "--verify")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "\x1b" not in ended.stdout
    assert out.exists()


@pytest.mark.parametrize("code", [1, 2])
def test_the_exit_code_is_the_process_s(small: Path, code: int) -> None:
    tokens = ["nothing.onnx", "--dry-run"] if code == 1 else [small]
    assert tiered_process("optimize", *tokens).returncode == code


def test_a_reader_that_leaves_early_is_no_error(small: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        ended = tiered_process("optimize", small, small.with_name("out.onnx"), stdout=write)
    finally:
        os.close(write)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert small.with_name("out.onnx").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_results_that_cannot_be_written_are_an_error(small: Path) -> None:
    with open("/dev/full", "w") as full:
        ended = tiered_process("inspect", small, stdout=full.fileno())
    assert ended.returncode == 1
    assert "no space left" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_it_works_with_stdout_closed(small: Path) -> None:
    ended = tiered_process(
        *("optimize", small, small.with_name("out.onnx")), preexec=lambda: os.close(1)
    )
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(small: Path, number: signal.Signals) -> None:
    out = small.with_name("out.onnx")
    out.write_bytes(b"older")
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_PASS, "optimize", small, out, "--passes", "wait"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(number)
    _, said = process.communicate(timeout=300)
    assert (process.returncode, said) == (130, "tiered: interrupted\n")
    assert sorted(os.listdir(small.parent)) == ["out.onnx", "small.onnx"]
    assert out.read_bytes() == b"older"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space")
def test_a_file_that_does_not_fit_into_memory_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "huge.onnx"
    with open(path, "wb") as file:
        file.truncate(6 << 30)  # sparse: it takes no space
    limit = 2 << 30
    ended = tiered_process(
        *("optimize", path, tmp_path / "out.onnx"),
        preexec=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("tiered: error: ")
    assert "huge.onnx" in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == ["huge.onnx"]


def test_a_model_that_is_nested_deeply_is_an_error_or_done(tmp_path: Path) -> None:
    text = "r0 = Relu(x)"
    for depth in range(28):
        branch = f"t{depth} () => (float[2] r{depth}) {{ {text} }}"
        other = f"e{depth} () => (float[2] s{depth}) {{ s{depth} = Neg(x) }}"
        text = f"r{depth + 1} = If (c) <then_branch = {branch}, else_branch = {other}>"
    path = tmp_path / "deep.onnx"
    onnx.save(parse(f"(float[2] x, bool c) => (float[2] r28) {{ {text} }}"), path)
    ended = tiered_process("optimize", path, tmp_path / "out.onnx")
    assert ended.returncode in (0, 1)
    assert "Traceback" not in ended.stderr


def test_names_that_the_terminal_cannot_show_are_escaped(small: Path) -> None:
    model = parse(SMALL)
    model.graph.node[1].name = "层"
    odd = small.with_name("层.onnx")
    onnx.save(model, odd)
    ended = subprocess.run(
        [sys.executable, "-m", "tiered", "optimize", odd, "--dry-run", "-v"],
        capture_output=True,
        env={**environment(), "PYTHONIOENCODING": "ascii"},
        timeout=300,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert rb"\u5c42.onnx" in ended.stdout
