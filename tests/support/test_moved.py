"""Names and packages that moved are still there, with a warning that names the new place."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import tiered
from tiered.support.moved import MOVED, MOVED_PACKAGES, SHORT_NAMES

PACKAGE = Path(tiered.__file__).parent


@pytest.mark.parametrize("name", MOVED)
def test_a_name_that_moved_is_still_there_with_a_warning(name: str) -> None:
    module, _, new = MOVED[name].rpartition(".")
    with pytest.warns(DeprecationWarning, match=f"tiered.{name} is {MOVED[name]} now") as caught:
        found = getattr(tiered, name)
    assert found is getattr(importlib.import_module(module), new)
    assert caught[0].filename == __file__
    assert name not in tiered.__all__


def test_a_name_that_moved_is_imported_with_one_warning_at_the_import() -> None:
    script = "from tiered import bias_apart"
    command = [sys.executable, "-W", "always::DeprecationWarning", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "<string>:1: DeprecationWarning: tiered.bias_apart is " in done.stderr
    assert "tiered.rewriter.idioms.normalization.split_bias" in done.stderr


@pytest.mark.parametrize("old", MOVED_PACKAGES)
def test_a_package_that_moved_is_still_there_with_a_warning(old: str) -> None:
    sys.modules.pop(f"tiered.{old}", None)
    new = f"tiered.{MOVED_PACKAGES[old]}"
    with pytest.warns(DeprecationWarning, match=f"tiered.{old} is {new} now"):
        found = importlib.import_module(f"tiered.{old}")
    assert found.__getattr__("__name__") == new
    del sys.modules[f"tiered.{old}"]


def test_a_name_of_a_module_that_moved_is_the_same_object() -> None:
    with pytest.warns(DeprecationWarning, match=r"tiered\.backends\.coverage is"):
        module = importlib.import_module("tiered.backends.coverage")
    assert module.Coverage is importlib.import_module("tiered.targets.coverage").Coverage


@pytest.mark.parametrize("short", SHORT_NAMES)
def test_a_short_name_stays_and_loads_without_a_warning(
    short: str, recwarn: pytest.WarningsRecorder
) -> None:
    found = importlib.import_module(f"tiered.{short}")
    long = importlib.import_module(f"tiered.{SHORT_NAMES[short]}")
    assert found.__all__ == long.__all__
    assert not [each for each in recwarn if each.category is DeprecationWarning]


def test_no_old_place_is_taken_and_none_leads_to_another_old_place() -> None:
    for old, new in {**MOVED_PACKAGES, **SHORT_NAMES}.items():
        assert not (PACKAGE / old).exists(), old
        assert not (PACKAGE / f"{old}.py").exists(), old
        assert new.partition(".")[0] not in MOVED_PACKAGES, new
    assert not MOVED_PACKAGES.keys() & SHORT_NAMES.keys()
    for name, place in MOVED.items():
        assert place.removeprefix("tiered.").partition(".")[0] not in MOVED_PACKAGES, name
