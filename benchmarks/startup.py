"""What `tiered --help` costs beside the smallest program that a library for command lines makes.

    python -m benchmarks.startup

Both are Python processes that print help, the small one with cyclopts; they take turns, and the
median counts.
`--check` makes more than `LIMIT` times the smallest program an error.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

import cyclopts

LIMIT = 0.8

BARE = """
from cyclopts import App

app = App(name="bare", help="A program.")


@app.command
def run(source: str, *, level: int = 1) -> None:
    "Run."


app()
"""

COMMANDS = {
    "a bare program": (sys.executable, "-c", BARE, "--help"),
    "tiered": (sys.executable, "-m", "tiered", "--help"),
}


def measured(runs: int) -> dict[str, float]:
    """Return the median seconds of each process."""
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for turn in range(runs + 1):
        for name, command in COMMANDS.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            if turn:  # the first one compiles modules
                taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def main(runs: int) -> float:
    """Print both times; return how many times the bare program's time tiered takes."""
    found = measured(runs)
    for name, seconds in found.items():
        print(f"{name:<16}{seconds * 1e3:>8.1f} ms")
    bare, own = found.values()
    print(f"ratio {own / bare:.2f} (limit {LIMIT})")
    return own / bare


def command(*, runs: int = 15, check: bool = False) -> None:
    """Measure what `tiered --help` costs.

    Args:
        runs: how often each is run.
        check: fail where the limit is exceeded.
    """
    if main(runs) > LIMIT and check:
        sys.exit(f"tiered --help takes more than {LIMIT} times a bare program")


if __name__ == "__main__":
    cyclopts.run(command)
