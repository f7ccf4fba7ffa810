"""Whether a second run of the pipeline changes nothing, at each level and for each backend.

`make at-rest AT_REST_ARGS='--folder models'`: over the models of a folder, random networks and
random graphs.
"""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

import cyclopts
import onnx
from onnx import ModelProto

import tiered
from tests.conformance.judge import canonical_bytes, describe, first_difference
from tests.conformance.random_graphs import random_model
from tests.conformance.random_networks import random_network
from tiered.targets.known import built_in_backends

LEVELS = (0, 1, 2, 3, 4)
NO_BACKEND = "none"
BACKENDS = (NO_BACKEND, *(backend.name for backend in built_in_backends()))


def unrest(model: ModelProto, level: int, backend: str = NO_BACKEND) -> str:
    """Return what a second run changes in the result of the first one; "" if nothing."""
    target = None if backend == NO_BACKEND else backend
    optimize = partial(tiered.optimize, opt_level=level, backend=target)
    once = optimize(model)
    twice = optimize(once)
    if canonical_bytes(once) == canonical_bytes(twice):
        return ""
    sizes = f"{len(once.graph.node)} -> {len(twice.graph.node)} nodes"
    return f"{sizes}: {first_difference(once, twice)}"


def models(folder: Path | None, networks: int, graphs: int) -> Iterator[tuple[str, ModelProto]]:
    """Yield the models to look at, each with its name."""
    for path in sorted(folder.glob("*.onnx")) if folder is not None else ():
        yield path.name, onnx.load(path)
    for number in range(networks):
        yield f"network {number}", random_network(number)
    for number in range(graphs):
        yield f"graph {number}", random_model(Random(number))


def main(
    *,
    folder: Path | None = None,
    networks: int = 20,
    graphs: int = 20,
    levels: str = "0,1,2,3,4",
    targets: str = "",
) -> None:
    """Optimise models twice, and say where the second run changes something.

    Args:
        folder: models to look at.
        networks: how many random networks.
        graphs: how many random graphs.
        levels: the optimisation levels, separated by commas.
        targets: the backends, separated by commas; all that are built in, and none, by default.
    """
    names = targets.split(",") if targets else [*BACKENDS]
    chosen = [int(level) for level in levels.split(",")]
    counts = dict.fromkeys(((name, level) for name in names for level in chosen), 0)
    total = 0
    for label, model in models(folder, networks, graphs):
        total += 1
        for name, level in counts:
            try:
                found = unrest(model, level, name)
            except tiered.TieredError as error:
                found = describe(error)
            if found:
                counts[name, level] += 1
                print(f"{label} on {name} at -O{level}: {found}"[:400], flush=True)
    print(f"of {total} models not at rest after one run, by level {', '.join(map(str, chosen))}:")
    for name in names:
        print(f"  {name:16}", *(f"{counts[name, level]:5}" for level in chosen))
    sys.exit(any(counts.values()))


if __name__ == "__main__":
    cyclopts.run(main)
