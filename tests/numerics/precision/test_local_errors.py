"""How far each node is off if only its own operands and outputs are rounded."""

import math
from typing import Any

import numpy as np
import pytest

from tests.small import content, made_by, named, ops, parsed
from tiered import DataType, Model
from tiered.numerics.precision.local_errors import local_errors

HALF = DataType.FLOAT16


def floats(*numbers: float) -> Any:
    return np.array(numbers, np.float32)


def errors(
    text: str,
    *samples: dict[str, Any],
    low: DataType = HALF,
    masks: dict[str, float] | None = None,
    rounded: bool = True,
) -> dict[str, float]:
    """Return the local error of each node by its output; the model is as it was."""
    model = parsed(text)
    before = content(model)
    limits = {named(model, name): limit for name, limit in (masks or {}).items()}
    found = local_errors(
        model, model.main.topological_order(), low, samples, limits, lambda node, place: rounded
    )
    assert content(model) == before
    return {node.output.name: error for node, error in found.items()}


def test_a_number_that_is_exact_has_no_error() -> None:
    text = "(float[2] x) => (float[2] y) { y = Mul(x, x) }"
    assert errors(text, {"x": floats(1, 2)}) == {"y": 0}


def test_operands_and_outputs_are_rounded() -> None:
    """2049 is 2048 in float16, and 2048**2 is beyond its range: 65504."""
    text = "(float[1] x) => (float[1] y, float[1] z) { y = Neg(x)  z = Mul(x, x) }"
    found = errors(text, {"x": floats(2049)})
    assert found["y"] == pytest.approx(1 / 2049)
    # Both are beyond the range: there is no finite number to compare.
    assert found["z"] == 0
    assert errors(text, {"x": floats(2049)}, rounded=False)["y"] == pytest.approx(1 / 2049)


def test_an_operand_that_stays_float_is_not_rounded() -> None:
    text = "(float[1] x) => (float[1] y) <float[1] k = {2048}> { y = Sub(x, k) }"
    assert errors(text, {"x": floats(2049)})["y"] == 1  # 0 instead of 1
    assert errors(text, {"x": floats(2049)}, rounded=False)["y"] == 0


def test_the_largest_of_all_samples_counts() -> None:
    text = "(float[1] x) => (float[1] y) { y = Neg(x) }"
    samples = [{"x": floats(number)} for number in (1, 2049, 2)]
    assert errors(text, *samples)["y"] == pytest.approx(1 / 2049)


def test_a_node_is_judged_by_its_own_rounding_alone() -> None:
    text = "(float[1] x) => (float[1] y) <float[1] k = {2048}> { a = Sub(x, k)  y = Neg(a) }"
    assert errors(text, {"x": floats(2049)}) == {"a": 1, "y": 0}


def test_elements_that_are_masked_do_not_count() -> None:
    text = "(float[2] x) => (float[2] y) { y = Neg(x) }"
    sample = {"x": floats(1, -30001)}
    assert errors(text, sample)["y"] > 0
    assert errors(text, sample, masks={"y": -20000})["y"] == 0


def test_what_is_no_number_has_no_error() -> None:
    text = "(float[2] x) => (float[2] y) { y = Neg(x) }"
    assert errors(text, {"x": floats(math.nan, 1)})["y"] == 0
    assert errors(text, {"x": floats(math.inf, 1)})["y"] == 0


def test_an_error_of_a_zero_is_infinite() -> None:
    text = "(float[1] x) => (float[1] y) <float[1] k = {2049}> { y = Sub(x, k) }"
    found = errors("(float[1] x) => (float[1] y) <float[1] k = {2049}, float[1] one = {1}> "
                   "{ a = Sub(x, k)  y = Neg(a) }", {"x": floats(2049)})  # fmt: skip
    assert found == {"a": 0, "y": 0}
    assert errors(text, {"x": floats(2049)}) == {"y": 0}
    text = "(float[1] x) => (float[1] y) { y = Floor(x) }"
    assert errors(text, {"x": floats(0.99999)})["y"] == math.inf  # 1 instead of 0


def test_results_of_other_types_differ_by_a_share_of_their_elements() -> None:
    text = "(float[4] x) => (bool[4] y) <float[1] k = {2048}> { y = Greater(x, k) }"
    found = errors(text, {"x": floats(2049, 1, 3000, 2048.5)})
    assert found["y"] == pytest.approx(math.sqrt(2 / 4))


def test_the_number_of_elements_may_differ() -> None:
    text = "(float[3] x) => (int64[1,N] y) { y = NonZero(x) }"
    assert errors(text, {"x": floats(1e-9, 1, 2)})["y"] == 1
    assert errors(text, {"x": floats(1, 1, 2)})["y"] == 0


def test_random_nodes_and_those_of_bodies_have_none() -> None:
    text = """(float[2] x, bool c) => (float[2] y) {
        r = RandomNormalLike(x)  a = Add(x, r)
        y = If(c) <then_branch = t () => (float[2] p) { p = Sin(a) },
                   else_branch = e () => (float[2] q) { q = Cos(a) }> }"""
    model = parsed(text)
    nodes = [node for graph in model.graphs() for node in graph.topological_order()]
    sample = {"x": floats(1, 2), "c": np.array(True)}
    found = local_errors(model, nodes, HALF, [sample], {}, lambda node, place: True)
    assert [node.output.name for node in found] == ["a"]


def test_other_operands_are_read_as_they_are() -> None:
    text = """(float[2] x, int64[1] i, double[2] d) => (float[1] y, double[2] z) {
        y = Gather(x, i)  z = Neg(d) }"""
    sample = {"x": floats(2049, 1), "i": np.array([0]), "d": np.array([2049.0, 1])}
    found = errors(text, sample)
    assert found["y"] == pytest.approx(1 / 2049)
    assert found["z"] == 0


def test_bfloat16_has_the_range_of_floats() -> None:
    text = "(float[1] x) => (float[1] y) { y = Mul(x, x) }"
    found = errors(text, {"x": floats(257)}, low=DataType.BFLOAT16)
    # 257 is 256 in bfloat16; 66049 is 65536.
    assert found["y"] == pytest.approx((66049 - 65536) / 66049)


def test_absent_operands_and_outputs_stay_absent() -> None:
    text = (
        "(float[2] x) => (float[2] y, float[2] z) <float most = {4096}, float[2] one = {1,1}>"
        ' { y = Clip(x, , most) z, "", v = LayerNormalization(x, one) }'
    )
    found = errors(text, {"x": floats(2049, 1)})
    assert found == {"y": pytest.approx(1 / 2049), "z": pytest.approx(0, abs=1e-3)}


def test_no_node_needs_no_probe() -> None:
    model = parsed("(float[1] x) => (float[1] y) { y = Neg(x) }")
    assert local_errors(model, [], HALF, [{"x": floats(1)}], {}, lambda node, place: True) == {}
    assert ops(model) == ["Neg"]
    assert isinstance(model, Model)
    assert made_by(model, "y").op_type == "Neg"
