"""The names of `tvm.relay.analysis.sparse_dense`: which weights are worth a sparse form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tiered.compat.tvm.running.modules import model_with
from tiered.graph import Model, Value
from tiered.rewriter.idioms.sparsity import block_sparsity
from tiered.support.errors import UsageError

__all__ = ["SparseAnalysisResult", "process_params"]


class SparseAnalysisResult(NamedTuple):
    """The weights that are sparse enough, and their shapes in BSR."""

    weight_name: list[str]
    weight_shape: list[list[int]]


def process_params(
    expr: Any,
    params: Mapping[str, Any] | None,
    block_size: tuple[int, int],
    sparsity_threshold: float,
) -> SparseAnalysisResult:
    """Return the weights of products that are zero to a share of their elements, at least.

    Args:
        expr: the model, or its main graph.
        params: the weights to look at, by name; None for all. Their elements are those of the
            model.
        block_size: rows and columns of a block.
        sparsity_threshold: the share of zeros, at least.

    Raises:
        UsageError: the model has no such weight.
    """
    model = model_with(expr)
    found = SparseAnalysisResult([], [])
    weights = {value.name: value for value in _weights(model)}
    known = {value.name for graph in model.graphs() for value in graph.initializers}
    if params is not None and (missing := sorted(set(params) - known)):
        raise UsageError(f"the model has no weight {', '.join(map(repr, missing))}")
    for name, value in weights.items():
        array = value.const
        if array is None or array.ndim != 2 or (params is not None and name not in params):
            continue
        if any(dim % size for dim, size in zip(array.shape, block_size, strict=True)):
            continue
        blocks = block_sparsity(array, block_size)
        if blocks.sparsity >= sparsity_threshold:
            found.weight_name.append(name)
            found.weight_shape.append(blocks.bsr_shape)
    return found


def _weights(model: Model) -> list[Value]:
    """Return the constants that products multiply by, in the order of the nodes."""
    found = [
        value
        for graph in model.graphs()
        for node in graph.topological_order()
        if node.op_type in ("Gemm", "MatMul") and not node.domain
        for value in (node.given(0), node.given(1))
        if value.is_constant
    ]
    return list(dict.fromkeys(found))
