"""Transpose(x)  =>  Reshape(x, shape), if all dims that change their order are 1"""

from typing import Final

import numpy as np

from tiered import DataType, Graph, Skip, Value, op, rewrite, var

_BYTE: Final = 8


@rewrite(op.Transpose(var.x, perm=var.perm), opt_level=2, required=("infer_shapes",))
def replace_transpose_with_reshape(
    graph: Graph, x: Value, perm: tuple[int, ...] | None
) -> Value | Skip:
    """View the elements in another shape: they stay in their order, so none is moved."""
    if x.shape is None:
        return Skip("the shape of x is not known")
    if x.dtype is not None and 0 < DataType(x.dtype).bits < _BYTE:
        return Skip("onnxruntime reshapes no elements smaller than a byte")
    shape = x.shape
    perm = tuple(perm) if perm else tuple(reversed(range(len(shape))))
    if sorted(perm) != [*range(len(shape))]:
        return Skip("perm is no permutation of the axes of x")
    wide = [axis for axis in perm if shape[axis] != 1]
    if wide != sorted(wide):
        return Skip("it changes the order of elements")
    sizes = [shape[axis] for axis in perm]
    if sum(not isinstance(size, int) for size in sizes) > 1:
        return Skip("several dims have no size")
    target = [size if isinstance(size, int) else -1 for size in sizes]
    if 0 in target:
        return Skip("a 0 in shape copies a dim of x")
    return graph.op.Reshape(x, np.array(target, np.int64))
