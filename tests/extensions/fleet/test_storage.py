"""Sources and results on other file systems: fsspec's memory, and a server of S3."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest

from tests.extensions.fleet.conftest import Make
from tiered.extensions.fleet import Command, FleetOptions, run, storage
from tiered.extensions.fleet.sources import find_sources
from tiered.support.errors import FleetError, ModelError, UsageError

O3 = Command("optimize", ("-O3",))


@pytest.fixture
def memory() -> Any:
    """Return the file system in memory, empty."""
    fsspec = pytest.importorskip("fsspec", reason="needs tiered[fleet]")
    system = fsspec.filesystem("memory")
    system.store.clear()
    return system


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return the file system of a new bucket on a server of this machine."""
    server = pytest.importorskip("moto.server", reason="needs moto[server] and s3fs")
    s3fs = pytest.importorskip("s3fs", reason="needs moto[server] and s3fs")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    running = server.ThreadedMotoServer(port=0)
    running.start()
    host, port = running.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    s3fs.S3FileSystem.clear_instance_cache()
    system = s3fs.S3FileSystem()
    system.mkdir("zoo")
    yield system
    running.stop()


def upload(system: Any, models: Path, root: str) -> None:
    for path in sorted(models.rglob("*")):
        if path.is_file():
            inner = f"{root}/{path.relative_to(models).as_posix()}"
            system.makedirs(inner.rpartition("/")[0], exist_ok=True)
            system.put_file(str(path), inner)


def with_weights(path: Path) -> None:
    """Give a model weights in a file of their own."""
    model = onnx.load(path)
    model.graph.initializer.append(
        onnx.numpy_helper.from_array(np.arange(4096, dtype=np.float32), "k")
    )
    model.graph.node[1].input[1] = "k"
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.shape.dim[1].dim_value = 4096
    onnx.save(model, path, save_as_external_data=True, location="w.bin")


def check_round(system: Any, url: str, inner: str, models: Path, tmp_path: Path) -> None:
    """Check a batch that reads and writes URLs against one of this machine."""
    run([str(models)], str(tmp_path / "local"), O3)
    options = FleetOptions(jobs=1, manifest=str(tmp_path / "m.jsonl"))
    found = run([f"{url}/in"], f"{url}/out", O3, options)
    assert {result.status for result in found} == {"done"}, [result.reason for result in found]
    for path in sorted((tmp_path / "local").rglob("*.onnx*")):
        name = path.relative_to(tmp_path / "local").as_posix()
        assert system.cat_file(f"{inner}/out/{name}") == path.read_bytes()
    again = FleetOptions(jobs=1, manifest=str(tmp_path / "m.jsonl"), resume=True)
    system.rm_file(f"{inner}/out/sub/b.onnx")
    second = run([f"{url}/in"], f"{url}/out", O3, again)
    statuses = {result.source: result.status for result in second}
    assert statuses == {f"{url}/in/a.onnx": "skipped", f"{url}/in/sub/b.onnx": "done"}


def test_models_of_another_file_system(
    memory: Any, models: Path, make: Make, tmp_path: Path
) -> None:
    with_weights(make("a"))
    make("sub/b", number=2)
    upload(memory, models, "/zoo/in")
    check_round(memory, "memory://zoo", "/zoo", models, tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="the server is tested on POSIX systems")
def test_models_of_s3(s3: Any, models: Path, make: Make, tmp_path: Path) -> None:
    with_weights(make("a"))
    make("sub/b", number=2)
    upload(s3, models, "zoo/in")
    check_round(s3, "s3://zoo", "zoo", models, tmp_path)


def test_globs_and_lists_of_urls(memory: Any, models: Path, make: Make, tmp_path: Path) -> None:
    make("a")
    make("sub/b")
    upload(memory, models, "/zoo")
    (tmp_path / "list.txt").write_text("memory://zoo/a.onnx\nmemory://zoo/sub/*.onnx\n")
    found = find_sources([str(tmp_path / "list.txt")], "out")
    assert [(source.path, source.name) for source in found] == [
        ("memory://zoo/a.onnx", "a.onnx"),
        ("memory://zoo/sub/b.onnx", "b.onnx"),
    ]
    assert all(source.nbytes > 0 for source in found)
    with pytest.raises(ModelError, match="no such file or folder"):
        find_sources(["memory://zoo/none"], "out")
    with pytest.raises(UsageError, match="has no models"):
        find_sources(["memory://zoo/none/*.onnx"], "out")


def test_a_url_that_no_package_reads_is_an_error() -> None:
    with pytest.raises(FleetError, match=r"install tiered\[fleet\]"):
        storage.size_of("nosuch://a/b")


@pytest.mark.parametrize(
    ("path", "remote"),
    [
        ("s3://bucket/a", True),
        ("memory://a", True),
        ("file:///a/b", False),
        ("a/b", False),
        ("C:\\a", False),
        ("a:b", False),
    ],
)
def test_what_is_remote(path: str, remote: bool) -> None:
    assert storage.is_remote(path) is remote


