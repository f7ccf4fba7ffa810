"""Constant weights  =>  DequantizeLinear of int8, with a scale for each channel or block"""

from tiered import Model, PassContext, int8_format, module_pass, quantise_weights


@module_pass(
    opt_level=None,
    followed_by=("eliminate_unused_initializer",),
    acts_on=("Conv", "Gather", "Gemm", "MatMul"),
    numerics="lossy",
)
def weights_to_int8(
    model: Model,
    ctx: PassContext,
    *,
    block_size: int = 0,
    min_elements: int = 1024,
    skip_op_types: tuple[str, ...] = (),
    skip_nodes: tuple[str, ...] = (),
) -> None:
    """Store weights in int8; Conv, Gather, Gemm and MatMul read them.

    Args:
        block_size: 0 for a scale for each channel; else so many numbers share one.
        min_elements: smaller weights stay.
        skip_op_types: operators whose weights stay.
        skip_nodes: globs of the names of nodes whose weights stay.
    """
    quantise_weights(
        model,
        int8_format(block_size),
        ctx.remark,
        ctx.skip,
        min_elements=min_elements,
        skip_op_types=skip_op_types,
        skip_nodes=skip_nodes,
    )
