"""Tensors of float  =>  tensors of bfloat16, with Casts where float has to stay"""

from tiered import DataType, Model, PassContext, module_pass
from tiered.numerics.precision.lower import PrecisionRules, lower_precision


@module_pass(
    opt_level=None,
    required=("inline", "eliminate_deadend"),
    followed_by=("eliminate_nop_cast", "eliminate_unused_initializer", "eliminate_deadend"),
    touches=("*",),
    numerics="lossy",
    interface_options={"keep_io_types": False},
)
def float_to_bfloat16(
    model: Model,
    ctx: PassContext,
    *,
    keep_io_types: bool = True,
    skip_op_types: tuple[str, ...] = (),
    skip_nodes: tuple[str, ...] = (),
    force_op_types: tuple[str, ...] = (),
    force_nodes: tuple[str, ...] = (),
) -> None:
    """Compute in bfloat16 where the schemas of the operators allow it.

    Args:
        keep_io_types: inputs and outputs of the model stay float.
        skip_op_types: operators that stay float.
        skip_nodes: globs of the names of nodes that stay float.
        force_op_types: operators that do not, if the schema allows it.
        force_nodes: globs of the names of nodes that do not.
    """
    lower_precision(
        model,
        DataType.BFLOAT16,
        ctx.remark,
        ctx.skip,
        keep_io_types=keep_io_types,
        rules=PrecisionRules(
            skip_op_types=skip_op_types,
            skip_nodes=skip_nodes,
            force_op_types=force_op_types,
            force_nodes=force_nodes,
            backend=ctx.backend if ctx.names_backend else None,
        ),
    )
