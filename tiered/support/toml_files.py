"""TOML files: profiles of backends, and settings of the command line."""

from __future__ import annotations

import os
import tomllib
from typing import Any

from tiered.support.errors import TieredError, words_of


def read_toml(path: str | os.PathLike[str], error: type[TieredError]) -> dict[str, Any]:
    """Return the content of a TOML file.

    Args:
        path: the file.
        error: what to raise where it cannot be read, or is no TOML.
    """
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as found:
        raise error(f"cannot read {os.fspath(path)}: {words_of(found)}") from found
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as found:
        raise error(f"{os.fspath(path)} is not TOML: {found}") from found
