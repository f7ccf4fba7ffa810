"""A node that reads only constants  =>  what it computes, as a constant"""

from tiered import Graph, PassContext, Size, fold_constants, function_pass


@function_pass(
    opt_level=2,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    acts_on=("*",),
)
def fold_constant(
    graph: Graph, ctx: PassContext, *, max_growth: Size = Size("1%"), max_tensor_size: int = -1
) -> None:
    """Compute at once what does not depend on the inputs.

    A constant may take more bytes than the nodes it replaces. Such constants are folded all
    together, or none of them if the model would grow by more than `max_growth`, so that
    ConstantOfShape, Expand, Tile and Range do not blow it up.

    Args:
        max_growth: bytes, or a share of the model, by which it may grow; at least 4 KiB.
        max_tensor_size: the bytes of the largest constant that is computed; -1 for no limit.
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
