"""Branches of one input become one node and a Split, with the numbers that they had."""

from typing import Any

import numpy as np
import pytest

from tests.small import made_by, ops, parsed
from tiered.graph import Model, Node
from tiered.rewriter.idioms.parallel_branches import (
    combine_branches,
    only_reader,
    parallel_branches,
)
from tiered.runtime import run_reference

ROWS = """(float[2,3] x) => (float[2,2] y, float[2,1] z) <float[3,2] v = {1,2,3,4,5,6},
    float[3,1] w = {7,8,9}, float[2] b = {10,20}, float[1] c = {30}> """
IMAGE = """(float[1,2,3] x) => (float[1,1,3] y, float[1,2,3] z) <float[1,2,1] v = {1,2},
    float[2,2,1] w = {3,4,5,6}, float[1] b = {7}> """


def combined(text: str, *, branches: int = 2, depth: int = 1) -> tuple[Model, list[str]]:
    """Return a model whose branches of one operator were combined, and why some were not."""
    model, reasons = parsed(text), list[str]()

    def skip(node: Node, reason: Any) -> None:
        reasons.append(str(reason))

    def key(node: Node) -> str | None:
        return node.op_type if node.op_type in ("MatMul", "Conv", "Gemm") else None

    combine_branches(model.main, key, skip, min_num_branches=branches, min_depth=depth)
    model.main.prune(model.main.nodes)
    return model, reasons


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ROWS + "{ y = MatMul(x, v)  z = MatMul(x, w) }", ["MatMul", "Split"]),
        (
            ROWS + "{ p = MatMul(x, v)  q = MatMul(x, w)  y = Add(p, b)  z = Add(c, q) }",
            ["MatMul", "Add", "Split"],
        ),
        (
            ROWS + "{ p = MatMul(x, v)  q = MatMul(x, w)  y = Relu(p)  z = Relu(q) }",
            ["MatMul", "Relu", "Split"],
        ),
        (
            ROWS + "{ p = MatMul(x, v)  q = MatMul(x, w)  y = Relu(p)  z = Abs(q) }",
            ["MatMul", "Split", "Relu", "Abs"],
        ),
        (
            ROWS + "{ p = MatMul(x, v)  q = MatMul(x, w)  y = Elu<alpha = 2.0>(p)  z = Elu(q) }",
            ["MatMul", "Split", "Elu", "Elu"],
        ),
        (
            ROWS + "{ p = MatMul(x, v)  q = MatMul(x, w)  y = Add(p, b)  z = Neg(q) }",
            ["MatMul", "Split", "Add", "Neg"],
        ),
        (
            ROWS + "{ p = MatMul(x, v)  q = MatMul(x, w)  y = Add(p, c)  z = Add(q, c) }",
            ["MatMul", "Split", "Add", "Add"],
        ),
        (
            ROWS + "{ p = MatMul(x, v)  q = MatMul(x, w)  y = Add(p, p)  z = Add(q, q) }",
            ["MatMul", "Split", "Add", "Add"],
        ),
        (
            ROWS + "{ p = MatMul(x, v)  q = MatMul(x, w)  y = Softmax(p)  z = Softmax(q) }",
            ["MatMul", "Split", "Softmax", "Softmax"],
        ),
        (
            ROWS + "{ p = MatMul(x, v)  q = MatMul(x, w)  r = Neg(p)  s = Neg(q)  y = Abs(r)"
            "  z = Abs(s) }",
            ["MatMul", "Neg", "Abs", "Split"],
        ),
        (
            ROWS.replace("float[3,2] v", "float[2,3] v").replace("float[3,1] w", "float[1,3] w")
            + "{ y = Gemm<transB = 1>(x, v)  z = Gemm<transB = 1>(x, w, c) }",
            ["Gemm", "Split"],
        ),
        (IMAGE + "{ y = Conv(x, v)  z = Conv(x, w) }", ["Conv", "Split"]),
        (ROWS + "{ y = Gemm(x, v, b)  z = Gemm(x, w, c) }", ["Gemm", "Split"]),
        (ROWS + "{ y = Gemm(x, v, b)  z = Gemm(x, w) }", ["Gemm", "Split"]),
        (IMAGE + "{ y = Conv(x, v, b)  z = Conv(x, w) }", ["Conv", "Split"]),
    ],
)
def test_branches_are_one_node_with_the_same_numbers(text: str, expected: list[str]) -> None:
    model, reasons = combined(text)
    assert reasons == []
    assert ops(model) == expected
    before = parsed(text).to_proto()
    shape = (1, 2, 3) if "Conv" in text else (2, 3)
    feeds = {"x": np.random.default_rng(0).integers(-4, 5, shape).astype(np.float32)}
    found, wanted = run_reference(model.to_proto(), feeds), run_reference(before, feeds)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize(
    ("nodes", "options", "reason"),
    [
        ("y = MatMul(x, v)  z = MatMul(x, w)", {"branches": 3}, "there are 2 parallel branches"),
        ("y = MatMul(x, v)  z = MatMul(x, w)", {"depth": 4}, "sums of length 3 are too short"),
        ("y = MatMul(x, v)  q = MatMul(x, w)  r = Neg(w)  s = MatMul(x, r)  z = Add(q, s)", {},
         "a weight has other consumers"),
    ],
)  # fmt: skip
def test_why_branches_stay_apart(nodes: str, options: dict[str, int], reason: str) -> None:
    def key_of_constants(node: Node) -> str | None:
        weight = node.input(1)
        is_weight = weight is not None and weight.is_constant
        return node.op_type if node.op_type == "MatMul" and is_weight else None

    model, reasons = parsed(f"{ROWS}{{ {nodes} }}"), list[str]()
    combine_branches(
        model.main, key_of_constants, lambda node, why: reasons.append(str(why)),
        min_num_branches=options.get("branches", 2), min_depth=options.get("depth", 1),
    )  # fmt: skip
    assert reasons == [reason]
    assert "Split" not in ops(model)


