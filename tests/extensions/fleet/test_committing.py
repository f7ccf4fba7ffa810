"""Results are on the disk before their lines are in the manifest."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tiered.extensions.fleet import storage
from tiered.extensions.fleet.committing import Committer
from tiered.extensions.fleet.manifest import Manifest, read_manifest
from tiered.extensions.fleet.result_line import Result, Status
from tiered.support.errors import ModelError


@pytest.fixture
def manifest(tmp_path: Path) -> Iterator[Manifest]:
    with Manifest(str(tmp_path / "lines"), resume=False) as opened:
        yield opened


def result(target: object, status: Status = "done", nbytes: int | None = 3) -> Result:
    return Result("in", str(target), status, nbytes=nbytes)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the files and folders that are synced, in order."""
    found: list[str] = []

    def note(paths: Iterable[str]) -> None:
        found.extend(paths)

    monkeypatch.setattr(storage, "sync_files", note)
    monkeypatch.setattr(storage, "sync_folders", lambda targets: note(f"of {t}" for t in targets))
    return found


def committed(manifest: Manifest, *results: Result, syncs: bool = True) -> list[Result]:
    committer = Committer(manifest, syncs=syncs)
    for each in results:
        committer.put(each)
    committer.close()
    return committer.taken()


def test_results_are_taken_in_order_when_their_lines_are_written(
    manifest: Manifest, tmp_path: Path
) -> None:
    given = [result(tmp_path / f"{at}") for at in range(50)]
    assert committed(manifest, *given) == given
    assert read_manifest(manifest.path) == given


def test_a_result_is_taken_once_and_the_committer_is_busy_until_then(manifest: Manifest) -> None:
    committer = Committer(manifest, syncs=False)
    busy = [committer.is_busy]
    committer.put(result("a"))
    busy.append(committer.is_busy)
    committer.close()
    busy.append(committer.is_busy)
    assert committer.taken() == [result("a")]
    assert [*busy, committer.is_busy] == [False, True, True, False]
    assert committer.taken() == []


def test_files_their_weights_and_their_folders_are_synced_first(
    manifest: Manifest, synced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "append", lambda results: synced.append("line"))
    committed(manifest, result("a"))
    names = ["a", "a.data", "a.1.data", "a.safetensors", "a.1.safetensors", "of a", "line"]
    assert synced == names


@pytest.mark.parametrize(
    "other",
    [
        result("s3://a/b"),
        result("a", "failed"),
        result("a", nbytes=None),
        result("a", "skipped", None),
    ],
    ids=["remote", "failed", "no file", "skipped"],
)
def test_what_is_no_file_of_this_machine_is_not_synced(
    manifest: Manifest, synced: list[str], other: Result
) -> None:
    assert committed(manifest, other) == [other]
    assert synced == []


def test_what_workers_sync_is_not_synced_again(manifest: Manifest, synced: list[str]) -> None:
    assert committed(manifest, result("a"), syncs=False) == [result("a")]
    assert synced == []


def test_a_file_that_the_disk_does_not_take_is_a_failure(
    manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(paths: Iterable[str]) -> None:
        if "bad" in paths:
            raise ModelError("cannot write 'bad': no space left")

    monkeypatch.setattr(storage, "sync_files", refuse)
    good, bad = committed(manifest, result("good"), result("bad"))
    assert good == result("good")
    assert (bad.status, bad.exit_code, bad.reason) == (
        "failed",
        1,
        "cannot write 'bad': no space left",
    )
    assert read_manifest(manifest.path) == [good, bad]


def test_a_manifest_that_cannot_be_written_ends_the_batch(
    manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(lines: Iterable[Result]) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(manifest, "append", refuse)
    committer = Committer(manifest, syncs=False)
    committer.put(result("a"))
    committer.close()
    with pytest.raises(OSError, match="no space left"):
        committer.taken()
