"""A model whose outputs are those of the original, bit for bit  =>  the same model, or an error"""

from tiered import Model, PassContext, module_pass
from tiered.extensions.debug.as_loaded import compare_with_loaded


@module_pass(opt_level=None, analysis=True)
def verify_equality(
    model: Model, ctx: PassContext, *, origin_model: str = "", seed: int = 0
) -> None:
    """Run the original and the model of this place on generated inputs: every bit must be the same.

    Args:
        origin_model: the file of the original; by default the model as it was loaded.
        seed: of the generated inputs.

    Raises:
        VerificationError: an output differs.
    """
    found = compare_with_loaded(model, original=origin_model, numerics="exact", seed=seed)
    for text in found.remarks("outputs are those of the original, bit for bit"):
        ctx.remark(text)
