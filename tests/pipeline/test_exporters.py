"""The default pipeline on models as exporters write them; each pass and each pair of neighbours."""

import itertools
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.exporters import EXPORTERS, exported
from tiered import (
    Fixpoint,
    Model,
    Pass,
    PassContext,
    default_pipeline,
    optimize,
    optimize_model,
)
from tiered.pipeline.pipeline_base import Pipeline

LEAVES = [leaf for leaf in default_pipeline().leaves() if leaf.info.opt_level is not None]


def _turns(pipeline: Pipeline) -> Iterator[tuple[Pass, Pass]]:
    """Yield the last and the first pass of each fixed point: a round ends, and the next begins."""
    for part in pipeline.passes:
        if isinstance(part, Pipeline):
            yield from _turns(part)
    leaves = [leaf for leaf in pipeline.leaves() if leaf.info.opt_level is not None]
    if isinstance(pipeline, Fixpoint) and len(leaves) > 1:
        yield leaves[-1], leaves[0]


PAIRS = [*itertools.pairwise(LEAVES), *_turns(default_pipeline())]

EXPECTED = {
    "torchscript": {"LayerNormalization": 1, "MatMul": 1, "Add": 2, "Div": 1, "Erf": 1, "Mul": 2},
    "dynamo": {
        **{"Pow": 1, "ReduceMean": 1, "Add": 1, "Sqrt": 1, "Div": 1, "Mul": 2},
        **{"Gelu": 1, "Sigmoid": 1},
    },
    "old": {"Conv": 1, "Clip": 1, "MaxPool": 1},
}


FOR_ONNXRUNTIME = {
    "attention": {
        **{"MatMul": 3, "Reshape": 2, "Transpose": 2, "Cos": 1, "Sin": 1, "Squeeze": 2},
        **{"RotaryEmbedding": 1, "MultiHeadAttention": 1},
    },
    "encoder": {
        **{"Shape": 1, "Slice": 1, "Gather": 2, "Add": 1, "LayerNormalization": 1},
        **{"Attention": 1},
    },
    "qdq": {
        **{"QuantizeLinear": 1, "QLinearConv": 1, "QLinearAdd": 1, "QLinearGlobalAveragePool": 1},
        **{"Flatten": 1, "QGemm": 1, "DequantizeLinear": 1},
    },
}
targets = pytest.mark.parametrize("backend", [None, "onnxruntime_cpu"])


@pytest.mark.parametrize("name", EXPECTED)
def test_what_exporters_spell_out_is_fused_and_computes_the_same(name: str) -> None:
    result = optimize_model(exported(name), opt_level=3, verify=True)
    assert result.verified
    counts = Counter(node.op_type for node in result.model.main.nodes)
    assert counts == EXPECTED[name]


@pytest.mark.parametrize("name", FOR_ONNXRUNTIME)
@pytest.mark.parametrize("opt_level", [3, 4])
def test_operators_of_onnxruntime_compute_the_same(name: str, opt_level: int) -> None:
    backend = "onnxruntime_cpu"
    result = optimize_model(exported(name), opt_level=opt_level, backend=backend, verify=True)
    assert result.verified
    counts = Counter(node.op_type for node in result.model.main.nodes)
    assert counts == FOR_ONNXRUNTIME[name]


@targets
@pytest.mark.parametrize("name", EXPORTERS)
def test_level_4_is_done_after_one_run(name: str, backend: str | None) -> None:
    once = optimize(exported(name), opt_level=4, backend=backend)
    result = optimize_model(once, opt_level=4, backend=backend)
    assert [ran.name for ran in result.report.ran() if ran.rewrites] == []


@pytest.mark.parametrize("name", EXPORTERS)
def test_each_pass_of_levels_3_and_4_can_be_switched_off_alone(name: str) -> None:
    passes = list({leaf.name: None for leaf in LEAVES if leaf.info.opt_level in (3, 4)})
    for pass_ in passes[list(EXPORTERS).index(name) :: len(EXPORTERS)]:  # each on one exporter
        result = optimize_model(
            exported(name), opt_level=4, backend="onnxruntime_cpu", disabled=[pass_]
        )
        assert pass_ not in {ran.name for ran in result.report.ran()}


@pytest.mark.parametrize("name", EXPORTERS)
def test_neighbours_come_to_an_end_together(name: str) -> None:
    for first, second in PAIRS[list(EXPORTERS).index(name) % 4 :: 4]:  # each on two exporters
        if not _can_share_a_fixed_point(first, second):
            continue
        model = Model.from_proto(exported(name))
        with PassContext.isolated(opt_level=4, backend="onnxruntime_cpu") as ctx:
            Fixpoint([first, second], max_rounds=6).apply(model, ctx)
        said = [str(remark) for remark in ctx.remarks if "no fixed point" in remark.reason]
        assert said == [], f"{first.name} and {second.name}"


def test_pairs_and_switches_know_every_pass_that_a_level_runs() -> None:
    assert {leaf.name for pair in PAIRS for leaf in pair} == {leaf.name for leaf in LEAVES}
    assert ("normalize_axes", "eliminate_nop_cast") in [(a.name, b.name) for a, b in PAIRS]


def _can_share_a_fixed_point(first: Pass, second: Pass) -> bool:
    return second.name not in first.info.conflicts and first.name not in second.info.conflicts


def test_heads_find_their_products_before_these_become_one() -> None:
    names = [leaf.name for leaf in LEAVES]
    merged = min(map(names.index, ("fuse_qkv", "combine_parallel_dense")))
    heads = ("fuse_group_query_attention", "fuse_qkv_into_attention", "fuse_multi_head_attention")
    assert max(map(names.index, heads)) < merged
