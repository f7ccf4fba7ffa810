"""Results go to the disk and then into the manifest: several at once, beside the jobs that run.

A disk takes milliseconds for each file that it is asked to keep, and hardly more for many at once.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

from tiered.extensions.fleet import storage
from tiered.extensions.fleet.manifest import Manifest
from tiered.extensions.fleet.result_line import Result
from tiered.graph.io.save import data_files
from tiered.support.errors import ModelError

_AT_ONCE: Final = 16
"""Files that are synced at the same time."""


class Committer:
    """Puts results on the disk, and a line for each into the manifest.

    Args:
        manifest: gets the lines, after the files of their results are on the disk.
        syncs: whether the files are on this machine, and nothing has synced them.
    """

    def __init__(self, manifest: Manifest, *, syncs: bool) -> None:
        self._manifest, self._syncs = manifest, syncs
        self._given: queue.SimpleQueue[Result | None] = queue.SimpleQueue()
        self._count = 0
        """Results that were given and not taken."""
        self._done: deque[Result] = deque()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether a result was given that `taken` has not returned."""
        return self._count > 0

    def put(self, result: Result) -> None:
        """Take a result after its files were moved to their places."""
        self._count += 1
        self._given.put(result)

    def taken(self) -> list[Result]:
        """Return the results that are in the manifest since the last call.

        Raises:
            Exception: of the manifest, which cannot be written.
        """
        if self._error is not None:
            raise self._error
        found = [self._done.popleft() for _ in range(len(self._done))]
        self._count -= len(found)
        return found

    def close(self) -> None:
        """Wait until all results are in the manifest."""
        self._given.put(None)
        self._thread.join()

    def _run(self) -> None:
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="tiered-sync") as threads:
            while True:
                group = [self._given.get()]
                with contextlib.suppress(queue.Empty):
                    while True:
                        group.append(self._given.get_nowait())
                self._commit([each for each in group if each is not None], threads)
                if None in group:
                    return

    def _commit(self, results: Sequence[Result], threads: ThreadPoolExecutor) -> None:
        if self._error is not None or not results:
            return
        try:
            if self._syncs:
                results = list(threads.map(_on_disk, results))
                storage.sync_folders(result.target for result in results if _is_here(result))
            self._manifest.append(results)
        except Exception as error:  # noqa: BLE001 - `taken` raises it
            self._error = error
        else:
            self._done.extend(results)


def _is_here(result: Result) -> bool:
    """Return whether a result is a file of this machine."""
    return result.ok and result.nbytes is not None and not storage.is_remote(result.target)


def _on_disk(result: Result) -> Result:
    """Return a result after its files are on the disk; as failed if they cannot be."""
    if not _is_here(result):
        return result
    try:
        storage.sync_files([result.target, *data_files(result.target)])
    except ModelError as error:
        return replace(result, status="failed", reason=str(error), exit_code=1)
    return result
