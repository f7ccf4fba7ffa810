"""Whether the parts of a model, cut at random tensors, merge to an equal model.

`python -m tests.conformance.cuts models`: for each model of a folder some random cuts; a cut has
one tensor or several. Equal is an equal structural hash.
"""

import itertools
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import cyclopts
import onnx

import tiered
from tests.conformance.judge import describe
from tests.conformance.models import model_paths
from tiered import Model, get_pass


def random_cuts(model: Model, seed: int) -> list[list[str]]:
    """Return up to three cuts of up to three tensors each, from the inputs to the outputs."""
    get_pass("infer_shapes").apply(model)
    made = (value for node in model.main.topological_order() for value in node.outputs)
    inner = [
        value.name
        for value in made
        if value is not None and value.type is not None and not value.is_constant
    ]
    draw = random.Random(seed)
    most = min(len(inner), draw.randrange(1, 10))
    chosen = [inner[at] for at in sorted(draw.sample(range(len(inner)), most))]
    count = min(len(chosen), draw.randrange(1, 4))
    borders = sorted(draw.sample(range(1, len(chosen)), count - 1)) if count else []
    ends = [0, *borders, len(chosen)]
    return [chosen[a:b] for a, b in itertools.pairwise(ends) if b > a]


def merged_again(model: onnx.ModelProto, cuts: Sequence[Sequence[str]]) -> onnx.ModelProto:
    """Return the model that the parts of a model merge to, two by two, as files would."""
    merged, *others = tiered.split(model, cuts)
    for other in others:
        merged = tiered.merge(merged, other)
    return merged


def fault(path: Path, seed: int) -> str:
    """Return what is wrong with the model that the parts of random cuts merge to; "" if nothing."""
    source = Model.load(path)
    # Parts have only the weights that they need.
    get_pass("eliminate_unused_initializer").apply(source)
    expected = source.main.structural_hash()
    cuts = random_cuts(source, seed)
    if not cuts:
        return ""
    try:
        merged = Model.from_proto(merged_again(Model.load(path).to_proto(), cuts))
    except tiered.UsageError as error:
        # A tensor of a later cut may need no node that an earlier cut has not computed.
        return "" if "no node is left" in str(error) else f"{cuts}: {describe(error)}"
    except tiered.TieredError as error:
        return f"{cuts}: {describe(error)}"
    if merged.main.structural_hash() == expected:
        return ""
    counts = f"{len(source.main.nodes)} -> {len(merged.main.nodes)} nodes"
    return f"{cuts}: another model ({counts})"


def main(folder: Path, *, seeds: int = 3, only: str = "*") -> None:
    """Cut models at random tensors, and merge the parts.

    Args:
        folder: the models.
        seeds: how many times each model is cut.
        only: a glob of the names of models.
    """
    failed = 0
    for path in model_paths(folder):
        if not path.match(f"{only}.onnx"):
            continue
        faults = [found for seed in range(seeds) if (found := fault(path, seed))]
        failed += bool(faults)
        print(f"{path.stem}: {'; '.join(faults) or 'equal'}"[:600], flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    cyclopts.run(main)
