"""`--config tiered.toml`: all options of the command line in a file.

    opt_level = 3
    disable = ["fuse_*"]
    verify = true

    [config]                    # config options, as for --set
    "remarks.examples" = 10

Typed options take precedence over the file.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from tiered.cli.line.declaration import DeclaredCommand, DeclaredParameter
from tiered.support.errors import ConfigError, did_you_mean
from tiered.support.option_text import format_value
from tiered.support.toml_files import read_toml

Given: TypeAlias = list[tuple[DeclaredParameter, list[Any]]]
TABLE: Final = "config"
"""The table of config options."""
PIPELINE: Final = "passes"
"""The option with a pipeline; a file may list its passes."""


def options_in_file(command: DeclaredCommand, path: str) -> Given:
    """Return the options that a file sets, and what it says of each.

    Raises:
        ConfigError: the file cannot be read, or has an unknown key.
    """
    known = {
        _key(name): each for each in command.options for name in each.names if name[:2] == "--"
    }
    del known[TABLE]  # a file names no other one
    found: Given = []
    for key, value in read_toml(path, ConfigError).items():
        each = known.get(key.replace("-", "_"))
        if key == TABLE and isinstance(value, dict):
            found.append((known["set"], _config_entries(value, path)))
            continue
        if each is None:
            raise ConfigError(f"{path}: unknown key {key!r}{did_you_mean(key, sorted(known))}")
        if isinstance(value, dict):
            raise ConfigError(f"{path}: {key!r} is a table; expected a value")
        if each.flags.alone and isinstance(value, bool):
            found += [(each, [each.flags.alone])] if value else []
        elif isinstance(value, list) and each.is_list:
            found.append((each, value))
        elif isinstance(value, list) and each.name == PIPELINE:
            found.append((each, [",".join(map(str, value))]))
        else:
            found.append((each, [value]))
    return found


def _key(name: str) -> str:
    return name.removeprefix("--").replace("-", "_")


def _config_entries(table: dict[str, Any], path: str) -> list[str]:
    """Return a table of config options as for --set; `a.b = 1` without quotes nests in TOML."""
    from tiered.support.config_options import checked_config

    flat: dict[str, Any] = {}
    pending = list(table.items())
    while pending:
        key, value = pending.pop(0)
        if isinstance(value, dict):
            pending += [(f"{key}.{below}", item) for below, item in value.items()]
        else:
            flat[key] = value
    try:
        checked_config(flat)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return [f"{key}={format_value(value)}" for key, value in flat.items()]