def test_a_file_is_placed_whole(tmp_path: Path) -> None:
    (tmp_path / "new").write_bytes(b"new")
    (tmp_path / "old").write_bytes(b"old")
    storage.place(str(tmp_path / "new"), str(tmp_path / "old"))
    assert (tmp_path / "old").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["old"]


def test_files_are_synced_and_those_that_are_not_there_left_out(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    storage.sync_files([str(tmp_path / "a"), str(tmp_path / "b"), f"file://{tmp_path}/a"])
    storage.sync_folders([str(tmp_path / "a"), str(tmp_path / "b")])


def test_what_cannot_be_synced_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot write"):
        storage.sync_files([str(tmp_path)])


def test_files_of_two_file_systems(memory: Any, tmp_path: Path) -> None:
    local = str(tmp_path / "deep" / "a")
    url = "memory://zoo/x/a"
    for path in (local, url):
        source = tmp_path / "source"
        source.write_bytes(b"12345")
        assert storage.size_of(path) is None
        storage.place(str(source), path)
        assert not source.exists()
        assert (storage.size_of(path), storage.read_bytes(path)) == (5, b"12345")
        copied = tmp_path / "copies" / "b"
        storage.copy(path, str(copied))
        assert copied.read_bytes() == b"12345"
        storage.remove(path)
        storage.remove(path)
        assert storage.size_of(path) is None
        with pytest.raises(ModelError, match=r"cannot read '.*a'"):
            storage.read_bytes(path)
    with pytest.raises(ModelError, match="cannot read 'memory://zoo/x/a'"):
        storage.fetch(url, str(tmp_path / "c"))


def test_names_of_two_file_systems() -> None:
    assert [storage.join(folder, "b/c") for folder in ("s3://a/", "s3://a", "a")] == [
        "s3://a/b/c", "s3://a/b/c", os.path.join("a", "b", "c")
    ]  # fmt: skip
    assert [storage.parent(path) for path in ("s3://a/b", "a/b", "b")] == ["s3://a", "a", ""]


def test_the_files_of_a_url(memory: Any) -> None:
    for name, text in (("a.onnx", b"1"), ("s/b.onnx", b"22"), ("s/c.txt", b"333")):
        memory.pipe(f"/zoo/{name}", text)
    zoo = "memory://zoo"
    for entry, root, files, below in (
        (f"{zoo}/a.onnx", None, [("a.onnx", 1)], zoo),
        (f"{zoo}/s", None, [("s/b.onnx", 2), ("s/c.txt", 3)], f"{zoo}/s"),
        (f"{zoo}/*/*.onnx", f"{zoo}/", [("s/b.onnx", 2)], zoo),
        (f"{zoo}/*", f"{zoo}/", [("a.onnx", 1)], zoo),
        (f"{zoo}/n*", f"{zoo}/", [], zoo),
    ):
        found, at = storage.files_of(entry, root)
        assert found == [(f"{zoo}/{name}", size) for name, size in files], entry
        assert at.rstrip("/") == below, entry
    with pytest.raises(ModelError, match="cannot read 'memory://zoo/none': no such file or folder"):
        storage.files_of(f"{zoo}/none", None)


def test_a_file_is_placed_beside_and_not_below_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for syncs in (False, True):
        Path("source").write_bytes(b"1")
        storage.place("source", "target", syncs=syncs)
        assert Path("target").read_bytes() == b"1"
    Path("source").write_bytes(b"1")
    with pytest.raises(ModelError, match=r"cannot write 'target/x': .*\w"):
        storage.place("source", "target/x")


def test_what_a_file_system_says_of_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = "own://box/f"
    for found, exists, expected in (
        ({}, True, []),
        ({}, False, "cannot read 'own://box/f': no such file or folder"),
        ({"/box/f/a": {"size": 3}, "box/f/b": {"size": None}, "own://box/f/c": {}}, False,
         [("own://box/f/a", 3), ("own://box/f/b", 0), ("own://box/f/c", 0)]),
        ({"/box/f/d": {"size": 1, "type": "directory"}, "/box/f/e": {"size": 2, "type": "file"}},
         True, [("own://box/f/e", 2)]),
        (PermissionError(13, "not yours"), True, "cannot read 'own://box/f': [Errno 13] not yours"),
    ):  # fmt: skip

        def find(inner: str, *, detail: bool, found: Any = found) -> Any:
            assert (inner, detail) == ("box/f", True)
            if isinstance(found, Exception):
                raise found
            return found

        system = SimpleNamespace(
            find=find, exists=lambda inner, exists=exists: exists, isfile=lambda inner: False
        )
        monkeypatch.setattr(storage, "_system", lambda path: (system, path.partition("://")[2]))  # noqa: B023 - called in this turn
        if isinstance(expected, str):
            with pytest.raises(ModelError) as raised:
                storage.files_of(entry, None)
            assert str(raised.value) == expected
        else:
            assert storage.files_of(entry, None) == (expected, entry)
