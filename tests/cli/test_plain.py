"""Plain command lines: read without cyclopts, and as cyclopts reads them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.cli.test_main import environment
from tiered.cli import app
from tiered.cli.commands import optimize
from tiered.cli.optional_values import complete
from tiered.cli.output.failures import WrongCommandLine
from tiered.cli.plain import plain_arguments

PLAIN = (
    "in.onnx out.onnx",
    "in.onnx out.onnx -O3 -q",
    "-O 4 --force in.onnx -o out.onnx",
    "in.onnx --opt-level=1 --output=out.onnx --time --statistics",
    "in.onnx out.onnx --opt-level 0 --verify --annotate",
    "in.onnx out.onnx --remarks applied,missed --limit 12 --dry-run",
    "in.onnx out.onnx --remarks=all --diff --trace t.json --external-data --strict",
    "in.onnx out.onnx --backend onnxruntime_cpu --max-memory 50% --passes a,b{x=1}",
    "in.onnx out.onnx --verify=final -v --json",
)
NOT_PLAIN = (
    "",
    "a.onnx b.onnx c.onnx",
    "a.onnx --out-dir there",
    "in.onnx out.onnx -O3 -O2",
    "in.onnx out.onnx -O three",
    "in.onnx out.onnx --limit 1.5",
    "in.onnx out.onnx -O -1",
    "in.onnx out.onnx -vq",
    "in.onnx out.onnx --quiet=true",
    "in.onnx out.onnx --no-quiet",
    "in.onnx out.onnx --disable fuse_gelu",
    "in.onnx out.onnx --config tiered.toml",
    "in.onnx out.onnx --backend",
    "in.onnx out.onnx --backend none",
    "in.onnx out.onnx --load passes.py",
    "in.onnx out.onnx --dry_run",
    "in.onnx -- out.onnx",
    "--help",
)


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the arguments of `run_optimize`, which does nothing."""
    found: list[Any] = []
    monkeypatch.setattr(optimize, "run_optimize", lambda *given: found.append(given))
    return found


@pytest.mark.parametrize("line", PLAIN)
def test_a_plain_line_is_read_as_cyclopts_reads_it(line: str, called: list[Any]) -> None:
    tokens = complete(line.split())
    read = plain_arguments(tokens)
    assert read is not None
    _, command = app.parsed(["optimize", *tokens])
    command()
    files, options, watch = read
    assert called == [(files[0], files[1] if files[1:] else None, options, watch)]


@pytest.mark.parametrize("line", NOT_PLAIN)
def test_all_else_is_left_to_cyclopts(line: str) -> None:
    assert plain_arguments(complete(line.split())) is None


def test_what_cyclopts_refuses_is_not_plain(called: list[Any]) -> None:
    for line in ("in.onnx out.onnx -O -q", "in.onnx x --wurst"):
        assert plain_arguments(line.split()) is None
        with pytest.raises(WrongCommandLine):
            app.parsed(["optimize", *line.split()])


def _modules_of(*tokens: str | Path) -> set[str]:
    program = (
        "import sys, tiered.cli.run as r; code, own = r.run(sys.argv[1:]); "
        "print(code, own, *sys.modules)"
    )
    command = [sys.executable, "-c", program, *map(str, tokens)]
    ended = subprocess.run(
        command, capture_output=True, text=True, env=environment(), timeout=300, check=True
    )
    code, own, *modules = ended.stdout.split()
    assert (code, own) == ("0", "True")
    return set(modules)


def test_a_quiet_plain_line_loads_neither_cyclopts_nor_rich(small: Path) -> None:
    modules = _modules_of("optimize", small, small.with_name("out.onnx"), "-O3", "-q")
    assert not modules & {"cyclopts", "rich", "rich.console", "tiered.cli.app"}


def test_a_quiet_plain_line_loads_nothing_for_other_commands_and_targets(small: Path) -> None:
    modules = _modules_of("optimize", small, small.with_name("out.onnx"), "-O3", "-q")
    few_runs_need = {
        "logging",
        "tomllib",
        "tiered.targets.backend",
        "tiered.targets.rules",
        "tiered.cli.facts",
        "tiered.graph.edits.inline",
        "tiered.graph.edits.opset",
        "tiered.graph.edits.outline",
        "tiered.graph.edits.unroll",
        "tiered.graph.shape_inference.set_input_shapes",
        "tiered.analysis.legalization.sources",
    }
    assert modules & few_runs_need == set()


@pytest.mark.parametrize("out", ["out.onnx", "missing/out.onnx"])
def test_a_process_that_ends_at_once_has_written_all(small: Path, out: str) -> None:
    """Its output is a pipe, in which Python buffers; exit functions run, as of `--max-memory`."""
    command = [sys.executable, "-m", "tiered", "optimize", str(small), str(small.parent / out)]
    program = f"import atexit; atexit.register(print, 'exit function'); {_PROCESS}"
    for line in (command, [sys.executable, "-c", program, *command[3:]]):
        ended = subprocess.run(
            line, capture_output=True, text=True, env=environment(), timeout=300, check=False
        )
        is_fine = out == "out.onnx"
        assert ended.returncode == (0 if is_fine else 1)
        assert ("out.onnx" in ended.stdout) is is_fine
        assert ("exit function" in ended.stdout) is (line[1] == "-c")
        assert bool(ended.stderr) is not is_fine
        if is_fine:
            onnx.load(small.parent / out)
            os.remove(small.parent / out)


_PROCESS = "from tiered.cli import process; process()"
