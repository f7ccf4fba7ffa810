"""`bsr_dense.convert`: analyse the weights of products, then store the sparse ones so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tiered.compat.tvm.constructors import DenseToSparse
from tiered.compat.tvm.running.modules import applied
from tiered.compat.tvm.sparse_dense import process_params

__all__ = ["convert"]


def convert(
    func: Any,
    params: Mapping[str, Any] | None,
    blocksize: tuple[int, int],
    sparsity_threshold: float,
    filter_func: Callable[[Any], bool] | None = None,
) -> tuple[Any, Mapping[str, Any] | None]:
    """Return the model with sparse weights, and the params as they are.

    ONNX stores coordinates of elements, not blocks; the blocks decide nothing.

    Args:
        func: a `tiered.Model`, which is edited and returned; or a ModelProto or a main graph, which
            stay.
        params: the weights to look at, by name; None for all.
        blocksize: rows and columns of a block.
        sparsity_threshold: the share of zeros from which on a weight is stored so.
        filter_func: called with the model first; a false result leaves it as it is.
    """
    if filter_func is not None and not filter_func(func):
        return func, params
    found = process_params(func, params, blocksize, sparsity_threshold)
    if not found.weight_name:
        return func, params
    return applied(DenseToSparse(found.weight_name, found.weight_shape), func), params
