"""The mutants that `make mutants` tries are changes that a test can notice; it finds that test."""

import builtins
import os
import signal
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.mutants import every, nearest, schemata, sites, trial
from tests.mutants.__main__ import Trials, summary
from tests.mutants.sites import Mutant

SOURCE = """
def chosen(a, b, c):
    if a < b and c:
        return True
    return a if b in c else 3
"""
EXPECTED = [
    "if False:", "if (c):", "if (a < b):", "if (a <= b) and c:", "return False",
    "return a if False else 3", "return a if (b not in c) else 3", "return a if b in c else (4)",
]  # fmt: skip

WITHOUT_EFFECT = """
if TYPE_CHECKING:
    n = 1
class Sized(Protocol[T]):
    def size(self, at: int = 0) -> int: ...
@lru_cache(maxsize=16)
def kept(a: Literal[1], *, b: "int" = c) -> Literal[2]: ...
if __name__ == "__main__":
    n = 2
"""

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="a new process takes seconds")


def _changed(source: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(sites, "ROOT", folder)
    module = folder / "module.py"
    module.write_text(source, encoding="utf-8")
    made = [each.applied_to(source.encode()).decode() for each in sites.mutants_of(module)]
    return [
        line.strip()
        for text in made
        for line, was in zip(text.splitlines(), source.splitlines(), strict=True)
        if line != was
    ]


def test_each_mutant_changes_one_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sorted(_changed(SOURCE, tmp_path, monkeypatch)) == sorted(EXPECTED)


def _chosen(source: str) -> Any:
    space: dict[str, Any] = {}
    exec(source, space)
    return space["chosen"]


def _results(chosen: Callable[..., Any]) -> list[Any]:
    return [chosen(*each) for each in (([0], [0], []), ([0], [1], []), ([0], [1], [[1]]))]


def test_a_switch_turns_each_mutant_on_and_tells_which_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sites, "ROOT", tmp_path)
    (tmp_path / "module.py").write_text(SOURCE, encoding="utf-8")
    code, switched = schemata.compiled(SOURCE.encode(), "module.py", "module.py")
    mutants = list(sites.mutants_of(tmp_path / "module.py"))
    assert switched == set(range(len(mutants)))
    switch, space = schemata.Switch(), dict[str, Any]()
    monkeypatch.setattr(builtins, "_mutant_switch_", switch, raising=False)
    exec(code, space)
    assert _results(space["chosen"]) == _results(_chosen(SOURCE)) == [3, 3, True]
    for at, mutant in enumerate(mutants):
        made = _chosen(mutant.applied_to(SOURCE.encode()).decode())
        switch.on = ("module.py", at)
        assert _results(space["chosen"]) == _results(made), mutant.new
    switch.on, switch.told = None, set()
    assert space["chosen"]([0], [0], []) == 3
    told = {mutants[at].new for _, at in switch.told}
    assert told == {"(a <= b)", "(c)", "(b not in c)", "(4)"}
    switch.compares, switch.told = False, set()
    assert space["chosen"]([0], [0], []) == 3
    assert told < {mutants[at].new for _, at in switch.told}


@needs_fork
def test_what_ends_by_a_signal_has_no_result() -> None:
    assert every.in_fork(lambda: 3) == 3
    assert every.in_fork(lambda: os.kill(os.getpid(), signal.SIGKILL)) is None


def test_what_no_run_evaluates_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _changed(WITHOUT_EFFECT, tmp_path, monkeypatch) == []


def test_a_seed_chooses_the_same_mutants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "ROOT", tmp_path)
    (tmp_path / "tiered").mkdir()
    (tmp_path / "tiered" / "module.py").write_text(SOURCE, encoding="utf-8")
    assert sites.chosen(4, 0) == sites.chosen(4, 0) != sites.chosen(4, 1)
    assert len(sites.chosen(99, 0)) == len(EXPECTED)
    assert sites.chosen(4, 0, "tiered/module.py") == sites.chosen(4, 0)
    assert sites.chosen(4, 0, "tiered/room") == []


def test_the_nearest_tests_come_first() -> None:
    mutant = Mutant("tiered/analysis/layout/sizes.py", 1, 0, 0, "", ("static_elements",))
    near = list(nearest.tests_for(mutant, 3, sites.ROOT, room=True))
    assert near[0] == ("file", ["tests/analysis/layout/test_sizes.py"])
    assert [each for each, _ in near] == ["file", "folder", "room"]
    assert len(near[1][1]) == 3
    assert "tests/analysis/layout/test_sizes.py" not in near[1][1]
    assert {str(Path(each).parent) for each in near[1][1]} == {"tests/analysis/layout"}
    assert {str(Path(each).parent) for each in near[2][1]} == {"tests/analysis"}
    assert list(nearest.tests_for(mutant, 3, sites.ROOT, room=False)) == near[:2]


