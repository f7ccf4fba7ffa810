"""Whether results are right, and how fast onnxruntime runs them, in a process of its own.

`python -m benchmarks.judge SECONDS ORIGINAL RESULT ...` prints one line of JSON: by file, what
`Verdict` says. `tiered.bench` measures all files alternately, with onnxruntime's own optimisations
off and on, each for the given seconds per file.
"""

import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx

import tiered
from tests.conformance.inputs import feeds_for
from tiered import TieredError
from tiered.runtime.compare.outputs import compare
from tiered.runtime.opening import RuntimeLevel
from tiered.runtime.session import Session

LEVELS: Final[tuple[RuntimeLevel, RuntimeLevel]] = ("off", "all")
CLOSE, LOOSE = 1e-4, 1e-2
"""The largest difference of an output, over its largest number, that still counts as such."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What came of one file.

    Attributes:
        status: exact (bit for bit), close, loose, wrong, or invalid where it does not load or run;
            on both bindings of the dynamic dims, of which the worse counts.
        off_ms: median latency with onnxruntime's optimisations off, one thread.
        on_ms: the same with all of them.
    """

    status: str
    off_ms: float | None = None
    on_ms: float | None = None


_RANKS = ("exact", "close", "loose", "wrong", "invalid")


def judge(original: Path, results: Sequence[Path], seconds: float) -> dict[str, Verdict]:
    """Return the verdict on each result, and on the original itself."""
    model = onnx.load(original)
    session = Session(model)
    feeds = [feeds_for(original, model, session, binding=binding) for binding in (0, 1)]
    expected = [session.run(of_binding) for of_binding in feeds]
    status = {original: "exact"}
    for result in results:
        ranks = [_rank(result, *pair) for pair in zip(feeds, expected, strict=True)]
        status[result] = max(ranks, key=_RANKS.index)
    runnable = [path for path, said in status.items() if said != "invalid"]
    off, on = (_latencies(runnable, feeds[0], seconds, level) for level in LEVELS)
    return {str(path): Verdict(said, off.get(path), on.get(path)) for path, said in status.items()}


def _rank(path: Path, feeds: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    try:
        actual = Session(str(path)).run(feeds)
    except TieredError:
        return "invalid"
    if expected.keys() != actual.keys():
        return "wrong"
    if compare(expected, actual).ok:
        return "exact"
    worst = max(_difference(value, actual[name]) for name, value in expected.items())
    return "close" if worst <= CLOSE else "loose" if worst <= LOOSE else "wrong"


def _difference(expected: Any, actual: Any) -> float:
    """Return the largest difference over the largest number; infinite for what has no numbers."""
    both = isinstance(expected, np.ndarray) and isinstance(actual, np.ndarray)
    if not both or expected.shape != actual.shape or expected.dtype != actual.dtype:
        return float("inf")
    if not expected.size or expected.dtype.kind not in "fiub":
        return 0.0 if np.array_equal(expected, actual) else float("inf")
    a, b = expected.astype(np.float64), actual.astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return float("inf")
    finite = np.isfinite(a)
    largest = np.abs(a[finite]).max(initial=0.0)
    return float(np.abs(a[finite] - b[finite]).max(initial=0.0) / max(largest, 1e-30))


def _latencies(
    paths: Sequence[Path], feeds: Mapping[str, Any], seconds: float, level: RuntimeLevel
) -> dict[Path, float]:
    """Return the median milliseconds of each file; all are measured alternately."""
    if not seconds:
        return {}
    minutes = seconds * len(paths) / 60
    found = tiered.bench(*paths, inputs=[feeds], runtime_level=level, minutes=minutes)
    return {path: each.latency.median * 1e3 for path, each in zip(paths, found.models, strict=True)}


if __name__ == "__main__":
    verdicts = judge(Path(sys.argv[2]), [Path(name) for name in sys.argv[3:]], float(sys.argv[1]))
    print(json.dumps({name: dataclasses.asdict(said) for name, said in verdicts.items()}))
