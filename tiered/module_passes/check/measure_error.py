"""A model  =>  the same model, with the error of its outputs in the report"""

from tiered import Model, PassContext, module_pass
from tiered.numerics.precision.budget import budget_of
from tiered.numerics.precision.measurement import measured_error


@module_pass(opt_level=None, analysis=True)
def measure_error(
    model: Model,
    ctx: PassContext,
    *,
    inputs: tuple[str, ...] = (),
    seed: int = 0,
    samples: int = 2,
    max_bytes: int = 268435456,
    budget: str = "",
) -> None:
    """Compare the outputs with those of the model as it was loaded: cosine, relative L2 error.

    Models with floats of 16 bits or fewer are judged by onnx.reference, large ones by onnxruntime
    with Casts that round each value.

    Args:
        inputs: files to measure on: x.npy, feeds.npz or a folder; made without any.
        seed: of generated inputs.
        samples: how many inputs are made.
        max_bytes: a model with more bytes of weights is not run, if there is no budget.
        budget: an error unless the outputs are within it, as cosine>=0.999; empty for none.

    Raises:
        VerificationError: the budget does not hold.
    """
    found = measured_error(
        model,
        inputs=inputs,
        seed=seed,
        samples=samples,
        max_bytes=max_bytes,
        budget=budget_of(budget) if budget else None,
    )
    ctx.remark(found)
