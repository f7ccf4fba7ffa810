"""How much of a weight is zero: by elements, and by blocks of a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiered.support.errors import UsageError


@dataclass(frozen=True)
class BlockSparsity:
    """The blocks of a matrix.

    Attributes:
        block: rows and columns of a block.
        blocks: how many blocks the matrix has.
        occupied: how many of them have an element other than 0.0.
        rows: how many rows of blocks there are.
        nonzero: how many elements are other than 0.0.
        size: how many elements there are.
    """

    block: tuple[int, int]
    blocks: int
    occupied: int
    rows: int
    nonzero: int
    size: int

    @property
    def sparsity(self) -> float:
        """Return the share of elements that are 0.0."""
        return 1 - self.nonzero / self.size if self.size else 0.0

    @property
    def bsr_shape(self) -> list[int]:
        """Return the dims of data, indices and index pointers in BSR, one after the other."""
        return [self.occupied, *self.block, self.occupied, self.rows + 1]

    def __str__(self) -> str:
        height, width = self.block
        share = self.occupied / self.blocks if self.blocks else 0.0
        return (
            f"{self.sparsity:.0%} of the elements are zero; {share:.0%} of the blocks of "
            f"{height}x{width} are not"
        )


def block_sparsity(matrix: NDArray[Any], block: tuple[int, int]) -> BlockSparsity:
    """Count the blocks of a matrix that are not zero; -0.0 is not zero.

    Raises:
        UsageError: it is no matrix, or the blocks do not divide it.
    """
    height, width = block
    if matrix.ndim != 2 or height < 1 or width < 1:
        raise UsageError(f"blocks of {height}x{width} of a tensor {list(matrix.shape)}")
    if matrix.shape[0] % height or matrix.shape[1] % width:
        raise UsageError(f"blocks of {height}x{width} do not divide a matrix {list(matrix.shape)}")
    filled = (matrix != 0) | np.signbit(matrix)
    rows, columns = matrix.shape[0] // height, matrix.shape[1] // width
    occupied = filled.reshape(rows, height, columns, width).any(axis=(1, 3))
    return BlockSparsity(
        block, rows * columns, int(occupied.sum()), rows, int(filled.sum()), matrix.size
    )
