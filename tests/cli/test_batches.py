"""Many models in one command: what a batch is given, and what it returns."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import SMALL
from tiered.cli import batches
from tiered.cli.batches import (
    BatchOptions,
    FolderOptions,
    check_batch_options,
    optimize_into_folder,
    optimized,
    run_batch,
)
from tiered.cli.shared_options import OptimizeOptions
from tiered.cli.watch import WatchOptions
from tiered.extensions import fleet
from tiered.extensions.fleet import Command, FleetOptions, Result
from tiered.runtime.worker import limits
from tiered.support.errors import ModelError, UsageError
from tiered.testing import parse


class Batch:
    """What was asked of the fleet, whose models end as they are told to."""

    def __init__(self) -> None:
        self.ends: dict[str, Any] = {}
        self.sources: Sequence[str] = ()
        self.folder = ""
        self.command = Command("check", ())
        self.options = FleetOptions()

    def run(
        self, sources: Any, folder: str, command: Command, options: FleetOptions, report: Any
    ) -> list[Result]:
        self.sources, self.folder, self.command, self.options = sources, folder, command, options
        ends = [self.ends.get(source, {"status": "done"}) for source in sources]
        return [
            Result(source, f"{folder}/{source}", **end)
            for source, end in zip(sources, ends, strict=True)
        ]


@pytest.fixture
def batch(monkeypatch: pytest.MonkeyPatch) -> Batch:
    made = Batch()
    monkeypatch.setattr(fleet, "run", made.run)
    return made


TWO = ["a.onnx", "b.onnx"]


def into_folder(
    sources: Sequence[str] = TWO, watch: WatchOptions | None = None, **options: Any
) -> int | None:
    made = OptimizeOptions(**{"out_dir": "out", "quiet": True, **options})
    return optimize_into_folder(sources, made, watch or WatchOptions())


# --- several models -------------------------------------------------------------------------------


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("batches")


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (2, "2 files ('0', '1')"),
        (3, "3 files ('0', '1', '2')"),
        (4, "4 files ('0', '1', '2', ...)"),
    ],
)
def test_several_models_need_a_folder(count: int, shown: str) -> None:
    with pytest.raises(UsageError) as caught:
        into_folder([str(number) for number in range(count)], out_dir=None)
    assert str(caught.value).startswith(f"{shown}; expected MODEL and OUT. For several models")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"output": "o.onnx"}, "-o names one file and --out-dir a folder; use only one of them"),
        ({"result_of": "a.onnx"}, "--result-of is for one result; leave it out with --out-dir"),
        (
            {"certify": "c.json"},
            "--certify=c.json is for one model, not a batch: all would write it",
        ),
    ],
)
def test_options_of_one_result_are_for_no_folder(
    batch: Batch, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=f"^{message}"):
        into_folder(**options)
    assert batch.folder == ""


def test_a_batch_gets_the_options_as_words(batch: Batch) -> None:
    watch = WatchOptions(limit=3, config="c.toml", set=("verify.seed=1",))
    assert (
        into_folder(
            watch=watch,
            opt_level=3,
            disable=("inline",),
            certify="strict",
            max_memory="4GB",
            reproducer="repro",
        )
        == 0
    )
    assert (batch.sources, batch.folder, batch.command.name) == (TWO, "out", "optimize")
    assert sorted(batch.command.options) == [
        "--certify=strict", "--disable=inline", "--limit=3", "--opt-level=3", "--set=verify.seed=1",
    ]  # fmt: skip
    options = batch.options
    assert (options.max_memory, options.reproducers, options.resume) == (
        4_000_000_000,
        "repro",
        False,
    )
    assert options.manifest is not None
    assert not Path(options.manifest).exists()  # it was temporary


@pytest.mark.parametrize(
    ("ends", "code"),
    [
        ({}, 0),
        ({"b.onnx": {"status": "failed", "exit_code": 3}}, 3),
        (
            {
                "a.onnx": {"status": "failed", "exit_code": 1},
                "b.onnx": {"status": "failed", "exit_code": 3},
            },
            1,
        ),
        ({"a.onnx": {"status": "cached"}, "b.onnx": {"status": "crashed"}}, 1),
        ({"a.onnx": {"status": "skipped", "exit_code": 5}}, 0),
    ],
)
def test_the_code_is_that_of_the_first_failure(
    batch: Batch, ends: dict[str, Any], code: int
) -> None:
    batch.ends = ends
    assert into_folder() == code


def test_a_dry_run_writes_into_no_folder(batch: Batch) -> None:
    into_folder(dry_run=True)
    assert batch.folder not in ("", "out")
    assert not Path(batch.folder).exists()
    assert "--dry-run" in batch.command.options


def test_the_pipeline_is_printed_instead(batch: Batch, capsys: pytest.CaptureFixture[str]) -> None:
    watch = WatchOptions(print_pipeline=True)
    made = optimized(TWO, OptimizeOptions(out_dir="out", passes="inline"), watch, BatchOptions())
    assert made == []
    assert "1 of 1 pass would run" in capsys.readouterr().out
    assert batch.folder == ""


# --- one model ------------------------------------------------------------------------------------


def test_one_model_is_written_under_its_name(small: Path) -> None:
    folder = small.parent / "deep" / "out"
    assert into_folder([str(small)], out_dir=str(folder)) is None
    assert [path.name for path in folder.iterdir()] == ["small.onnx"]


@pytest.mark.parametrize(
    ("options", "watch"),
    [({"dry_run": True}, WatchOptions()), ({}, WatchOptions(print_pipeline=True))],
)
def test_a_folder_is_made_only_for_a_result(small: Path, options: Any, watch: WatchOptions) -> None:
    folder = small.parent / "out"
    into_folder([str(small)], watch, out_dir=str(folder), **options)
    assert not folder.exists()


def test_a_folder_that_cannot_be_made_is_an_error(small: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot make '.*small\.onnx': File exists"):
        into_folder([str(small)], out_dir=str(small))
    assert small.read_bytes() == parse(SMALL).SerializeToString()


# --- options of a batch ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", batches._ONE_MODEL)
def test_files_of_one_model_are_refused(name: str) -> None:
    check_batch_options(OptimizeOptions(), batches._ONE_MODEL)
    said = "; use --reproducers DIR" if name == "reproducer" else ""
    message = f"^--{name.replace('_', '-')} is for one model, not a batch{said}$"
    given: dict[str, Any] = {name: "x"}
    with pytest.raises(UsageError, match=message):
        check_batch_options(OptimizeOptions(**given), batches._ONE_MODEL)


@pytest.mark.parametrize("name", batches._ONE_MODEL_WATCH)
def test_what_is_printed_of_one_model_is_refused(batch: Batch, name: str) -> None:
    default = getattr(WatchOptions, name)
    given: dict[str, Any] = {name: True if default is False else "all"}
    watch = WatchOptions(**given)
    with pytest.raises(
        UsageError, match=f"^--{name.replace('_', '-')} is for one model, not a batch$"
    ):
        check_batch_options(watch, batches._ONE_MODEL_WATCH)
    if name not in ("trace", "html", "remarks"):  # their values are checked before
        with pytest.raises(UsageError, match="is for one model, not a batch"):
            optimized(TWO, OptimizeOptions(out_dir="out"), watch, BatchOptions())
    assert batch.folder == ""


def run_with(given: BatchOptions, folder: FolderOptions | None = None) -> int:
    folder = FolderOptions(out_dir="out", quiet=True) if folder is None else folder
    return run_batch(TWO, Command("check", ("--json",)), given, folder, as_json=False)


def test_the_options_of_a_batch_are_those_of_the_fleet(batch: Batch) -> None:
    given = BatchOptions(
        jobs=3, resume=True, timeout=2.5, fail_fast=True, reproducers="r", manifest="m.jsonl"
    )
    assert run_with(given) == 0
    assert batch.options == FleetOptions(
        jobs=3, resume=True, timeout=2.5, fail_fast=True, reproducers="r", manifest="m.jsonl",
        max_memory=None,
    )  # fmt: skip
    assert batch.command == Command("check", ("--json",))
    batch.ends = {"b.onnx": {"status": "timeout"}}
    assert run_with(given) == 1


def test_a_batch_needs_a_folder(batch: Batch) -> None:
    with pytest.raises(UsageError, match="a batch needs a folder for its results: --out-dir DIR"):
        run_with(BatchOptions(), FolderOptions())
    with pytest.raises(UsageError, match="--max-memory: 'lots' is not a size"):
        run_with(BatchOptions(), FolderOptions(out_dir="out", max_memory="lots"))
    with pytest.raises(UsageError, match="csv"):
        run_with(BatchOptions(results="all.csv"))
    assert batch.folder == ""


def test_a_share_of_the_memory_is_that_of_the_machine(
    batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "physical_memory", lambda: 1000)
    run_with(BatchOptions(), FolderOptions(out_dir="out", quiet=True, max_memory="50%"))
    assert batch.options.max_memory == 500


def test_results_are_written_and_printed(
    batch: Batch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "all.jsonl"
    run_batch(
        TWO,
        Command("check", ()),
        BatchOptions(results=str(table)),
        FolderOptions(out_dir="out"),
        as_json=True,
    )
    assert capsys.readouterr().out == table.read_text()
    assert [Result.of_line(line) for line in table.read_text().splitlines()] == [
        Result(source, f"out/{source}", "done") for source in TWO
    ]
