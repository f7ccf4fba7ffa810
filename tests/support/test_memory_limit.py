import io
import sys
from pathlib import Path

import psutil
import pytest

from tiered import Model
from tiered.cli import main
from tiered.support import memory_limit
from tiered.support.errors import MemoryLimitError
from tiered.support.memory_limit import check_memory, limited, limited_peak
from tiered.testing import parse


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return what the process is said to hold, as the only element."""
    now = [100]
    monkeypatch.setattr(memory_limit, "held_by", lambda: now[0])
    return now


def test_what_is_about_to_be_taken_counts(held: list[int]) -> None:
    with limited(150):
        check_memory(50)
        with pytest.raises(MemoryLimitError, match="the run needs "):
            check_memory(51)
    assert limited_peak() == 100


def test_a_peak_counts_after_it(held: list[int]) -> None:
    def run() -> None:
        with limited(150):
            held[0] = 200
            with pytest.raises(MemoryLimitError):
                check_memory()
            held[0] = 100

    with pytest.raises(MemoryLimitError):
        run()
    assert limited_peak() == 200


def test_without_a_limit_nothing_is_measured(held: list[int]) -> None:
    held[0] = 1 << 60
    with limited(None):
        check_memory(1 << 60)
    assert limited_peak() is None


def test_a_model_that_exceeds_it_when_written_leaves_no_file(
    held: list[int], tmp_path: Path
) -> None:
    model = Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Neg(x) }"))

    def run() -> None:
        with limited(150):
            held[0] = 200
            model.save(tmp_path / "out.onnx")

    with pytest.raises(MemoryLimitError):
        run()
    assert not list(tmp_path.iterdir())


def test_a_run_without_a_limit_forgets_an_earlier_peak(
    held: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with limited(150):
        check_memory()
    assert limited_peak() == 100
    path = tmp_path / "m.onnx"
    Model.from_proto(parse("(float[2] x) => (float[2] y) { y = Neg(x) }")).save(path)
    assert main(["optimize", str(path), "--dry-run", "--json"]) == 0
    assert limited_peak() is None
    assert '"peak_memory"' in capsys.readouterr().out


def test_linux_counts_what_is_in_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = b"VmRSS:  9 kB\nRssAnon:  2 kB\nRssFile:  4 kB\nRssShmem:  3 kB\n"
    opened: list[str] = []

    def status(path: str, mode: str) -> io.BytesIO:
        opened.append(path)
        return io.BytesIO(lines)

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(memory_limit, "open", status, raising=False)
    assert [memory_limit.held_by(), memory_limit.held_by(7)] == [5 * 1024] * 2
    assert opened == ["/proc/self/status", "/proc/7/status"]


@pytest.mark.parametrize("platform", ["linux", "win32", "darwin"])
def test_each_system_says_what_a_process_holds(
    monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    if platform == "linux" != sys.platform:
        pytest.skip("Linux alone has /proc")
    monkeypatch.setattr(sys, "platform", platform)
    assert 2**20 < memory_limit.held_by() < 2**40
    with psutil.Popen([sys.executable, "-c", ""]) as ended:
        pass
    assert memory_limit.held_by(ended.pid) == 0
