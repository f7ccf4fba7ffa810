from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx
import pytest

from tests.cli.transcript_files import assert_transcript
from tests.fake_worker import fake_worker  # noqa: F401 - a fixture
from tests.registered import passes_forgotten
from tiered.cli import main
from tiered.extensions.fleet import local
from tiered.testing import parse

SMALL = """(float[n,2] x) => (float[n,2] y) <float[2] w = {1,2}, float[2] unused = {3,4}> {
    a = Identity(x)  b = Add(a, w)  y = Identity(b) }"""


@dataclass(frozen=True)
class Ended:
    """A command that ended: its exit code and what it said."""

    code: int
    out: str
    err: str


Cli = Callable[..., Ended]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Cli]:
    """Run a command line in this process, as if its output were piped; forget what it loads.

    A batch has one process, wherever the tests run, unless a command asks for more.
    """
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(local, "processors", lambda: 1)

    def run(*tokens: str | Path) -> Ended:
        capsys.readouterr()
        code = main([str(token) for token in tokens])
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    with passes_forgotten():
        yield run


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return the file of a small model with something to remove, alone in its folder."""
    path = tmp_path / "small.onnx"
    onnx.save(parse(SMALL), path)
    return path


@pytest.fixture
def transcript(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Callable[[str], None]:
    """Return what holds a transcript of the folder beside the test, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda name: assert_transcript(cli, request.path.parent / "transcripts" / f"{name}.txt")
