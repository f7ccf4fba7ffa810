"""The share of zeros of a weight, and the blocks of it that have others."""

import numpy as np
import pytest

from tiered.rewriter.idioms.sparsity import BlockSparsity, block_sparsity
from tiered.support.errors import UsageError


def test_blocks_with_another_element_than_0_are_counted() -> None:
    matrix = np.zeros((4, 6), np.float32)
    matrix[1, 2], matrix[3, 5] = 1, -0.0
    found = block_sparsity(matrix, (2, 3))
    assert found == BlockSparsity((2, 3), 4, 2, 2, 2, 24)
    assert found.sparsity == pytest.approx(22 / 24)
    assert found.bsr_shape == [2, 2, 3, 2, 3]
    assert str(found) == "92% of the elements are zero; 50% of the blocks of 2x3 are not"


def test_a_matrix_without_elements_has_no_share() -> None:
    found = block_sparsity(np.zeros((0, 6), np.float32), (2, 3))
    assert (found.sparsity, found.blocks, found.rows) == (0.0, 0, 0)
    assert str(found).endswith("0% of the blocks of 2x3 are not")


def test_a_block_may_be_one_element() -> None:
    found = block_sparsity(np.array([[1, 0, 2]], np.float32), (1, 1))
    assert found == BlockSparsity((1, 1), 3, 2, 1, 2, 3)


@pytest.mark.parametrize(
    ("shape", "block", "because"),
    [
        ((4,), (1, 1), r"blocks of 1x1 of a tensor \[4\]"),
        ((4, 4), (0, 1), "blocks of 0x1 of a tensor"),
        ((4, 4), (1, 0), "blocks of 1x0 of a tensor"),
        ((4, 6), (3, 3), r"blocks of 3x3 do not divide a matrix \[4, 6\]"),
        ((4, 6), (2, 4), "blocks of 2x4 do not divide"),
    ],
)
def test_blocks_divide_a_matrix(
    shape: tuple[int, ...], block: tuple[int, int], because: str
) -> None:
    with pytest.raises(UsageError, match=because):
        block_sparsity(np.zeros(shape, np.float32), block)
