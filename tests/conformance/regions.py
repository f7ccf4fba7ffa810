"""Whether regions of models can be made functions, undone, and run as models of their own.

`python -m tests.conformance.regions models`, for each model of a folder:

- functions: random regions become local functions. The outputs on onnxruntime stay the same bit for
  bit, and inlining gives the same structural hash as before.
- models: a backend with some operators denied takes regions, which become models of their own. Run
  one after the other on onnxruntime, they give the outputs of the whole bit for bit.
"""

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import cyclopts
import numpy as np
import onnx

from tests.conformance.inputs import feeds_for
from tests.conformance.judge import describe
from tests.conformance.models import model_paths
from tiered import Graph, Model, Node, TieredError, get_backend, get_pass
from tiered.extensions.partition import (
    BackendSupport,
    Plan,
    as_models,
    create_op_support,
    fuse_partitions,
    propose_partitions,
)
from tiered.runtime.session import Session

BACKEND = "onnxruntime_cpu"
DENIED = 3
FUNCTIONS_SINCE = 8  # the IR version

Outputs = Mapping[str, np.ndarray]


def other_bits(before: Outputs, after: Outputs) -> str:
    """Return the first output that differs in a bit; "" if none does."""
    if list(before) != list(after):
        return f"the outputs are {list(after)}"
    for name, value in before.items():
        other = after[name]
        if (value.dtype, value.shape) != (other.dtype, other.shape):
            return f"{name} is {other.dtype}{list(other.shape)}"
        if value.tobytes() != other.tobytes():
            return f"{name} has other bits"
    return ""


def functions_fault(model: onnx.ModelProto, feeds: Outputs, expected: Outputs, seed: int) -> str:
    """Return what is wrong with random regions of a model as functions; "" if nothing."""
    view, draw = Model.from_proto(model), random.Random(seed)
    view.set_ir_version(max(view.ir_version, FUNCTIONS_SINCE))
    hash_before, share = view.main.structural_hash(), draw.choice((0.5, 0.9, 1.0))
    chosen = {node for node in view.main.nodes if draw.random() < share}

    def is_chosen(graph: Graph, node: Node) -> bool:
        return node in chosen or node.graph is not view.main

    partitions = propose_partitions(
        view, create_op_support(is_chosen), skip_horizontal_fusion=draw.random() < 0.5
    )
    fuse_partitions(partitions)
    view.check()
    answer = Session(view.to_proto()).run(feeds)
    if fault := other_bits(expected, answer):
        return f"{len(partitions)} functions: {fault}"
    get_pass("inline", domains=("tiered.partition",)).apply(view)
    if view.main.structural_hash() != hash_before:
        return f"{len(partitions)} functions: inlined, it is another model"
    return ""


def models_fault(model: onnx.ModelProto, feeds: Outputs, expected: Outputs, seed: int) -> str:
    """Return what is wrong with the regions of a backend as models; "" if nothing."""
    view, draw = Model.from_proto(model), random.Random(seed)
    get_pass("infer_shapes").apply(view)
    counts = Counter(node.operator for node in view.main.nodes)
    del counts["Constant"]
    denied = draw.sample(sorted(counts), min(DENIED, len(counts) // 2))
    support = BackendSupport(get_backend(BACKEND), denied)
    partitions = propose_partitions(
        view, {BACKEND: support}, skip_horizontal_fusion=draw.random() < 0.5
    )
    plan = as_models(view, partitions)
    with tempfile.TemporaryDirectory() as folder:
        plan.save(folder)
        answer = Plan.load(folder).run(feeds)
    if fault := other_bits(expected, answer):
        return f"without {', '.join(denied)}, {len(plan.parts)} parts: {fault}"
    return ""


def faults(path: Path, model: onnx.ModelProto, seeds: Sequence[int]) -> list[str]:
    """Return what is wrong with a model, for each seed."""
    session = Session(model)
    feeds = feeds_for(path, model, session, binding=0)
    expected = session.run(feeds)
    found = []
    for seed in seeds:
        for judge in (functions_fault, models_fault):
            try:
                fault = judge(model, feeds, expected, seed)
            except TieredError as error:
                fault = describe(error)
            if fault:
                found.append(f"{judge.__name__} {seed}: {fault}")
    return found


def main(folder: Path, *, seeds: int = 2, only: str = "*") -> None:
    """Judge the regions of models.

    Args:
        folder: the models.
        seeds: how many times the regions and the denied operators of each model are drawn.
        only: a glob of the names of models.
    """
    failed = 0
    for path in model_paths(folder):
        if not path.match(f"{only}.onnx"):
            continue
        found = faults(path, onnx.load(path), range(seeds))
        failed += bool(found)
        print(f"{path.stem}: {'; '.join(found) or 'the same bits'}"[:800], flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    cyclopts.run(main)
