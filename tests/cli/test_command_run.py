"""Processes that run one command line: what they load, and how they end."""

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from tests.cli.test_main import environment


def _modules_of(*tokens: str | Path) -> set[str]:
    program = (
        "import sys, tiered.cli.command_run as r; code, own = r.run(sys.argv[1:]); "
        "print(code, own, *sys.modules)"
    )
    command = [sys.executable, "-c", program, *map(str, tokens)]
    ended = subprocess.run(
        command, capture_output=True, text=True, env=environment(), timeout=300, check=True
    )
    code, own, *modules = ended.stdout.split()
    assert (code, own) == ("0", "True")
    return set(modules)


def test_a_quiet_line_does_not_load_rich(small: Path) -> None:
    modules = _modules_of("optimize", small, small.with_name("out.onnx"), "-O3", "-q")
    assert not modules & {"rich", "rich.console", "tiered.cli.line.help", "difflib", "tomllib"}


def test_a_quiet_line_loads_nothing_for_other_commands_and_targets(small: Path) -> None:
    modules = _modules_of("optimize", small, small.with_name("out.onnx"), "-O3", "-q")
    few_runs_need = {
        "logging",
        "tomllib",
        "tiered.targets.backend",
        "tiered.targets.operator_rule",
        "tiered.cli.facts",
        "tiered.graph.edits.inlining",
        "tiered.graph.edits.opset",
        "tiered.graph.edits.outline",
        "tiered.graph.edits.unroll",
        "tiered.graph.shape_inference.set_input_shapes",
        "tiered.analysis.legalization.legalization_sources",
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
