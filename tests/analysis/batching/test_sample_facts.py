"""How samples are laid out in a tensor, and arithmetic on sizes."""

import pytest

from tests.small import parsed
from tiered.analysis.batching.sample_facts import (
    BatchRefusal,
    BatchRows,
    RefusedTensor,
    mentions,
    product,
)
from tiered.graph.shape_inference.symbolic_dims import add, multiply, size_of_dim

N, M = size_of_dim("N"), size_of_dim("M")


@pytest.mark.parametrize(
    ("rows", "is_whole"),
    [
        (BatchRows(0), True),
        (BatchRows(2, step=3), True),
        (BatchRows(0, 2), False),
        (BatchRows(0, 1, 4), False),
    ],
)
def test_an_axis_is_whole_without_outer_and_inner_neighbours(
    rows: BatchRows, is_whole: bool
) -> None:
    assert rows.is_whole == is_whole


def test_the_size_of_an_axis_is_outer_by_batch_by_inner() -> None:
    assert BatchRows(1, 2, 3).size(5) == 30
    assert BatchRows(1, 2, 3).size(N) == multiply(6, N)
    assert BatchRows(0).size(4) == 4


def test_samples_of_another_axis_are_laid_out_as_before() -> None:
    assert BatchRows(1, 2, 3, 4).on(0) == BatchRows(0, 2, 3, 4)


def test_a_size_mentions_the_dims_that_it_is_computed_of() -> None:
    assert mentions(N, "N")
    assert mentions(add(multiply(M, N), 1), "N")
    assert not mentions(M, "N")
    assert not mentions(3, "N")
    assert not mentions(None, "N")


def test_a_product_is_known_if_all_sizes_are() -> None:
    assert product(()) == 1
    assert product((2, 3)) == 6
    assert product((2, N, 3)) == multiply(6, N)
    assert product((2, None)) is None


def test_a_refusal_has_its_reason_and_the_fact_that_it_comes_from() -> None:
    (node,) = parsed("(float[2] x) => (float[2] y) { y = Neg(x) }").main.nodes
    origin = RefusedTensor(node, "before")
    assert str(BatchRefusal("why")) == "why"
    assert BatchRefusal("why").origin is None
    assert BatchRefusal("why", origin).origin is origin
