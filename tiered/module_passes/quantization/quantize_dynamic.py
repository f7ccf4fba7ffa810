"""MatMul(x, w), Gemm(x, w)  =>  Cast(MatMulInteger(DynamicQuantizeLinear(x), w)) * scales"""

from typing import Literal

from tiered import Model, PassContext, module_pass
from tiered.numerics.precision.few_bits.returning import OutputBudget
from tiered.numerics.quantization.dynamic import quantize_dynamically
from tiered.support.numerics import FEW_BITS


@module_pass(
    opt_level=None,
    required=("inline", "eliminate_deadend", "fold_constant"),
    followed_by=("eliminate_unused_initializer", "eliminate_deadend"),
    touches=("Conv", "ConvTranspose", "Gemm", "MatMul"),
    numerics=FEW_BITS,
)
def quantize_dynamic(
    model: Model,
    ctx: PassContext,
    *,
    convolutions: bool = False,
    reduce_range: bool | None = None,
    processor: Literal["here", "avx2", "vnni", "any"] = "here",
    skip_op_types: tuple[str, ...] = (),
    skip_nodes: tuple[str, ...] = (),
    budget: str = "",
    inputs: tuple[str, ...] = (),
    seed: int = 0,
    samples: int = 2,
) -> None:
    """Multiply by constant weights in integers of 8 bits, with the range of data in each run.

    An activation is quantised once, whatever the number of its consumers.

    Args:
        convolutions: quantise Conv too, which onnxruntime computes slowly.
        reduce_range: 7 bits for weights; by default 8.
        processor: where the result runs: on x86-64 without VNNI (avx2, any) pairs of weights are
            limited, so that their products do not saturate.
        skip_op_types: operators that stay float.
        skip_nodes: globs of the names of nodes that stay float.
        budget: how far outputs may move, as `sqnr>=20dB`; the worst products return to float.
        inputs: files and folders of samples to measure the budget on; made without any.
        seed: of generated inputs.
        samples: how many inputs are made.
    """
    quantize_dynamically(
        model,
        ctx.remark,
        ctx.skip,
        convolutions=convolutions,
        reduce_range=reduce_range,
        processor=None if processor == "here" else processor,
        skip_op_types=skip_op_types,
        skip_nodes=skip_nodes,
        budget=OutputBudget(limit=budget, inputs=inputs, seed=seed, samples=samples),
    )
