"""Random models at every exact level, for as long as one likes: `make fuzz-passes`."""

import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cyclopts
import numpy as np
import onnx

from tests.conformance.judge import (
    EXACT_UP_TO,
    Failure,
    Outputs,
    Subject,
    Trial,
    all_nodes,
    judge_levels,
    open_on_onnxruntime,
    optimize,
)
from tests.conformance.random_graphs import random_feeds, random_model
from tiered.errors import RuntimeFailure
from tiered.runtime.compare import compare
from tiered.runtime.session import run_reference

LEVELS = (0, 1, 2)


class NotRunnable(Exception):
    """onnxruntime does not run the random model, so nothing can be said."""


def faults_of(source: random.Random, levels: Sequence[int] = LEVELS) -> tuple[Any, list[Failure]]:
    """Make a model, and return it with all that is wrong with what passes make of it.

    Raises:
        NotRunnable: there is nothing to compare with.
    """
    model = random_model(source, source.randint(2, 20))
    try:
        run = open_on_onnxruntime(model)
        trials = tuple(
            _trial(f"inputs {turn}", model, feeds, run(feeds))
            for turn in range(2)
            for feeds in [random_feeds(source, model)]
        )
    except RuntimeFailure as error:
        raise NotRunnable(str(error)) from error
    subject = Subject(model, open_on_onnxruntime, trials)
    _, failures = judge_levels(subject, levels, optimize, lambda stage: None)
    return model, failures


def _trial(
    label: str, model: onnx.ModelProto, feeds: dict[str, np.ndarray[Any, Any]], expected: Outputs
) -> Trial:
    def fault(level: int, result: onnx.ModelProto, outputs: Outputs) -> str | None:
        numerics = "exact" if level <= EXACT_UP_TO else "reassociating"
        found = compare(expected, outputs, numerics)
        if not found.ok and any(node.op_type == "Where" for node in all_nodes(model)):
            # onnxruntime's Where loses the sign of a zero; onnx.reference's does not.
            found = compare(run_reference(model, feeds), run_reference(result, feeds), numerics)
        return None if found.ok else str(found)

    return Trial(label, feeds, fault)


def main(*, minutes: float = 10.0, seed: int = 0, folder: Path = Path("build/fuzz")) -> None:
    """Judge random models, one number after the other, and keep those that show a fault.

    Args:
        minutes: how long.
        seed: the first number.
        folder: where the models go.
    """
    ends, counts = time.monotonic() + 60 * minutes, Counter[str]()
    while time.monotonic() < ends:
        try:
            model, failures = faults_of(random.Random(seed))
        except NotRunnable as error:
            counts["not runnable"] += 1
            if counts["not runnable"] <= 3:
                print(f"seed {seed}: not runnable: {error}"[:300], flush=True)
            seed += 1
            continue
        counts["faulty" if failures else "good"] += 1
        if failures:
            folder.mkdir(parents=True, exist_ok=True)
            onnx.save(model, folder / f"{seed}.onnx")
            for failure in failures[:2]:
                print(f"seed {seed}: O{failure.level} {failure.kind}: {failure.detail}"[:400])
            sys.stdout.flush()
        seed += 1
    print(f"up to seed {seed}: {dict(counts)}")
    sys.exit(bool(counts["faulty"]))


if __name__ == "__main__":
    cyclopts.run(main)
