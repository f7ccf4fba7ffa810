"""Conv, ConvTranspose, Gemm, MatMul  =>  the same on operands that are quantised to float8"""

from typing import Literal

from tiered import Model, PassContext, module_pass
from tiered.numerics.precision.few_bits.exponents import Exponents
from tiered.numerics.precision.few_bits.float8 import Float8Settings, quantize_to_float8

Format = Literal["E4M3FN", "E4M3FNUZ", "E5M2", "E5M2FNUZ", "F143", "F152"]


@module_pass(
    opt_level=None,
    required=("inline",),
    followed_by=("eliminate_unused_initializer",),
    touches=("Conv", "ConvTranspose", "Gemm", "MatMul"),
    numerics="lossy",
)
def float_to_fp8(
    model: Model,
    ctx: PassContext,
    *,
    format: Format = "E4M3FN",
    weight_format: Format = "E4M3FN",
    exponent: int | None = None,
    weight_exponent: int | None = None,
    exponents: tuple[str, ...] = (),
    weight_exponents: tuple[str, ...] = (),
    inputs: tuple[str, ...] = (),
    seed: int = 0,
    samples: int = 8,
    min_elements: int = 1024,
    skip_op_types: tuple[str, ...] = (),
    skip_nodes: tuple[str, ...] = (),
    budget: str = "",
) -> None:
    """Quantise data and weights of products to float8, as QDQ; fp8_weight does it for weights only.

    Args:
        format: the type of data; F143 and F152 are Graphcore's: E4M3FNUZ and E5M2FNUZ.
        weight_format: the type of weights.
        exponent: the scale of all data is 2 to this power; none for the largest measured number.
        weight_exponent: the same for weights; none for the largest number of each channel.
        exponents: other exponents of data by node, as `encoder/*=-3`; the name may be a glob.
        weight_exponents: the same for weights.
        inputs: files to measure on: x.npy, feeds.npz or a folder; made without any.
        seed: of generated inputs.
        samples: how many inputs are made.
        min_elements: smaller weights stay.
        skip_op_types: operators that stay float.
        skip_nodes: globs of the names of nodes that stay float.
        budget: the limit of the outputs, as cosine>=0.999; products return to float until it holds;
            empty for none.
    """
    settings = Float8Settings(
        format=format,
        weight_format=weight_format,
        exponents=Exponents.of(exponent, exponents),
        weight_exponents=Exponents.of(weight_exponent, weight_exponents),
        inputs=inputs,
        seed=seed,
        samples=samples,
        min_elements=min_elements,
        skip_op_types=skip_op_types,
        skip_nodes=skip_nodes,
        budget=budget,
    )
    quantize_to_float8(model, settings, ctx.remark, ctx.skip)
