"""Shape(f(x))  =>  Shape(x), if f keeps the shape: Cast, activations, normalizations"""

from typing import Final

from tiered import DataType, Graph, PassContext, Skip, Value, function_pass
from tiered.graph.queries.shape_sources import shape_source

# Shape supports these at every opset; runtimes lack kernels for the newer, smaller dtypes.
_READ: Final = frozenset(dtype for dtype in DataType if dtype < DataType.BFLOAT16)


@function_pass(opt_level=1, matches=("Shape", "Size"))
def eliminate_cast_before_shape(graph: Graph, ctx: PassContext) -> None:
    """Read the shape of the first value that has it, so that equal shapes are one value."""
    for node in (*graph.nodes_of("Shape"), *graph.nodes_of("Size")):
        y = node.given(0)
        if y is (x := shape_source(y)):
            continue
        if x.dtype not in _READ:
            ctx.skip(node, Skip("Shape may not support the dtype of x"))
        elif not _is_known_as_well(x, y):
            ctx.skip(node, Skip("the input has a more exact shape"))
        else:
            with graph.rewrite("Shape(f(x)) => Shape(x)", node):
                graph.set_input(node, 0, x)
                assert y.producer is not None
                y.owner.prune([y.producer])


def _is_known_as_well(x: Value, y: Value) -> bool:
    if x.shape is None or y.shape is None:
        return y.shape is None
    return len(x.shape) == len(y.shape) and all(
        a == b or isinstance(a, int) or (a is not None and not isinstance(b, int))
        for a, b in zip(x.shape, y.shape, strict=True)
    )
