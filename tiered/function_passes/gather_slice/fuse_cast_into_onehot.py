"""Cast(OneHot(i, d, values))  =>  OneHot(i, d, Cast(values)), OneHot(Cast(i))  =>  OneHot(i)"""

from typing import Final

from tiered import DataType, Graph, Node, Skip, Value, op, rewrite, var

_casts = op.Cast(
    op.OneHot(var.indices, var.depth, var.values, axis=var.axis), to=var.to
) | op.OneHot(op.Cast(var.indices, to=var.to), var.depth, var.values, axis=var.axis)

F32, I32, I64, TEXT = DataType.FLOAT, DataType.INT32, DataType.INT64, DataType.STRING
_KERNELS: Final = frozenset(
    {(F32, F32, F32), (F32, I64, I64), (F32, I64, TEXT), (I64, F32, F32), (I64, F32, I32),
     (I64, I64, F32), (I64, I64, I64), (I64, I64, TEXT), (I64, I32, F32), (I32, F32, F32),
     (I32, I32, F32)}
)  # fmt: skip
"""Dtypes of indices, depth and values that onnxruntime computes; it takes float16 as float32."""


@rewrite(_casts, opt_level=2)
def fuse_cast_into_onehot(
    graph: Graph, indices: Value, depth: Value, values: Value, axis: int, to: int, node: Node
) -> Value | Skip:
    """Cast the two values instead of all the result, or no index where the dtype holds each one."""
    if node.op_type == "OneHot":
        if (indices.dtype, to) != (I32, I64):
            return Skip("the Cast may change an index")
        if not _has_kernel(indices.dtype, depth.dtype, values.dtype):
            return Skip("no runtime has a kernel for these dtypes")
        return graph.op.OneHot(indices, depth, values, axis=axis)
    if values.tensor is None:
        return Skip("values is not a constant")
    converted = values.tensor.converted(to)
    if converted is None:
        return Skip("a value changes in the new dtype")
    if not _has_kernel(indices.dtype, depth.dtype, to):
        return Skip("no runtime has a kernel for the dtype")
    return graph.op.OneHot(indices, depth, converted.numpy(), axis=axis)


def _has_kernel(*dtypes: int | None) -> bool:
    return tuple(F32 if dtype == DataType.FLOAT16 else dtype for dtype in dtypes) in _KERNELS
