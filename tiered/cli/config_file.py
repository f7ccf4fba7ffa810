"""`--config tiered.toml`: all options of the command line in a file.

    opt_level = 3
    disable = ["fuse_*"]
    verify = true

    [config]                    # config options, as for --set
    "remarks.examples" = 10

Typed options take precedence over the file.
"""

from __future__ import annotations

from typing import Any, Final

from cyclopts import App, ArgumentCollection
from cyclopts.config import Dict

from tiered.cli.optional_values import OPTIONAL
from tiered.support.errors import ConfigError, did_you_mean
from tiered.support.option_text import format_value
from tiered.support.toml_files import read_toml

OPTION = "--config"
TABLE = "config"
"""The table of config options."""

_TEXT: Final = frozenset({"passes"})
"""Options with a string of names as their value; a file may have a list instead."""


def apply_config_file(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Set the options that were not typed to the values of the --config file, if any.

    Raises:
        ConfigError: the file cannot be read, or has an unknown key.
    """
    path = next((a.tokens[0].value for a in arguments if OPTION in a.names and a.tokens), None)
    if path is None:
        return
    values = read_toml(path, ConfigError)
    known = sorted(_key(name) for a in arguments for name in a.names if name.startswith("--"))
    known.remove(TABLE)
    given: dict[str, Any] = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        if key == TABLE and isinstance(value, dict):
            given["set"] = [*given.get("set", ()), *_config_entries(value, path)]
        elif name not in known:
            raise ConfigError(f"{path}: unknown key {key!r}{did_you_mean(name, known)}")
        elif isinstance(value, dict):
            raise ConfigError(f"{path}: {key!r} is a table; expected a value")
        elif name in _TEXT and isinstance(value, list):
            given[name] = ",".join(map(str, value))
        elif value is True and (option := f"--{name.replace('_', '-')}") in OPTIONAL:
            given[name] = OPTIONAL[option]
        elif value is not False or name not in {_key(option) for option in OPTIONAL}:
            given[name] = value
    # Below the commands: at the top, cyclopts drops keys that are commands too, as `verify`.
    nested: dict[str, Any] = given
    for command in reversed(commands):
        nested = {command: nested}
    Dict(nested, source=path)(app, commands, arguments)


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
