"""A Dask scheduler and its workers, as processes of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
OTHER = "import tiered.extensions.fleet.result_versions as v\nv.__version__ = '0.0.9'\n"
"""A file that `dask worker --preload` runs: the worker is one of another version."""


class Cluster:
    """A scheduler and its workers, all processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self.start_scheduler()

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        self.file.unlink(missing_ok=True)
        options = ("--scheduler-file", str(self.file), "--port", "0", "--no-dashboard")
        process = self._start("distributed.cli.dask_scheduler", *options)
        deadline = time.monotonic() + 60
        while not self.file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return process

    def start_worker(self, *more: str) -> subprocess.Popen[bytes]:
        options = ("--scheduler-file", str(self.file), "--nthreads", "1", "--no-nanny")
        local = ("--no-dashboard", "--local-directory", str(self.folder))
        process = self._start("distributed.cli.dask_worker", *options, *local, *more)
        self.workers.append(process)
        return process

    def _start(self, module: str, *options: str) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        retries = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "2"}
        return subprocess.Popen(
            [sys.executable, "-m", module, *options],
            env={**os.environ, **retries, "PYTHONPATH": path},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    @contextmanager
    def client(self, workers: int) -> Iterator[Any]:
        import distributed

        with distributed.Client(scheduler_file=str(self.file), timeout=60) as client:
            if workers:
                client.wait_for_workers(workers, timeout=60)
            yield client

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()
