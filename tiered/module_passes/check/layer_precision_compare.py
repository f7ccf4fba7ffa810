"""A model  =>  the same model, with the difference of each layer from the original in the report"""

from tiered import Model, PassContext, module_pass
from tiered.extensions.debug.as_loaded import layers_against_loaded
from tiered.numerics.precision.narrowing import unmatched


@module_pass(opt_level=None, analysis=True)
def layer_precision_compare(
    model: Model,
    ctx: PassContext,
    *,
    origin_model: str = "",
    operators: list[str] = ["Conv", "Gemm", "MatMul"],  # noqa: B006 - an option: nothing edits it
    seed: int = 0,
) -> None:
    """Compare layers of the original and of the model of this place on generated inputs.

    A remark states the largest difference and 1 - cosine of each layer: the closer to 0, the
    smaller the error. Layers are paired by the name of their output.

    Args:
        origin_model: the file of the original; by default the model as it was loaded.
        operators: only the outputs of these; empty for all.
        seed: of the generated inputs.

    Raises:
        UsageError: an operator does not exist.
    """
    for text in unmatched(model, operators, ()):
        ctx.remark(text)
    found = layers_against_loaded(model, original=origin_model, seed=seed)
    for layer in found.layers:
        if not operators or layer.op_type in operators:
            ctx.remark(f"{layer.op_type} {layer.second}: {layer}")