def test_groups_have_one_input_and_one_key() -> None:
    model = parsed(
        """(float[2] x, float[2] z) => (float[2] y) {
        a = Neg(x)  b = Neg(x)  c = Neg(z)  d = Abs(x)  e = Abs(x)  y = Sum(a, b, c, d, e) }"""
    )
    found = parallel_branches(
        model.main, lambda node: node.op_type if node.op_type != "Sum" else None
    )
    assert [[node.output.name for node in group] for group in found] == [["a", "b"], ["d", "e"]]


def test_the_only_reader_is_in_the_same_graph() -> None:
    model = parsed(
        """(float[2] x, bool p) => (float[2] y, float[2] c) { a = Neg(x)  b = Abs(x)  c = Exp(b)
        d = Exp(x)
        y = If(p) <then_branch = t () => (float[2] u) { u = Neg(d) },
                   else_branch = e () => (float[2] v) { v = Abs(a) }> }"""
    )
    reader = only_reader(made_by(model, "b"))
    assert reader is not None
    assert reader.output.name == "c"
    assert only_reader(made_by(model, "c")) is None
    assert only_reader(made_by(model, "a")) is None
    assert only_reader(made_by(model, "d")) is None


def test_enough_branches_of_enough_products_are_combined() -> None:
    text = ROWS + "{ y = MatMul(x, v)  z = MatMul(x, w) }"
    assert ops(combined(text, branches=2, depth=3)[0]) == ["MatMul", "Split"]
    _, reasons = combined(IMAGE + "{ y = Conv(x, v, b)  z = Conv(x, w) }", depth=3)
    assert reasons == ["sums of length 2 are too short"]
    turned = ROWS.replace("float[3,2] v", "float[2,3] v").replace("float[3,1] w", "float[1,3] w")
    _, reasons = combined(turned + "{ y = Gemm<transB = 1>(x, v)  z = Gemm<transB = 1>(x, w) }",
                          depth=4)  # fmt: skip
    assert reasons == ["sums of length 3 are too short"]


def test_branches_of_a_constant_are_none() -> None:
    model = parsed("(float[2] x) => (float[2] y) <float[2] c = {1,2}>"
                   " { a = Neg(c)  b = Neg(c)  y = Sum(a, b, x) }")  # fmt: skip
    assert list(parallel_branches(model.main, lambda node: node.op_type)) == []
