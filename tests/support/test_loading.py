"""Names that load at first use, other names of packages, and what counts as a plain function."""

import functools
import importlib
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tiered.support.errors import UsageError
from tiered.support.loading import (
    LoadedLater,
    MovedPackages,
    extension,
    is_plain,
    load_later,
    public_names,
)

STUB = """from lazy_room.inside import (
    one as one,
    two as two,
)
from lazy_room.other import three as three, four
"""


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """Make a package whose names load later, and one that moved into it."""
    folder = tmp_path / "lazy_room"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from tiered.support.loading import load_later\n"
        "__getattr__, __dir__ = load_later(__name__, moved='lazy_room.moved')\n"
    )
    (folder / "__init__.pyi").write_text(STUB)
    (folder / "inside.py").write_text("one = 1\ntwo = 2\n")
    (folder / "other.py").write_text("three = 3\nfour = 4\nold = 5\n")
    (folder / "moved.py").write_text(
        "MOVED = {'former': 'lazy_room.other.old', '__former__': 'lazy_room.other.old'}\n"
        "MOVED_PACKAGES = {'attic': 'other'}\nSHORT_NAMES = {'short': 'inside'}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(
        sys, "meta_path", [*sys.meta_path, MovedPackages("lazy_room", "lazy_room.moved")]
    )
    yield importlib.import_module("lazy_room")
    for name in [each for each in sys.modules if each.partition(".")[0] == "lazy_room"]:
        del sys.modules[name]


def test_a_stub_has_the_names_that_it_exports_again() -> None:
    assert public_names(STUB) == {
        "one": "lazy_room.inside", "two": "lazy_room.inside", "three": "lazy_room.other",
    }  # fmt: skip


def test_a_name_loads_its_module_when_it_is_first_read(room: types.ModuleType) -> None:
    assert "lazy_room.inside" not in sys.modules
    assert room.one == 1
    assert "lazy_room.inside" in sys.modules
    assert vars(room)["one"] == 1
    assert "lazy_room.other" not in sys.modules
    assert room.__all__ == ["one", "three", "two"]
    assert {"one", "two", "three"} <= set(dir(room))


@pytest.mark.parametrize("name", ["four", "none", "__none__", "__former__"])
def test_a_name_that_is_not_exported_is_no_attribute(room: types.ModuleType, name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'lazy_room' has no attribute '{name}'"):
        getattr(room, name)


def test_a_name_that_moved_warns_with_its_new_place(room: types.ModuleType) -> None:
    said = r"lazy_room\.former is lazy_room\.other\.old now"
    with pytest.warns(DeprecationWarning, match=said) as caught:
        assert room.former == 5
    assert caught[0].filename == __file__


def test_a_package_that_moved_loads_with_a_warning_and_a_short_name_without(
    room: types.ModuleType,
) -> None:
    with pytest.warns(DeprecationWarning, match=r"lazy_room\.attic is lazy_room\.other now"):
        assert importlib.import_module("lazy_room.attic").three == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert importlib.import_module("lazy_room.short").two == 2
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("lazy_room.nowhere")


def test_a_function_is_loaded_at_its_first_call_and_is_a_method_of_instances(
    room: types.ModuleType,
) -> None:
    class Holder:
        joined = LoadedLater("os.path", "basename")
        bound = LoadedLater("operator", "truth")

    assert Holder.joined("a/b") == "b"
    assert Holder().bound() is True
    assert LoadedLater("math", "gcd")(4, 6) == 2


def test_an_extension_that_is_not_installed_is_named() -> None:
    assert extension("memory").__name__ == "tiered.extensions.memory"
    with pytest.raises(UsageError, match=r"needs tiered\.extensions\.nowhere, which is not"):
        extension("nowhere")


def test_wrappers_and_functions_with_attributes_are_not_plain() -> None:
    def plain() -> None: ...

    def marked() -> None: ...

    marked.kind = 1  # type: ignore[attr-defined]  # what a decorator would set
    assert is_plain(plain)
    assert not is_plain(marked)
    assert not is_plain(functools.partial(plain))
    assert not is_plain(len)


def test_a_package_whose_names_do_not_move_has_no_others(room: types.ModuleType) -> None:
    load, _ = load_later("lazy_room")
    assert load("one") == 1
    with pytest.raises(AttributeError, match="module 'lazy_room' has no attribute 'former'"):
        load("former")


def test_a_module_that_an_extension_lacks_is_no_missing_extension(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("other_package", None):

        def fails(_: str, name: str | None = name) -> None:
            raise ModuleNotFoundError("no module", name=name)

        monkeypatch.setattr(importlib, "import_module", fails)
        with pytest.raises(ModuleNotFoundError, match="no module"):
            extension("memory")


def test_only_modules_inside_the_package_have_other_names(room: types.ModuleType) -> None:
    finder = MovedPackages("lazy_room", "lazy_room.moved")
    for name in ("lazy_room", "other.attic", "attic", "lazy_room.other"):
        assert finder.find_spec(name) is None, name
    assert finder.find_spec("lazy_room.attic").name == "lazy_room.attic"
