"""Tensors of float  =>  tensors of float16, with Casts where float has to stay"""

from tiered import DataType, Model, PassContext, UsageError, module_pass
from tiered.numerics.precision.lower import PrecisionRules, RuledNarrowing, lower_precision
from tiered.numerics.precision.mixed import in_range


@module_pass(
    opt_level=None,
    required=("inline", "eliminate_deadend"),
    followed_by=("eliminate_nop_cast", "eliminate_unused_initializer", "eliminate_deadend"),
    touches=("*",),
    numerics="lossy",
    interface_options={"keep_io_types": False},
)
def float_to_half(
    model: Model,
    ctx: PassContext,
    *,
    keep_io_types: bool = True,
    skip_op_types: tuple[str, ...] = (),
    skip_nodes: tuple[str, ...] = (),
    force_op_types: tuple[str, ...] = (),
    force_nodes: tuple[str, ...] = (),
    measure: bool = False,
    inputs: tuple[str, ...] = (),
    seed: int = 0,
    samples: int = 2,
) -> None:
    """Compute in float16 where the schemas of the operators allow it.

    Args:
        keep_io_types: inputs and outputs of the model stay float.
        skip_op_types: operators that stay float.
        skip_nodes: globs of the names of nodes that stay float.
        force_op_types: operators that do not, if the schema allows it.
        force_nodes: globs of the names of nodes that do not.
        measure: run the model: what leaves the range of float16 on inputs stays float.
        inputs: files to measure on: x.npy, feeds.npz or a folder; made without any.
        seed: of generated inputs.
        samples: how many inputs are made.

    Raises:
        UsageError: inputs are given, and nothing is measured on them.
    """
    if inputs and not measure:
        raise UsageError("inputs have no effect without measure: nothing is measured on them")
    rules = PrecisionRules(
        skip_op_types=skip_op_types,
        skip_nodes=skip_nodes,
        force_op_types=force_op_types,
        force_nodes=force_nodes,
        backend=ctx.backend if ctx.names_backend else None,
    )

    def measured() -> RuledNarrowing:
        return in_range(
            model,
            DataType.FLOAT16,
            rules,
            ctx.remark,
            inputs=inputs,
            keep_io_types=keep_io_types,
            seed=seed,
            samples=samples,
        )

    lower_precision(
        model,
        DataType.FLOAT16,
        ctx.remark,
        ctx.skip,
        keep_io_types=keep_io_types,
        rules=rules,
        measured=measured if measure else None,
    )
