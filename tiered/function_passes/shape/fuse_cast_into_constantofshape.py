"""Cast(ConstantOfShape(shape, value), to=T)  =>  ConstantOfShape(shape, value as T)"""

from typing import Final

import numpy as np

from tiered import DataType, Graph, Skip, Tensor, Value, op, rewrite, var

# The dtypes of ConstantOfShape at every opset.
_MADE: Final = frozenset(
    {DataType.BOOL, DataType.DOUBLE, DataType.FLOAT, DataType.FLOAT16, DataType.INT16,
     DataType.INT32, DataType.INT64, DataType.INT8, DataType.UINT16, DataType.UINT32,
     DataType.UINT64, DataType.UINT8}
)  # fmt: skip


@rewrite(op.Cast(op.ConstantOfShape(var.shape, value=var.value), to=var.to), opt_level=1)
def fuse_cast_into_constantofshape(
    graph: Graph, shape: Value, value: Tensor | None, to: int
) -> Value | Skip:
    """Fill the tensor in the target dtype, if that keeps its number."""
    if to not in _MADE:
        return Skip("ConstantOfShape may not support the dtype")
    converted = (value or Tensor.of(np.zeros(1, np.float32))).converted(to)
    if converted is None:
        return Skip("the number changes in the new dtype")
    return graph.op.ConstantOfShape(shape, value=converted)
