"""A weight that is mostly zeros  =>  the same weight, stored as its other elements"""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from tiered import (
    DataType,
    Model,
    PassContext,
    Skip,
    Tensor,
    Unable,
    UsageError,
    Value,
    module_pass,
)
from tiered.rewriter.idioms.main_tensors import initializers_matching
from tiered.rewriter.idioms.sparsity import block_sparsity

_SMALLEST = 64


@module_pass(opt_level=None)
def dense_to_sparse(
    model: Model,
    ctx: PassContext,
    *,
    tensors: tuple[str, ...] = (),
    threshold: float = 0.3,
    block: tuple[int, ...] = (),
) -> Skip | None:
    """Store weights as `sparse_initializer`, in coordinates: a smaller file, the same bits.

    A runtime makes them dense at load, so nothing runs faster. A -0.0 is an element as any other.
    Other passes do not fold a sparse weight; so this is one of the last.

    Args:
        tensors: names or globs of initializers; all by default.
        threshold: the share of elements that are not zero, at most; each takes 12 bytes, not 4.
        block: rows and columns of blocks, for a remark about each matrix that they divide: the
            share of its elements and blocks that is zero. It decides nothing.

    Raises:
        UsageError: a name or glob matches no initializer, `threshold` is no share, or `block` is
            not two sizes.
    """
    if model.ir_version < 6:
        return Unable("the IR version has no sparse initializers")
    if block and (len(block) != 2 or min(block) < 1):
        raise UsageError(f"dense_to_sparse: a block has rows and columns, not {list(block)}")
    if not 0 <= threshold <= 1:
        raise UsageError(f"dense_to_sparse: threshold is a share from 0 to 1, not {threshold:g}")
    values = initializers_matching(model, tensors, "dense_to_sparse")
    if block:
        _report_blocks(ctx, values, (block[0], block[1]))
    reasons = [_store_sparse(value, threshold) for value in values]
    for reason in dict.fromkeys(reasons):
        if reason is not None:
            ctx.skip(None, reason)
    return None


def _report_blocks(ctx: PassContext, values: Sequence[Value], block: tuple[int, int]) -> None:
    """Remark on the blocks of each float matrix that they divide."""
    for value in values:
        shape = value.static_shape
        is_divided = shape is not None and len(shape) == 2 and value.dtype == DataType.FLOAT
        if not is_divided or any(dim % size for dim, size in zip(shape or (), block, strict=True)):
            continue
        array = value.const
        if array is not None:
            ctx.remark(f"{value.name}: {block_sparsity(array, block)}")


def _store_sparse(value: Value, threshold: float) -> Skip | None:
    """Replace the contents of an initializer if it is sparse; return why not otherwise."""
    tensor = value.default
    if tensor is None or tensor.is_sparse:
        return Skip("it is sparse already")
    if value.is_graph_input or value.is_graph_output or not value.owner.is_main:
        return Skip("it is no constant of the main graph")
    if tensor.dtype != DataType.FLOAT:
        return Skip("it is not of float32")
    if tensor.size < _SMALLEST:
        return Skip("it has fewer than {} elements", _SMALLEST)
    array = tensor.numpy().ravel()
    # By bits: -0.0 is not 0.0.
    (places,) = np.nonzero(array.view(np.uint32))
    if not len(places) or len(places) > threshold * array.size:
        return Skip("too few or too many elements are not zero")
    proto = onnx.SparseTensorProto(dims=tensor.shape)
    proto.values.CopyFrom(numpy_helper.from_array(array[places], value.name))
    proto.indices.CopyFrom(numpy_helper.from_array(places.astype(np.int64)))
    with value.owner.rewrite("a dense weight => a sparse one", value):
        value.owner.set_constant(value, Tensor(proto))
    return None
