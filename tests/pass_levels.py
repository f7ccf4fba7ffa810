"""The level and the promise of each pass as they are listed, apart from its declaration."""

import importlib
from functools import cache
from pathlib import Path

import pytest

from tiered.passes.interface.pass_info import PassInfo

LIST = Path(__file__).parent / "house" / "pass_levels.txt"
"""A line a pass: its name, its level, what it promises of the outputs."""


@cache
def listed() -> dict[str, str]:
    """Return the level and the promise by the name of the pass."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return dict(line.split(": ") for line in lines)


def declared(info: PassInfo) -> str:
    """Return the level and the promise of a pass, as the list has them."""
    interface = ", another interface" if info.changes_interface else ""
    return f"{info.opt_level} {info.numerics.value}{interface}"


@pytest.fixture(autouse=True, scope="module")
def declared_as_listed(request: pytest.FixtureRequest) -> None:
    """Check the declaration of the pass whose tests are in the module."""
    *folders, test = request.module.__name__.split(".")
    name = test.removeprefix("test_")
    if name in listed():
        module = importlib.import_module(".".join(["tiered", *folders[1:], name]))
        found = declared(getattr(module, name).info)
        assert found == listed()[name], f"{name} is {found}; {LIST.name} says {listed()[name]}"
