"""Sizes that the runtime refuses are learned from its message or the constants, and named."""

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from tests.small import parsed
from tiered import optimize_model
from tiered.runtime import feasible_inputs
from tiered.runtime.inputs.refused import learned_sizes, sizes_of_constants
from tiered.support.errors import RuntimeFailure
from tiered.testing import parse


def model(text: str, **weights: Any) -> Any:
    made = parse(text)
    for name, array in weights.items():
        made.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    return made


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def test_the_numbers_of_a_message_are_tried_in_the_place_of_others() -> None:
    message = (
        "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running Add node. "
        "Name:'Add_12' Status Message: /src/element_wise_ops.h:560 void Init(ptrdiff_t) "
        "axis == 1 || axis == largest was false. Attempting to broadcast an axis by a dimension "
        "other than 1. 8 by 24"
    )
    found = [*learned_sizes(message, {"batch": 2, "length": 24})]
    assert found[0] == {"length": 8}
    assert all(size not in (12, 560) for each in found for size in each.values())
    shifted = [*learned_sizes("Status Message: 8 by 22", {"length": 24})]
    assert shifted[0] == {"length": 10}
    assert [*learned_sizes("no number", {"length": 24})] == []


@pytest.mark.parametrize(
    ("status", "size", "first"),
    [
        ("8 by 6", 2, [4]),
        ("{24,4} {3,8,4}", 7, [7]),
        ("{48} {24}", 2, [1]),
        ("{48}", 2, []),
        ("{0,3} {4}", 3, [4]),
        ("{24} {0}", 2, []),
        ("{24} {-24}", 24, []),
    ],
)
def test_a_size_stays_above_zero(status: str, size: int, first: list[int]) -> None:
    found = [each["n"] for each in learned_sizes(f"Status Message: {status}", {"n": size})]
    assert found[: len(first)] == first
    assert all(each > 0 for each in found)


def test_the_sizes_of_constants_are_dims_and_a_few_integers() -> None:
    text = """(float[N] x) => (float[M] y) <float[1,3] w = {1,1,1}, float[2] f = {9,9},
        int64[6] s = {1,11,12,13,14,15}, int64[7] t = {21,21,21,21,21,21,21}> {
        a = Add(x, w)  b = Add(a, f)  c = Reshape(b, s)  d = Clip(c, , x)  y = Reshape(d, t) }"""
    graph = parsed(text).main
    found = [each["N"] for each in sizes_of_constants(graph, ["N"])]
    assert found == [3, 2, 6, 11, 12, 13, 14, 15, 7]
    assert [*sizes_of_constants(graph, [])] == []


LENGTHS: dict[str, tuple[str, dict[str, Any], dict[str, tuple[int, ...]]]] = {
    "add": (
        "(float[batch,length,6] x, float[batch,length] z) => (y) { a = Add(z, w)  y = Neg(x) }",
        {"w": ones(8)},
        {"length": (8, 1)},
    ),
    "reshape": (
        "(float[batch,length,4] x) => (y) { a = Identity(x)  b = Reshape(a, s)  y = Add(b, w) }",
        {"s": np.array([0, 8, 2, 2]), "w": ones(8, 1, 1)},
        {"length": (8,)},
    ),
    "split": (
        "(float[batch,length,4] x, float[batch,other] z) => (p, q, o) { p, q = Split<axis=1>(x, s) "
        "o = Add(z, w) }",
        {"s": np.array([5, 14]), "w": ones(9)},
        {"length": (19,), "other": (9,)},
    ),
    "conv": (
        "(float[batch,2,length] x) => (y) { c = Conv<kernel_shape=[3]>(x, k)  y = Add(c, w) }",
        {"k": ones(3, 2, 3), "w": ones(1, 8)},
        {"length": (10, 3)},
    ),
    "matmul": (
        "(float[batch,length,4] x) => (y) { t = Transpose<perm=[0,2,1]>(x)  y = MatMul(t, w) }",
        {"w": ones(17, 3)},
        {"length": (17,)},
    ),
    "concat": (
        "(float[batch,length,4] x, float[batch,n,4] z) => (y) { b = Concat<axis=1>(x, z) "
        "y = Add(b, w) }",
        {"w": ones(40, 4)},
        {},
    ),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_a_length_that_inner_operators_fix_is_found(name: str) -> None:
    text, weights, expected = LENGTHS[name]
    found = feasible_inputs(model(text, **weights))
    for dim, sizes in expected.items():
        assert found.dims[dim] in sizes
    assert "accepted at try" in found.rules["*"]


def test_the_shapes_of_a_message_have_as_many_elements() -> None:
    text = "(float[batch,length,4] x) => (y) { a = Neg(x)  b = Reshape(a, s)  y = Reshape(b, t) }"
    given = model(text, s=np.array([0, 3, 8, 4]), t=np.array([0, 24, 4]))
    assert feasible_inputs(given, binding=1).dims["length"] == 24


def test_the_verified_run_names_the_sizes() -> None:
    text, weights, _ = LENGTHS["reshape"]
    result = optimize_model(model(text, **weights), verify=True)
    assert result.verify is not None
    for sample in result.verify.samples:
        assert sample.inputs.dims["length"] == 8
        assert "length = 8: learned from the runtime" in str(sample)


class _Refusing:
    """A runtime whose messages name larger and larger sizes."""

    inputs: tuple[str, ...] = ("x",)
    outputs: tuple[str, ...] = ("y",)

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def run(self, feeds: Any, outputs: Any = None) -> Any:
        self.sizes.append(sum(array.size for array in feeds.values()))
        raise RuntimeFailure(f"Status Message: {64 ** len(self.sizes)} by 2")


def test_dims_that_are_learned_do_not_grow_until_memory_ends() -> None:
    runtime = _Refusing()
    with pytest.raises(RuntimeFailure, match="found no inputs"):
        feasible_inputs(model("(float[m,m,n] x) => (y) { y = Neg(x) }"), session=runtime)
    assert len(runtime.sizes) > 2
    assert max(runtime.sizes) < 1 << 25
