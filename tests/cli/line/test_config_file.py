"""Options of the command line in a file: what each key and value comes to."""

from pathlib import Path
from typing import Annotated, Any

import pytest

from tiered.cli.line.config_file import options_in_file
from tiered.cli.line.declaration import DeclaredCommand, Flags
from tiered.support.errors import ConfigError


def command(
    model: str,
    /,
    *,
    config: str | None = None,
    set_: Annotated[tuple[str, ...], Flags("--set")] = (),
    opt_level: Annotated[int, Flags("--opt-level", "-O")] = 2,
    passes: str | None = None,
    disable: tuple[str, ...] = (),
    verify: Annotated[str | None, Flags(alone="model")] = None,
) -> None:
    """Do nothing."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tiered.toml"


def options(file: Path, text: str) -> list[tuple[str, list[Any]]]:
    file.write_text(text)
    found = options_in_file(DeclaredCommand("command", command), str(file))
    return [(each.name, values) for each, values in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("opt_level = 3", [("opt_level", [3])]),
        ("opt-level = 3", [("opt_level", [3])]),
        ('disable = ["a", "b"]', [("disable", ["a", "b"])]),
        ('disable = "a"', [("disable", ["a"])]),
        ('passes = ["a", "b{c=1}"]', [("passes", ["a,b{c=1}"])]),
        ('passes = "a,b"', [("passes", ["a,b"])]),
        ("opt_level = [1, 2]", [("opt_level", [[1, 2]])]),
        ("verify = true", [("verify", ["model"])]),
        ("verify = false", []),
        ('verify = "region"', [("verify", ["region"])]),
        ('[config]\n"verify.seed" = 1', [("set_", ["verify.seed=1"])]),
        ("[config]\nverify.seed = 1", [("set_", ["verify.seed=1"])]),
    ],
)
def test_a_key_is_an_option(file: Path, text: str, expected: list[Any]) -> None:
    assert options(file, text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("opt_levl = 3", "unknown key 'opt_levl'; did you mean 'opt_level'"),
        ("config = 'other.toml'", "unknown key 'config'"),
        ("[verify]\na = 1", "'verify' is a table; expected a value"),
        ("[config]\nverify.sed = 1", "did you mean 'verify.seed'"),
    ],
)
def test_what_is_no_option_is_an_error_of_the_file(file: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"tiered.toml: .*{message}"):
        options(file, text)
