"""A quantised model becomes float for a target without integers only where that pays."""

from typing import Any

import pytest

from tiered import Model, UsageError, get_backend, optimize_model
from tiered.analysis.legalization.legalization_search import legalize_nodes
from tiered.pipeline.target_check import check_target
from tiered.testing import parse

WEIGHTS = """({}) => ({}) <int8[2,2] w = {{1, 2, 3, 4}}, float s = {{0.5}}> {{
    d = DequantizeLinear(w, s)  m = MatMul(x, d)  y = {}(m) }}"""
STATIC = WEIGHTS.format("float[5,2] x", "float[5,2] y", "Relu")
DYNAMIC = WEIGHTS.format("float[N,2] x", "float[N,2] y", "Relu")
PAIRS = """(float[{0},2] x) => (float[{0},2] y)
<float s = {{0.5}}, int8 z = {{3}}, int8[2,2] w = {{1, 2, 3, 4}}> {{
    c = Clip(x)  q = QuantizeLinear(c, s, z)  a = DequantizeLinear(q, s, z)
    b = DequantizeLinear(w, s, z)  m = MatMul(a, b)
    r = QuantizeLinear(m, s, z)  y = DequantizeLinear(r, s, z) }}"""
STAYS = "coreml has no DequantizeLinear, and takes no more nodes that compute"


def is_quantized(text: str, backend: str, **settings: Any) -> bool:
    made = optimize_model(parse(text), backend=backend, opt_level=3, **settings)
    nodes = [node for graph in made.model.graphs() for node in graph.nodes_of("DequantizeLinear")]
    noted = any("the model stays quantised" in note for note in made.model.notes)
    assert noted <= bool(nodes)
    return noted


@pytest.mark.parametrize("backend", ["coreml", "ipu"])
def test_nodes_that_the_target_then_takes_are_worth_the_bytes(backend: str) -> None:
    assert not is_quantized(STATIC, backend)


@pytest.mark.parametrize("backend", ["coreml", "ipu"])
@pytest.mark.parametrize("text", [DYNAMIC, PAIRS.format("N")])
def test_a_target_that_takes_no_more_gets_the_integers(backend: str, text: str) -> None:
    assert is_quantized(text, backend)


def test_dims_that_are_set_count() -> None:
    assert not is_quantized(DYNAMIC, "coreml", dims={"N": 4})


def test_one_node_more_decides_for_all() -> None:
    two = """(float[N,2] x, float[5,2] z) => (float[N,2] y, float[5,2] u)
    <int8[2,2] w = {1, 2, 3, 4}, float s = {0.5}> {
        d = DequantizeLinear(w, s)  y = MatMul(x, d)
        e = DequantizeLinear(w, s)  u = MatMul(z, e) }"""
    assert not is_quantized(two, "coreml")


@pytest.mark.parametrize("name", ["legalize", "lower_quantized_constant"])
def test_what_is_required_by_name_runs(name: str) -> None:
    assert not is_quantized(DYNAMIC, "coreml", required=[name])


def test_nothing_is_said_where_the_passes_do_not_run() -> None:
    disabled = ["lower_quantized_constant", "lower_qdq_pair", "legalize"]
    assert not is_quantized(DYNAMIC, "coreml", disabled=disabled)
    assert not is_quantized(DYNAMIC, "portable")


def test_a_pipeline_of_ones_own_is_not_changed() -> None:
    made = optimize_model(parse(DYNAMIC), backend="coreml", passes="lower_quantized_constant")
    assert not made.model.main.nodes_of("DequantizeLinear")


def test_the_check_of_a_target_makes_the_same_choice() -> None:
    model = Model.from_proto(parse(DYNAMIC))
    check = check_target(model, backend="coreml", opt_level=3)
    assert check.after.operators["DequantizeLinear"] == 1
    assert any(note.startswith(STAYS) for note in model.notes)


def test_a_second_run_leaves_them_too() -> None:
    first = optimize_model(parse(DYNAMIC), backend="coreml", opt_level=3).model.to_proto()
    second = optimize_model(first, backend="coreml", opt_level=3).model.to_proto()
    assert second == first


def test_a_fusion_counts_for_all_the_nodes_that_it_came_from() -> None:
    conv = """(float[1,2,4,4] x) => (float[1,2,4,4] y)
    <int8[2,2,1,1] w = {1, 2, 3, 4}, float s = {0.5}, float[2] b = {1, 2}> {
        d = DequantizeLinear(w, s)  c = Conv(x, d, b)  y = Relu(c) }"""
    assert not is_quantized(conv, "coreml")


def test_operators_to_leave_exist() -> None:
    model = Model.from_proto(parse(DYNAMIC))
    with pytest.raises(UsageError, match="there is no operator 'QuantiseLinear'; did you mean"):
        legalize_nodes(model, get_backend("ipu"), lambda *_: None, leave=["QuantiseLinear"])
