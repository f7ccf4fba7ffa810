"""The folders of a process for unfinished files: each task finds one, and leaves it empty."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Final

STAGED: Final = "out"
"""The folder in it for the result of a task."""


class Scratch:
    """The folders of a process, one in each folder that results are moved from.

    They are made once and not for each task: of a small model that would be a tenth of the time.
    """

    def __init__(self) -> None:
        self._made: dict[str | None, str] = {}

    @contextlib.contextmanager
    def within(self, folder: str | None) -> Iterator[str]:
        """Give an empty folder, with one for the result in it.

        Args:
            folder: what it is in; None for the folder of the system.
        """
        made = self._made.get(folder)
        if made is None or not os.path.isdir(made):
            if folder is not None:
                os.makedirs(folder, exist_ok=True)
            made = self._made[folder] = tempfile.mkdtemp(prefix="tiered-", dir=folder)
            os.mkdir(os.path.join(made, STAGED))
        try:
            yield made
        finally:
            try:
                _empty(made)
            except OSError:
                del self._made[folder]  # the next task gets another one
                shutil.rmtree(made, ignore_errors=True)

    def remove(self) -> None:
        """Remove the folders, with what is in them."""
        for folder in self._made.values():
            shutil.rmtree(folder, ignore_errors=True)
        self._made.clear()


def _empty(folder: str) -> None:
    """Remove all that a task left in its folder."""
    for name in os.listdir(folder):
        if name != STAGED:
            shutil.rmtree(os.path.join(folder, name))
    staged = os.path.join(folder, STAGED)
    for name in os.listdir(staged):
        path = os.path.join(staged, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
