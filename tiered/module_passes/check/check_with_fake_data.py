"""A model whose outputs are within tolerance of the original's  =>  the same model, or an error"""

from tiered import Model, PassContext, module_pass
from tiered.extensions.debug.as_loaded import compare_with_loaded


@module_pass(opt_level=None, analysis=True)
def check_with_fake_data(
    model: Model,
    ctx: PassContext,
    *,
    origin_model: str = "",
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
) -> None:
    """Run the original and the model of this place on generated inputs, and compare their outputs.

    Dtypes, shapes, NaN and infinities count; integer inputs are valid indices. Both must take
    the same inputs, so it belongs after passes that change the interface, with `origin_model`.
    Of outputs that are random the dtypes alone are compared.

    Args:
        origin_model: the file of the original; by default the model as it was loaded.
        rtol: instead of the tolerance of reassociated floats, relative to each element.
        atol: the same, relative to the largest element.
        seed: of the generated inputs.

    Raises:
        VerificationError: the outputs differ by more than is allowed.
    """
    found = compare_with_loaded(model, original=origin_model, rtol=rtol, atol=atol, seed=seed)
    for text in found.remarks("outputs are those of the original, within tolerance"):
        ctx.remark(text)
