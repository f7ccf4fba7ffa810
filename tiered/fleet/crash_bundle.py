"""A bundle for a lost process: the files of its model, the command line and the reason.

    model.onnx, ...   the files that were read, with their external data
    crash.json        {words, files, status, reason, versions}
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Final

from tiered.errors import ModelError
from tiered.fleet import storage
from tiered.fleet.versions import versions

CRASH: Final = "crash.json"


def write_crash_bundle(
    folder: str, inputs: Sequence[str], words: Sequence[str], status: str, reason: str
) -> None:
    """Write the files of a model and the command on which its process was lost.

    Args:
        folder: of the bundle.
        inputs: the models that were read.
        words: the command line.
        status, reason: of the result.
    """
    files: dict[str, str] = {}
    for number, path in enumerate(inputs):
        name = f"{number}-{path.replace(os.sep, '/').rpartition('/')[2]}"
        files[path] = name
        copies = [(path, name)]
        if not storage.is_remote(path):
            copies += [(beside, os.path.basename(beside)) for beside in _beside(path)]
        for source, copied in copies:
            try:
                storage.copy(source, os.path.join(folder, copied))
            except (ModelError, OSError):
                continue  # without this file; the reason names it
    content = {
        "words": [files.get(word, word) for word in words],
        "files": files,
        "status": status,
        "reason": reason,
        "versions": versions(),
    }
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, CRASH), "w", encoding="utf-8") as file:
        json.dump(content, file, indent=2)


def _beside(path: str) -> list[str]:
    """Return the files of external data of a model of this machine."""
    from tiered.fleet.digests import data_files

    folder = os.path.dirname(path)
    return [os.path.join(folder, each) for each in data_files(path)]
