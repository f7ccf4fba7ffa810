"""Acceptance of batches on a Dask cluster and a server of S3: `make fleet-cluster`.

A fleet of models (see `fleet_models`) is uploaded to an S3 server of this machine. A scheduler and
two workers, all processes of their own, optimise it from there and write the results to there.

1. One worker is killed in the middle: all results equal those of single runs byte for byte, and
   each model has one line.
2. A worker of another version is refused.
3. The scheduler is killed in the middle and started again: `--resume` does the rest, and the
   results are the same.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import s3fs
from moto.server import ThreadedMotoServer

from tests.extensions.fleet.acceptance import OPTIONS, TIERED, single_runs
from tests.extensions.fleet.cluster import OTHER, Cluster
from tests.extensions.fleet.fleet_models import make_fleet
from tiered.extensions.fleet import Result, read_manifest

ZOO = "s3://zoo/models"


class Acceptance:
    """The cluster, the models and the expected results.

    Args:
        work: a folder for all files.
        system: the file system of the server.
        expected: the content of each result, None for models that fail.
    """

    def __init__(
        self, work: Path, system: s3fs.S3FileSystem, expected: dict[str, bytes | None]
    ) -> None:
        self.work, self.system, self.expected = work, system, expected
        self.manifest = work / "manifest.jsonl"
        folder = work / "cluster"
        folder.mkdir()
        self.cluster = Cluster(folder)

    def command(self, out: str, *more: str) -> list[str]:
        """Return the command line of a batch on the cluster."""
        places = ("--out-dir", out, "--manifest", str(self.manifest))
        cluster = ("--cluster", str(self.cluster.file))
        return [*TIERED, "batch", ZOO, *places, *cluster, *OPTIONS, "-q", *more]

    def lines(self) -> list[Result]:
        """Return the lines of the manifest so far."""
        return list(read_manifest(str(self.manifest))) if self.manifest.exists() else []

    def wait_for(self, count: int, batch: subprocess.Popen[str]) -> None:
        """Wait until the manifest has so many lines."""
        while len(self.lines()) < count:
            assert batch.poll() is None, f"the batch ended early: {batch.communicate()[1]}"
            time.sleep(0.02)

    def check(self, out: str) -> None:
        """Check all results, and that the manifest has each model once."""
        self.system.invalidate_cache()
        wrong = []
        for name, content in self.expected.items():
            path = f"{out.removeprefix('s3://')}/{name}"
            found = self.system.cat_file(path) if self.system.exists(path) else None
            if found != content:
                wrong.append(name)
        assert not wrong, f"{len(wrong)} results differ: {wrong[:5]}"
        done = Counter(line.target for line in self.lines() if line.ok)
        assert len(done) == sum(content is not None for content in self.expected.values())
        assert set(done.values()) == {1}, "a model was done twice"

    def kill_a_worker(self) -> None:
        """Run the batch on two workers, one of which is killed."""
        first = self.cluster.start_worker()
        self.cluster.start_worker()
        start = time.perf_counter()
        batch = started(self.command("s3://zoo/first"))
        self.wait_for(len(self.expected) // 3, batch)
        first.kill()
        first.wait()
        seen = len(self.lines())
        assert seen < len(self.expected), "the batch was done before the worker was killed"
        ended(batch)
        self.check("s3://zoo/first")
        seconds = time.perf_counter() - start
        lost = sum(line.status == "crashed" for line in self.lines())
        print(f"worker killed after {seen} of {len(self.expected)} models: all results equal")
        print(f"  those of single runs, {lost} lost; {seconds:.0f} s", flush=True)

    def refuse_another_version(self) -> None:
        """Start a worker of another version, run a batch, and end the worker."""
        preload = self.work / "other.py"
        preload.write_text(OTHER)
        other = self.cluster.start_worker("--preload", str(preload))
        with self.cluster.client(2):
            pass  # both have registered
        batch = started(self.command("s3://zoo/refused"))
        said = batch.communicate(timeout=120)[1]
        other.kill()
        other.wait()
        assert batch.returncode == 1, said
        assert "has tiered 0.0.9" in said, said
        assert not self.system.exists("zoo/refused")
        print(f"refused: {' '.join(said.split())}", flush=True)

    def lose_the_scheduler(self) -> None:
        """Kill the scheduler and all workers in the middle, start them again, and resume."""
        self.manifest.unlink()
        self.cluster.start_worker()
        with self.cluster.client(2):
            pass
        batch = started(self.command("s3://zoo/second"))
        self.wait_for(len(self.expected) // 3, batch)
        start = time.perf_counter()
        self.cluster.end()
        seen = len(self.lines())
        _, said = batch.communicate(timeout=300)
        seconds = time.perf_counter() - start
        assert batch.returncode == 1, said
        assert "the connection to the Dask scheduler is lost" in said, said
        assert seen < len(self.expected), "the batch was done before the scheduler was killed"
        print(f"scheduler killed after {seen} models; the batch ended after {seconds:.0f} s:")
        print(f"  {said.splitlines()[-1]}", flush=True)
        assert all(line.status in ("done", "cached", "failed") for line in self.lines())
        self.cluster.workers.clear()
        self.cluster.scheduler = self.cluster.start_scheduler()
        self.cluster.start_worker()
        self.cluster.start_worker()
        table = self.work / "all.jsonl"
        ended(started(self.command("s3://zoo/second", "--resume", "--results", str(table))))
        self.check("s3://zoo/second")
        counts = Counter(line.status for line in read_manifest(str(table)))
        print(f"resumed: {json.dumps(counts)}; all results equal", flush=True)


def started(command: list[str]) -> subprocess.Popen[str]:
    """Start a batch."""
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def ended(batch: subprocess.Popen[str]) -> None:
    """Wait for a batch of models of which some fail."""
    said = batch.communicate(timeout=1200)[1]
    assert batch.returncode in (0, 1), said
    assert not said, said


@contextmanager
def s3_server() -> Iterator[s3fs.S3FileSystem]:
    """Start a server with an empty bucket, for this process and those that it starts."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it prints each request
    server = ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
    }
    system = s3fs.S3FileSystem()
    system.mkdir("zoo")
    try:
        yield system
    finally:
        server.stop()


def main() -> None:
    """Run all checks and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, default=Path("examples/models"))
    parser.add_argument("--count", type=int, default=80)
    given = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="tiered-cluster-"))
    try:
        models = work / "models"
        print(f"{len(make_fleet(models, given.models, given.count))} models", flush=True)
        expected = single_runs(models, work / "single", own=0)
        failed = sum(content is None for content in expected.values())
        print(f"single runs: {len(expected) - failed} results, {failed} fail", flush=True)
        with s3_server() as system:
            system.put(f"{models}/", f"{ZOO.removeprefix('s3://')}/", recursive=True)
            acceptance = Acceptance(work, system, expected)
            try:
                acceptance.kill_a_worker()
                acceptance.refuse_another_version()
                acceptance.lose_the_scheduler()
            finally:
                acceptance.cluster.end()
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
