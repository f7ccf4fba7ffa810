"""A bundle for a lost process: the files of its model, the command line, its limits and the reason.

    0-model.onnx, ...   the files that were read, with their external data
    crash.json          the fields of `CrashBundle`

`tiered replay` runs the command again, in a process of its own with the same limits.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final, NamedTuple, Self

from tiered.extensions.fleet import storage
from tiered.extensions.fleet.process import JobProcess
from tiered.extensions.fleet.result_versions import versions
from tiered.support.errors import Crashed, ModelError, OutOfMemory, TimedOut
from tiered.support.whole_files import write_json

CRASH: Final = "crash.json"
OUT: Final = "out.onnx"
"""The file that the command writes, in the words of a bundle."""


class CrashReplay(NamedTuple):
    """What came of the command of a bundle.

    Attributes:
        is_lost: whether its process was lost again.
        symptom: how it ended.
    """

    is_lost: bool
    symptom: str


@dataclass(frozen=True)
class CrashBundle:
    """The command on which a process was lost.

    Attributes:
        words: the command line, with the names of files in the bundle.
        files: the name in the bundle of each model that was read.
        status, reason: of the result.
        seconds, memory: the limits of the process, None for no limit.
        versions: of the packages.
    """

    words: Sequence[str]
    files: Mapping[str, str]
    status: str
    reason: str
    seconds: float | None = None
    memory: int | None = None
    versions: Mapping[str, str] = field(default_factory=versions)

    @classmethod
    def of(
        cls,
        words: Sequence[str],
        inputs: Sequence[str],
        status: str,
        reason: str,
        *,
        seconds: float | None = None,
        memory: int | None = None,
    ) -> Self:
        """Return the bundle of a command line that read these models."""
        names = {
            path: f"{number}-{path.replace(os.sep, '/').rpartition('/')[2]}"
            for number, path in enumerate(inputs)
        }
        shown = tuple(names.get(word, word) for word in words)
        return cls(shown, names, status, reason, seconds, memory)

    def save(self, folder: str) -> None:
        """Write the bundle, with copies of the models, into a folder, which is made."""
        for path, name in self.files.items():
            copies = [(path, name)]
            if not storage.is_remote(path):
                copies += [(beside, os.path.basename(beside)) for beside in _beside(path)]
            for source, copied in copies:
                try:
                    storage.copy(source, os.path.join(folder, copied))
                except (ModelError, OSError):
                    continue  # without this file; the reason names it
        os.makedirs(folder, exist_ok=True)
        write_json(os.path.join(folder, CRASH), asdict(self), indent=2)

    @classmethod
    def load(cls, folder: str) -> Self:
        """Read the bundle of a folder.

        Raises:
            ModelError: the folder holds none, or it lacks a model.
        """
        try:
            with open(os.path.join(folder, CRASH), encoding="utf-8") as file:
                bundle = cls(**json.load(file))
            copies = {path: os.path.join(folder, name) for path, name in bundle.files.items()}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise ModelError(f"{folder} is no bundle that can be read: {error}") from error
        for path, copy in copies.items():
            if not os.path.exists(copy):
                name = bundle.files[path]
                raise ModelError(f"{folder} has no copy of {path!r}: expected {name!r} in it")
        return bundle

    def replay(self, folder: str) -> CrashReplay:
        """Run the command again on the models in the folder of the bundle.

        Raises:
            HelperError: the process cannot start.
        """
        copies = {name: os.path.abspath(os.path.join(folder, name)) for name in self.files.values()}
        with tempfile.TemporaryDirectory(prefix="tiered-") as made:
            copies[OUT] = os.path.join(made, OUT)
            request = {
                "do": "run",
                "words": [copies.get(word, word) for word in self.words],
                "files": [copies[name] for name in self.files.values()],
                "out": None,
                "target": None,
                "force": False,
            }
            process = JobProcess(self.memory)
            try:
                answer = process.ask(request, "replaying the command", self.seconds)
            except (Crashed, TimedOut, OutOfMemory) as error:
                return CrashReplay(True, str(error))
            finally:
                process.close()
        code, said = int(answer["code"]), " ".join(str(answer["err"]).split())
        failed = f"; the command ended with exit code {code}: {said}" if code else ""
        return CrashReplay(False, f"the process is not lost{failed}")


def is_crash_bundle(folder: str) -> bool:
    """Return whether a folder holds the bundle of a lost process."""
    return os.path.isfile(os.path.join(folder, CRASH))


def _beside(path: str) -> list[str]:
    """Return the files of external data of a model of this machine."""
    from tiered.extensions.fleet.digests import data_files

    folder = os.path.dirname(path)
    return [os.path.join(folder, each) for each in data_files(path)]
