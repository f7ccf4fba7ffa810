"""`tiered view MODEL [AFTER]`: open models in Netron."""

from __future__ import annotations

import importlib
from typing import Any

from tiered.cli.files import check_input
from tiered.cli.output.terminal import printable, results
from tiered.support.errors import UsageError


def run_view(model: str, after: str | None, *, browse: bool) -> None:
    """Serve models in Netron until it is interrupted.

    Raises:
        ModelError: a file cannot be read.
        UsageError: Netron is not installed.
    """
    files = [model] if after is None else [model, after]
    for file in files:
        check_input(file)
    netron = _netron()
    for file in files:
        address = netron.start(file, browse=browse)
        results().print(
            printable(f"{file}: http://{address[0]}:{address[1]} (Ctrl+C ends)"), soft_wrap=True
        )
    netron.wait()


def _netron() -> Any:
    """Return the module of Netron.

    Raises:
        UsageError: it is not installed.
    """
    try:
        return importlib.import_module("netron")
    except ImportError as error:
        raise UsageError(
            "tiered view opens Netron, which is not installed: pip install 'tiered[view]'"
        ) from error
