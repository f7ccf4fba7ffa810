"""Backends by their names: built in, registered, of a file, and of an installed package."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tiered.support.errors import BackendError, BackendNotFoundError
from tiered.targets import known
from tiered.targets.backend import Backend
from tiered.targets.known import (
    backend_names,
    built_in_backends,
    get_backend,
    register_backend,
    table_of,
    unregister_backend,
)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that a test registers is left."""
    monkeypatch.setattr(known, "REGISTERED", {})


def own(name: str = "mine") -> Backend:
    return Backend(name=name, unlisted="standard")


def test_a_name_of_a_profile_is_read_once() -> None:
    assert get_backend("int8_npu") is get_backend("int8_npu")
    names = [each.name for each in built_in_backends()]
    assert names == sorted(names)
    assert set(names) <= set(backend_names())
    assert list(backend_names()) == sorted(backend_names())


def test_a_registered_backend_is_found_until_it_is_removed() -> None:
    made = own()
    assert register_backend(made) is made
    assert get_backend("mine") is made
    assert "mine" in backend_names()
    unregister_backend("mine")
    unregister_backend("mine")
    assert "mine" not in backend_names()


def test_a_name_is_taken_over_only_if_that_is_asked_for() -> None:
    register_backend(own())
    for name in ("mine", "int8_npu"):
        with pytest.raises(BackendError, match=f"there is a backend '{name}' already"):
            register_backend(own(name))
    taken = register_backend(own("int8_npu"), replace=True)
    assert get_backend("int8_npu") is taken


def test_a_table_and_a_file_are_profiles(tmp_path: Path) -> None:
    made = register_backend({"name": "table", "extends": "int8_npu"})
    assert made.name == "table"
    path = tmp_path / "file.toml"
    path.write_text('name = "file"\nextends = "int8_npu"\n', encoding="utf-8")
    assert get_backend(path).name == get_backend(str(path)).name == "file"
    assert register_backend(path).name == "file"
    assert table_of(str(path))["name"] == "file"


def test_what_is_not_known_has_a_suggestion() -> None:
    with pytest.raises(BackendNotFoundError, match=r"no backend named 'int8_npv'.*'int8_npu'"):
        get_backend("int8_npv")
    with pytest.raises(BackendNotFoundError, match=r"'int8_npv' to extend.*'int8_npu'"):
        table_of("int8_npv")


class Point:
    """An entry point of an installed package."""

    dist = None

    def __init__(self, found: Any) -> None:
        self.found, self.value = found, "package:name"

    def load(self) -> Any:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Point]]:
    points: dict[str, Point] = {}
    monkeypatch.setattr(known, "_plugged", lambda: points)
    known._load_plugin.cache_clear()
    yield points
    known._load_plugin.cache_clear()


def test_a_package_offers_a_backend_or_its_file(plugged: dict[str, Point], tmp_path: Path) -> None:
    path = tmp_path / "npu.toml"
    path.write_text('name = "filed"\nextends = "int8_npu"\n', encoding="utf-8")
    plugged.update(made=Point(own("made")), filed=Point(path))
    assert get_backend("made") is plugged["made"].found
    assert get_backend("filed").name == "filed"
    assert {"made", "filed"} <= set(backend_names())


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (own("other"), "expected a backend named 'made', found 'other'"),
        (3, "expected a backend named 'made', found a int"),
        (ImportError("no such module"), "cannot be loaded from entry point 'package:name' of ?"),
    ],
)
def test_a_package_offers_what_its_name_says(
    plugged: dict[str, Point], found: Any, reason: str
) -> None:
    plugged["made"] = Point(found)
    with pytest.raises(BackendError) as error:
        get_backend("made")
    assert reason in str(error.value)
