"""An operator of a user's own, in one file: every room knows it as it knows those of ONNX."""

import runpy
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

from tests.registered import rules_forgotten
from tiered import (
    Model,
    ModelError,
    UsageError,
    get_pass,
    integer_types,
    memory_plan,
    optimize_model,
    ranges,
)
from tiered.analysis.aspects import ASPECTS, aspect, rules_of
from tiered.analysis.batching.another_size import rebatch
from tiered.extensions.memory.splitting.peak_budget import split_model
from tiered.extensions.packing.transform import pack_rows
from tiered.graph.intervals.interval import Interval
from tiered.graph.queries.contrib_checker import contrib_complaint
from tiered.runtime import make_inputs
from tiered.verify import custom_ops

EXAMPLE = Path(__file__).parents[1] / "examples" / "own_operator.py"
LEFT_OUT = {"index", "unsound"}
"""Aspects in which there is nothing to say of this operator."""


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    kept = dict(custom_ops._REGISTERED)
    with rules_forgotten():
        runpy.run_path(str(EXAMPLE))
        yield
    custom_ops._REGISTERED.clear()
    custom_ops._REGISTERED.update(kept)


def model(text: str) -> Model:
    header = '<ir_version: 10, opset_import: ["": 21, "acme": 1]>'
    return Model.from_proto(onnx.parser.parse_model(f"{header} g {text}"))


def ops(found: Model) -> list[str]:
    return [node.op_type for node in found.main.topological_order()]


def test_one_short_file_says_all_of_it() -> None:
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) <= 60
    known = {name for name in ASPECTS if ("acme", "Scale") in rules_of(name)}
    assert known == set(ASPECTS) - LEFT_OUT


def test_a_second_file_with_the_operator_is_an_error() -> None:
    with pytest.raises(UsageError, match="already"):
        runpy.run_path(str(EXAMPLE))


def test_types_and_elements_are_inferred() -> None:
    found = model(
        "(float[N,3] x) => (float[A,B] y) <int64 two = {2}> "
        "{ d = Shape(x) e = acme.Scale(d, two) y = Expand(x, e) }"
    )
    made = found.main.nodes[1].output
    assert str(made.type) == "int64[2]"
    assert made.elements is not None
    assert [str(each) for each in made.elements] == ["2*N", "6"]


def test_its_interval_and_its_integers_follow() -> None:
    found = model(
        "(float[4] x) => (float[4] y) <float by = {2}> { c = Sign(x) y = acme.Scale(c, by) }"
    )
    value = found.main.outputs[0]
    assert found.analysis(ranges)[value] == Interval(-2, 2, True)
    assert found.analysis(integer_types)[value] is not None


def test_it_has_a_gradient() -> None:
    found = model("(float[3] x, float by) => (float[3] y) { y = acme.Scale(x, by) }")
    derive = get_pass("gradient", of=["y"], with_respect_to=["x", "by"], seed="ones")
    made = derive(found)
    assert [value.name for value in made.main.outputs] == ["y", "grad/x", "grad/by"]
    assert "ReduceSum" in ops(made)


def test_transposes_pass_through() -> None:
    found = model(
        "(float[2,3,4] x) => (float[2,3,4] y) <float by = {0.5}> { t = Transpose<perm=[2,0,1]>(x) "
        "s = acme.Scale(t, by) y = Transpose<perm=[1,2,0]>(s) }"
    )
    result = optimize_model(found, opt_level=3, verify=True)
    assert [node.op_type for node in result.model.main.nodes] == ["Scale"]
    assert result.verify is not None
    assert all(each.ok for each in result.verify.comparisons)


def test_it_is_written_in_a_lower_rank() -> None:
    found = model(
        "(float[2,3] x) => (float[2,3] y) <int64[5] s = {1,1,1,2,3}, int64[2] t = {2,3}, "
        "float by = {0.5}> { a = Reshape(x, s) b = acme.Scale(a, by) y = Reshape(b, t) }"
    )
    lowered = get_pass("legalize_rank", max_rank=4)(found)
    assert max(node.output.rank or 0 for node in lowered.main.nodes) <= 4
    assert "Scale" in ops(lowered)


def test_it_is_computed_in_parts() -> None:
    found = model(
        "(float[64,4] x, float[4,32] w, float[32,4] v) => (float[64,4] y) <float by = {0.5}> "
        "{ a = MatMul(x, w) b = acme.Scale(a, by) c = MatMul(b, v) y = Add(c, x) }"
    )
    before = memory_plan(found).peak
    assert split_model(found, before // 2).peak <= before // 2
    assert ops(found).count("Scale") > 1


def test_the_batch_passes_through() -> None:
    found = model("(float[1,4] x) => (float[1,4] y) <float by = {0.5}> { y = acme.Scale(x, by) }")
    rebatch(found, {found.main.inputs[0]: 0}, "N")
    assert str(found.main.outputs[0].type) == "float[N,4]"


def test_its_tokens_are_packed() -> None:
    text = (
        "(float[B,S,4] x) => (float[B,S,4] y) <float by = {0.5}> { q = acme.Scale(x, by) "
        "k = Transpose<perm=[0,2,1]>(x) m = MatMul(q, k) p = Softmax(m) y = MatMul(p, x) }"
    )
    assert "1 attention masked" in pack_rows(model(text))
    aspect("axes").remove("Scale", "acme")
    with pytest.raises(ModelError, match="the operator may mix tokens: it has no rule"):
        pack_rows(model(text))


def test_made_inputs_are_what_it_takes() -> None:
    found = model("(float[3] x, float by) => (float[3] y) { y = acme.Scale(x, by) }")
    made = make_inputs(found.to_proto())
    assert made.feeds["by"] > 0
    assert made.rules["by"] == "positive (Scale by)"


def test_a_constant_one_is_folded_and_two_equal_ones_are_one() -> None:
    found = model(
        "(float[2] x) => (float[2] y) <float[2] w = {1, 2}, float by = {0.5}> "
        "{ c = acme.Scale(w, by) a = acme.Scale(x, by) b = acme.Scale(x, by) s = Add(a, b) "
        "y = Add(s, c) }"
    )
    result = optimize_model(found, passes=["fold_constant", "eliminate_common_subexpr"])
    assert [node.op_type for node in result.model.main.nodes] == ["Scale", "Add", "Add"]


def test_a_wrong_operand_is_named() -> None:
    found = model("(float[3] x, float[3] by) => (float[3] y) { y = acme.Scale(x, by) }")
    assert contrib_complaint(found) == "acme::Scale 'y': `by` is one number"
