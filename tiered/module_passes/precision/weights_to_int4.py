"""Constant weights  =>  DequantizeLinear of uint4, with a scale and a zero point for each block"""

from typing import Literal

from tiered import Model, PassContext, module_pass
from tiered.numerics.precision.few_bits.formats import int4_format, int8_format
from tiered.numerics.precision.few_bits.returning import OutputBudget
from tiered.numerics.precision.few_bits.sampled_operands import Sampling
from tiered.numerics.precision.few_bits.weights import quantize_weights


@module_pass(
    opt_level=None,
    followed_by=("eliminate_unused_initializer",),
    touches=("Conv", "Gather", "Gemm", "MatMul"),
    numerics="lossy",
)
def weights_to_int4(
    model: Model,
    ctx: PassContext,
    *,
    block_size: int = 32,
    min_elements: int = 1024,
    skip_op_types: tuple[str, ...] = (),
    skip_nodes: tuple[str, ...] = (),
    budget: str = "",
    inputs: tuple[str, ...] = (),
    seed: int = 0,
    samples: int = 8,
    rounding: Literal["samples", "nearest"] = "samples",
    sensitive: Literal["int8", "int4"] = "int8",
) -> None:
    """Store weights of Conv, Gather, Gemm and MatMul in four bits.

    Those of MatMul and Gemm are rounded so that their errors cancel on samples of the inputs; the
    others, and those that gain nothing by it, to nearest with the least squared error of a block.

    Args:
        block_size: the numbers that share a scale and a zero point.
        min_elements: smaller weights stay.
        skip_op_types: operators that keep their weights.
        skip_nodes: globs of the names of nodes that keep their weights.
        budget: the limit of the outputs, as cosine>=0.999; weights return to float until it holds;
            empty for none.
        inputs: files of samples: x.npy, feeds.npz or a folder; made without any, for a model of up
            to 256 MiB of weights.
        seed: of generated inputs.
        samples: how many inputs are made.
        rounding: samples runs the model; nearest does not.
        sensitive: the type of tables that a Gather reads, of kernels of Conv, and of the weights of
            the last products, whose rounding costs most; int8 leaves few kernels in float that
            would decide the error of the outputs.
    """
    is_sampled = rounding == "samples"
    quantize_weights(
        model,
        int4_format(block_size),
        ctx.remark,
        ctx.skip,
        min_elements=min_elements,
        skip_op_types=skip_op_types,
        skip_nodes=skip_nodes,
        budget=OutputBudget(limit=budget, inputs=inputs, seed=seed, samples=samples),
        sampling=Sampling(inputs=inputs, seed=seed, samples=samples) if is_sampled else None,
        sensitive=int8_format(0) if sensitive == "int8" else None,
    )
