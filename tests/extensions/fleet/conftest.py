"""Models for batches, and a pass that does what no pass should."""

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from tiered.testing import parse

TEXT = """<ir_version: 10, opset_import: ["" : 21]>
{name} (float[n,2] x) => (float[n,2] y) <float[2] w = {{{number},2}}, float[2] unused = {{3,4}}> {{
    a = Identity(x)  b = Add(a, w)  y = Identity(b) }}"""

TROUBLE = '''
"""Ends, blocks or fills the process for models of certain names."""
import os, time
from tiered import module_pass

@module_pass(opt_level=0)
def own_trouble(model, ctx):
    """Do what the name of the graph says."""
    match model.main.name:
        case "crash":
            os.kill(os.getpid(), 11)
        case "hang":
            time.sleep(600)
        case "memory":
            kept = [bytearray(1 << 20) for _ in range(4096)]
        case "large":
            kept = [bytearray(b"x" * (1 << 20)) for _ in range(150)]
            time.sleep(0.5)
        case "raise":
            raise ZeroDivisionError("on purpose")

'''

Make = Callable[..., Path]


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Return a folder for models."""
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


@pytest.fixture
def make(models: Path) -> Make:
    """Return a function that writes a small model into the folder."""

    def write(name: str, graph: str = "g", number: int = 1) -> Path:
        path = models / f"{name}.onnx"
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(parse(TEXT.format(name=graph, number=number)), path)
        return path

    return write


@pytest.fixture
def trouble(tmp_path: Path) -> tuple[str, ...]:
    """Return the options that load the pass and run it first."""
    path = tmp_path / "trouble.py"
    path.write_text(TROUBLE)
    return f"--load={path}", "--passes=own_trouble,eliminate_identity"
