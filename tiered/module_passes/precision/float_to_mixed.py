"""Tensors of float  =>  tensors of float16 or bfloat16, where measured outputs allow it"""

from typing import Literal

from tiered import DataType, Model, PassContext, module_pass
from tiered.numerics.precision.lower import PrecisionRules
from tiered.numerics.precision.mixed import mixed_precision


@module_pass(
    opt_level=None,
    required=("inline", "eliminate_deadend"),
    followed_by=("eliminate_nop_cast", "eliminate_unused_initializer", "eliminate_deadend"),
    touches=("*",),
    numerics="lossy",
    interface_options={"keep_io_types": False},
)
def float_to_mixed(
    model: Model,
    ctx: PassContext,
    *,
    to: Literal["fp16", "bf16"] = "fp16",
    budget: str = "",
    inputs: tuple[str, ...] = (),
    order: Literal["auto", "error", "sensitivity"] = "auto",
    max_error: float = 0.05,
    keep_io_types: bool = True,
    skip_op_types: tuple[str, ...] = (),
    skip_nodes: tuple[str, ...] = (),
    force_op_types: tuple[str, ...] = (),
    force_nodes: tuple[str, ...] = (),
    seed: int = 0,
    samples: int = 2,
) -> None:
    """Compute in a narrower type but for nodes that are measured to need float.

    These are nodes with values near the limit of the type or beyond it, those with a large error
    of their own, and as many of the others as it takes for a budget on the outputs.

    Args:
        to: the narrower type.
        budget: the limit of the outputs: cosine>=0.999, sqnr>=40, relative<=1e-3, max_abs<=0.1 or
            mean_abs<=0.01; empty for none.
        inputs: files to measure on: x.npy, feeds.npz or a folder; made without any.
        order: the worst nodes for a budget by their own error, or by its effect on the outputs, by
            gradients; auto is the effect, and the error where an operator has no gradient.
        max_error: a node with a larger error of its own, L2 error / L2 norm, stays float.
        keep_io_types: inputs and outputs of the model stay float.
        skip_op_types: operators that stay float.
        skip_nodes: globs of the names of nodes that stay float.
        force_op_types: operators that do not, if the schema allows it.
        force_nodes: globs of the names of nodes that do not.
        seed: of generated inputs.
        samples: how many inputs are made.
    """
    mixed_precision(
        model,
        DataType.FLOAT16 if to == "fp16" else DataType.BFLOAT16,
        ctx.remark,
        ctx.skip,
        rules=PrecisionRules(
            skip_op_types=skip_op_types,
            skip_nodes=skip_nodes,
            force_op_types=force_op_types,
            force_nodes=force_nodes,
            backend=ctx.backend if ctx.names_backend else None,
        ),
        budget=budget,
        order=order,
        inputs=inputs,
        max_error=max_error,
        keep_io_types=keep_io_types,
        seed=seed,
        samples=samples,
    )
