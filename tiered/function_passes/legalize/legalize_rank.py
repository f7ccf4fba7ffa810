"""Operators on tensors of a high rank  =>  the same on tensors with fewer axes"""

from tiered import Graph, PassContext, function_pass


@function_pass(opt_level=1, required=("infer_shapes",), touches=("*",))
def legalize_rank(graph: Graph, ctx: PassContext, *, max_rank: int = 0) -> None:
    """Merge neighbouring axes, and split Transposes into several, where the target needs it.

    All operators that share tensors of a high rank are rewritten together, or none of them. No
    element changes.

    Args:
        max_rank: the highest rank; 0 is that of the backend.
    """
    most = max_rank or (ctx.backend.max_rank if ctx.names_backend else None)
    if most is not None:
        # With a rule for each operator, which few targets need.
        from tiered.analysis.axes.low_rank import lower_ranks

        lower_ranks(graph, ctx.skip, most)
