"""The console of rich, which loads when something is printed."""

from __future__ import annotations

from rich.console import Console


class PlainConsole(Console):
    """A console that leaves broken pipes to `tiered.cli.main`."""

    def on_broken_pipe(self) -> None:
        """Leave the broken pipe to `tiered.cli.main`; rich would exit with 1."""
        raise  # noqa: PLE0704 - rich calls this while it handles the BrokenPipeError
