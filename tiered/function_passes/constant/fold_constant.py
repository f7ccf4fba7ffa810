"""A node that reads only constants  =>  its outputs as constants"""

from tiered import Graph, PassContext, Size, function_pass
from tiered.runtime.fold.fold_constants import fold_constants


@function_pass(
    opt_level=2,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    touches=("*",),
)
def fold_constant(
    graph: Graph, ctx: PassContext, *, max_growth: Size = Size("1%"), max_tensor_size: int = -1
) -> None:
    """Compute nodes that do not depend on the inputs.

    A constant may take more bytes than the nodes it replaces, for example after ConstantOfShape,
    Expand, Tile or Range. All such nodes are folded, or none of them if the model would grow by
    more than `max_growth`.

    Args:
        max_growth: the most growth, in bytes or as a share of the model; at least 4 KiB.
        max_tensor_size: the most bytes of a computed constant; -1 for no limit.
    """
    model = graph.model
    if graph is model.main:
        # The growth is one decision for all graphs of the model.
        fold_constants(
            model,
            max_growth,
            ctx.skip,
            max_memory=ctx.max_memory,
            max_tensor_size=max_tensor_size,
        )
