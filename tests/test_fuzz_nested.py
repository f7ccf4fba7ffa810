"""Rewrites that feed each other: the result of the whole pipeline computes what the model does."""

import random

import onnx
import pytest

from tests.conformance.fuzz_nested import faults_of, nested_model
from tests.conformance.fuzz_passes import NotRunnable
from tests.conformance.nested.examples import examples_of, pipeline_passes

# Passes that replace several nodes at once, or nodes of bodies.
CHOSEN = (
    "combine_parallel_dense",
    "eliminate_duplicate_initializer",
    "fuse_consecutive_slice",
    "fuse_slices_into_split",
    "move_subgraph_initializer",
)


@pytest.mark.parametrize("seed", range(12))
def test_nested_rewrites_compute_the_same(seed: int) -> None:
    passes = [info for info in pipeline_passes() if info.name in CHOSEN]
    assert len(passes) == len(CHOSEN)
    try:
        model, failures = faults_of(random.Random(seed), (1, 2, 3, 4), passes)
    except NotRunnable as error:
        pytest.fail(f"change the seed: {error}")
    assert not failures, f"{failures}\n{onnx.printer.to_text(model)}"


def test_a_seed_names_a_model() -> None:
    passes = [info for info in pipeline_passes() if info.name in CHOSEN]
    for seed in range(5):
        first, second = (nested_model(random.Random(seed), passes) for _ in range(2))
        assert first == second


def test_parts_feed_each_other_and_are_in_bodies() -> None:
    passes = [info for info in pipeline_passes() if info.name in CHOSEN]
    assert all(len(examples_of(info)) for info in passes)
    operators, functions, is_fed = set[str](), 0, False
    for seed in range(30):
        model = nested_model(random.Random(seed), passes)
        operators |= {node.op_type for node in model.graph.node}
        functions += len(model.functions)
        made = {name: at for at, node in enumerate(model.graph.node) for name in node.output}
        is_fed |= any(name in made for node in model.graph.node for name in node.input)
    assert {"If", "Loop", "Slice"} <= operators
    assert functions
    assert is_fed
