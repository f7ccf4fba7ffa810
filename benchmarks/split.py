"""What `split_by_budget` reaches with half of the peak: `python -m benchmarks.split MODEL ...`.

Each model gets fixed shapes, those of its inputs in the `.json` beside it, and `-O3`. The table has
the peaks, the nodes, the seconds, and the largest difference of an output over its largest number.
"""

import sys
import time
from pathlib import Path

import numpy as np
import onnx

import tiered
from tests.conformance.inputs import feeds_for
from tiered.extensions.memory import memory_plan, split_model
from tiered.runtime.session import Session


def row(path: Path) -> str:
    """Return the row of a model."""
    source = onnx.load(path)
    feeds = feeds_for(path, source, Session(source), binding=0)
    shapes = {name: list(array.shape) for name, array in feeds.items()}
    fixed = tiered.optimize(source, opt_level=3, input_shapes=shapes)
    model = tiered.Model.from_proto(fixed)
    nodes, before = len(model.main), memory_plan(model).peak
    start = time.process_time()
    done = split_model(model, before // 2)
    seconds = time.process_time() - start
    made = model.to_proto()
    expected, found = Session(fixed).run(feeds), Session(made).run(feeds)
    error = max(map(difference, expected.values(), found.values()))
    whole = "; ".join(f"`{value.name}`: {reason}" for value, reason in done.kept[:2])
    columns = (
        *(path.stem, f"{before:,}", f"{done.peak:,}", f"{done.peak / before:.2f}"),
        *(done.regions, f"{nodes} → {len(model.main)}", f"{seconds:.1f}", f"{error:.0e}", whole),
    )
    return f"| {' | '.join(map(str, columns))} |"


def difference(one: np.ndarray, other: np.ndarray) -> float:
    """Return the largest difference over the largest number; 0 for equal bits."""
    if one.tobytes() == other.tobytes():
        return 0.0
    first, second = (each.astype(np.float64) for each in (one, other))
    return float(np.abs(first - second).max() / max(np.abs(first).max(), 1e-30))


def main() -> None:
    print("| model | peak | in parts | ratio | regions | nodes | s | error | whole at the peak |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|---|")
    for path in sys.argv[1:]:
        print(row(Path(path)), flush=True)


if __name__ == "__main__":
    main()
