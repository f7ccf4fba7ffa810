"""Requests for products in parts, and the products."""

import numpy as np
import pytest

from tests.small import made_by, named, ops, parsed
from tiered.module_passes.memory._product_parts import (
    Cut,
    Dim,
    cut_by_bytes,
    product_in_parts,
    requested_cuts,
)
from tiered.rewriter.skip import Skip
from tiered.runtime import run_reference
from tiered.support.errors import UsageError


def test_a_request_names_the_node_the_parts_and_perhaps_the_dim() -> None:
    found = requested_cuts(["a=2", "b=c=3/inner", "a=4"], "rows", "p")
    assert found == {"a": Cut("rows", 2), "b=c": Cut("inner", 3)}


@pytest.mark.parametrize("entry", ["a", "=2", "a=0", "a=-1", "a=x", "a=2/depth", "a="])
def test_what_is_no_request_is_an_error_with_the_dims(entry: str) -> None:
    with pytest.raises(UsageError, match=r"p: a split .* columns, rows, inner"):
        requested_cuts([entry], "rows", "p")


PRODUCT = "(float[8,4] x, float[4,6] w) => (float[8,6] y) { y = MatMul(x, w) }"


@pytest.mark.parametrize(
    ("dim", "max_bytes", "parts"),
    [
        ("columns", 96, None),  # 4 * 6 floats are just as many
        ("columns", 95, 2),  # five columns fit: 5 and 1
        ("columns", 32, 3),
        ("columns", 1, 6),
        ("inner", 48, 2),
        ("rows", 191, 2),
        ("rows", 192, None),
        ("rows", 0, None),
    ],
)
def test_the_least_parts_in_which_whole_columns_or_rows_fit(
    dim: Dim, max_bytes: int, parts: int | None
) -> None:
    expected = None if parts is None else Cut(dim, parts)
    assert cut_by_bytes(made_by(parsed(PRODUCT), "y"), dim, max_bytes) == expected


def test_a_product_of_unknown_size_is_not_cut_by_bytes() -> None:
    model = parsed(PRODUCT.replace("[4,6]", "[4,N]").replace("[8,6]", "[8,N]"))
    assert cut_by_bytes(made_by(model, "y"), "columns", 1) is None


@pytest.mark.parametrize("dim", ["columns", "rows", "inner"])
def test_parts_and_bias_have_the_numbers_of_the_whole(dim: Dim) -> None:
    model = parsed(PRODUCT.replace("float[4,6] w)", "float[4,6] w, float[6] b)"))
    graph, node = model.main, made_by(model, "y")
    made = product_in_parts(graph, node, Cut(dim, 3), named(model, "b"))
    assert not isinstance(made, Skip)
    graph.replace(node, (made,))
    graph.prune(graph.nodes)
    assert ops(model).count("MatMul") == 3
    assert ops(model).count("Add") == 3
    rng = np.random.default_rng(0)
    feeds = {
        "x": rng.integers(-4, 5, (8, 4)).astype(np.float32),
        "w": rng.integers(-4, 5, (4, 6)).astype(np.float32),
        "b": rng.integers(-4, 5, (6,)).astype(np.float32),
    }
    (result,) = run_reference(model.to_proto(), feeds).values()
    np.testing.assert_array_equal(result, feeds["x"] @ feeds["w"] + feeds["b"])


@pytest.mark.parametrize(
    ("text", "cut", "because"),
    [
        ("(float[4] x, float[4,6] w) => (float[6] y)", Cut("columns", 2), "not a matrix"),
        ("(float[8,N] x, float[N,6] w) => (float[8,6] y)", Cut("inner", 2), "not known"),
        ("(float[8,4] x, float[4,6] w) => (float[8,6] y)", Cut("inner", 5), "shorter than 5"),
        ("(float16[8,4] x, float16[4,6] w) => (float16[8,6] y)", Cut("inner", 2), "half"),
    ],
)
def test_what_stays_whole(text: str, cut: Cut, because: str) -> None:
    model = parsed(f"{text} {{ y = MatMul(x, w) }}")
    made = product_in_parts(model.main, made_by(model, "y"), cut)
    assert isinstance(made, Skip)
    assert because in str(made)


def test_a_bias_of_another_size_along_the_dim_is_in_the_way() -> None:
    model = parsed(
        """(float[1,4] x, float[4,1] w, float[6] b) => (float[1,6] y)
        { a = MatMul(x, w)  y = Add(a, b) }"""
    )
    made = product_in_parts(model.main, made_by(model, "a"), Cut("columns", 1), named(model, "b"))
    assert str(made) == "the bias has another size along the dim"
