"""Constant weights  =>  DequantizeLinear of float8, with a scale for each channel"""

from typing import Literal

from tiered import Model, PassContext, module_pass
from tiered.numerics.precision.few_bits.codes import FLOAT8
from tiered.numerics.precision.few_bits.exponents import Exponents
from tiered.numerics.precision.few_bits.formats import float8_format
from tiered.numerics.precision.few_bits.returning import OutputBudget
from tiered.numerics.precision.few_bits.weights import quantize_weights


@module_pass(
    opt_level=None,
    followed_by=("eliminate_unused_initializer",),
    touches=("Conv", "Gather", "Gemm", "MatMul"),
    numerics="lossy",
)
def fp8_weight(
    model: Model,
    ctx: PassContext,
    *,
    format: Literal["E4M3FN", "E4M3FNUZ", "E5M2", "E5M2FNUZ", "F143", "F152"] = "E4M3FN",
    exponent: int | None = None,
    exponents: tuple[str, ...] = (),
    min_elements: int = 1024,
    skip_op_types: tuple[str, ...] = (),
    skip_nodes: tuple[str, ...] = (),
    budget: str = "",
    inputs: tuple[str, ...] = (),
    seed: int = 0,
    samples: int = 2,
) -> None:
    """Store weights in float8; Conv, Gather, Gemm and MatMul read them.

    Args:
        format: the type; F143 and F152 are Graphcore's, which are E4M3FNUZ and E5M2FNUZ.
        exponent: all scales are 2 to this power; none for the largest number of each channel.
        exponents: other exponents by node, as `encoder/*=-3`; the name may be a glob.
        min_elements: smaller weights stay.
        skip_op_types: operators that keep their weights.
        skip_nodes: globs of the names of nodes that keep their weights.
        budget: the limit of the outputs, as cosine>=0.999; weights return to float until it holds;
            empty for none.
        inputs: files to measure the budget on: x.npy, feeds.npz or a folder; made without any.
        seed: of generated inputs.
        samples: how many inputs are made.
    """
    scales = Exponents.of(exponent, exponents)
    for text in scales.findings(model):
        ctx.remark(text)
    quantize_weights(
        model,
        float8_format(FLOAT8[format], scales),
        ctx.remark,
        ctx.skip,
        min_elements=min_elements,
        skip_op_types=skip_op_types,
        skip_nodes=skip_nodes,
        budget=OutputBudget(limit=budget, inputs=inputs, seed=seed, samples=samples),
    )