TREE = {
    "tiered/__init__.py": "",
    "tiered/room/__init__.py": "",
    "tiered/room/inner/module.py": "def is_small(a):\n    return a < 3\n",
    "tests/room/test_module.py": """
        from tiered.room.inner.module import is_small
        def test_two():
            assert is_small(2)
        def test_boundary():
            assert not is_small(3)
        """,
    "tests/room/test_another.py": """
        import tiered.room
        def test_never():
            assert False
        """,
    "tests/room/test_sleeps.py": """
        import time
        def test_sleeps():
            time.sleep(60)
        """,
    "tests/room/test_loops.py": """
        def test_loops():
            while True: pass
        """,
    "tests/room/test_dies.py": """
        import os, signal
        def test_dies():
            os.kill(os.getpid(), signal.SIGSEGV)
        """,
    "tests/room/test_import.py": "import nothing_of_this_name",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy with a module in a folder of two tests: one passes, one never does."""
    for name, text in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return tmp_path


def _mutant(old: str, new: str) -> Mutant:
    at = TREE["tiered/room/inner/module.py"].index(old)
    return Mutant("tiered/room/inner/module.py", 2, at, at + len(old), new, ("is_small",))


@needs_fork
def test_a_mutant_dies_by_the_test_that_notices_and_leaves_the_copy_as_it_was(tree: Path) -> None:
    trials = Trials(tree, 2)
    before = (tree / "tiered/room/inner/module.py").stat().st_mtime
    assert trials.fate(_mutant("a < 3", "(a <= 3)")) == {
        "near": "folder",
        "test": "tests/room/test_module.py::test_boundary",
        "how": "fails",
    }
    assert (tree / "tiered/room/inner/module.py").read_text() == TREE["tiered/room/inner/module.py"]
    assert (tree / "tiered/room/inner/module.py").stat().st_mtime == before
    assert trials.broken == set()


@needs_fork
def test_a_test_that_fails_without_the_change_kills_nothing(tree: Path) -> None:
    trials = Trials(tree, 2)
    assert trials.fate(_mutant("a < 3", "(3 > a)")) == {"near": "none"}
    assert trials.broken == {"tests/room/test_another.py::test_never"}


@needs_fork
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("loops", ("hangs", "tests/room/test_loops.py::test_loops")),
        ("dies", ("crashes", "tests/room/test_dies.py::test_dies")),
        ("import", ("fails", "tests/room/test_import.py")),
        ("module", ("passes", "")),
    ],
)
def test_a_trial_ends_whatever_its_tests_do(
    name: str, expected: tuple[str, str], tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "loops":
        monkeypatch.setattr(trial, "CPU_SECONDS", 1)
    assert trial.run([f"tests/room/test_{name}.py"], tree) == expected


@needs_fork
def test_a_trial_that_waits_without_end_hangs(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "SILENT_SECONDS", 0.2)
    assert trial.run(["tests/room/test_sleeps.py"], tree).word == "hangs"


@needs_fork
def test_an_interrupt_ends_the_trial_and_its_process(tree: Path) -> None:
    process = tree / "process"
    (tree / "tests/room/test_waits.py").write_text(
        "import os, pathlib, time\n"
        "def test_waits():\n"
        f"    pathlib.Path({str(process)!r}).write_text(str(os.getpid()))\n"
        "    time.sleep(60)\n"
    )

    def interrupt() -> None:
        while not (process.exists() and process.read_text()):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        trial.run(["tests/room/test_waits.py"], tree)
    with pytest.raises(ProcessLookupError):
        os.kill(int(process.read_text()), 0)


@needs_fork
def test_no_test_begins_after_the_time_of_all(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "ALL_SECONDS", 0)
    assert trial.run(["tests/room/test_another.py"], tree) == ("passes", "")


def test_the_table_counts_the_rooms() -> None:
    table = summary({
        "tiered/graph/a.py:1+0 1 -> (2)": {"near": "file"},
        "tiered/graph/b.py:1+0 1 -> (2)": {"near": "none"},
        "tiered/graph/c.py:1+0 1 -> (2)": {"near": "room"},
        "tiered/extensions/memory/c.py:1+0 1 -> (2)": {"near": "folder"},
    })  # fmt: skip
    columns = [list(column.cells) for column in table.columns]
    assert columns[0] == ["extensions/memory", "graph", "all"]
    assert columns[1] == ["1", "3", "4"]
    assert columns[-1] == ["100.0 %", "33.3 %", "50.0 %"]
