"""Constant weights  =>  DequantizeLinear of int8, with a scale for each channel or block"""

from tiered import Model, PassContext, module_pass
from tiered.numerics.precision.few_bits.formats import int8_format
from tiered.numerics.precision.few_bits.returning import OutputBudget
from tiered.numerics.precision.few_bits.weights import quantize_weights


@module_pass(
    opt_level=None,
    followed_by=("eliminate_unused_initializer",),
    touches=("Conv", "Gather", "Gemm", "MatMul"),
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
    budget: str = "",
    inputs: tuple[str, ...] = (),
    seed: int = 0,
    samples: int = 2,
) -> None:
    """Store weights in int8; Conv, Gather, Gemm and MatMul read them.

    Args:
        block_size: the numbers that share a scale; 0 for a scale for each channel.
        min_elements: smaller weights stay.
        skip_op_types: operators that keep their weights.
        skip_nodes: globs of the names of nodes that keep their weights.
        budget: the limit of the outputs, as cosine>=0.999; weights return to float until it holds;
            empty for none.
        inputs: files to measure the budget on: x.npy, feeds.npz or a folder; made without any.
        seed: of generated inputs.
        samples: how many inputs are made.
    """
    quantize_weights(
        model,
        int8_format(block_size),
        ctx.remark,
        ctx.skip,
        min_elements=min_elements,
        skip_op_types=skip_op_types,
        skip_nodes=skip_nodes,
        budget=OutputBudget(limit=budget, inputs=inputs, seed=seed, samples=samples),
    )
