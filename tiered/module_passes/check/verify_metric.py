"""A model whose outputs are close to the original's by a metric  =>  the same, or an error"""

from tiered import Model, PassContext, module_pass
from tiered.extensions.debug.as_loaded import compare_with_loaded


@module_pass(opt_level=None, analysis=True)
def verify_metric(
    model: Model,
    ctx: PassContext,
    *,
    metric: str = "cosine",
    accepted: list[float] = [0.99, 1.01],  # noqa: B006 - an option: nothing edits it
    origin_model: str = "",
    seed: int = 0,
) -> None:
    """Run the original and the model of this place on generated inputs, and judge them by a metric.

    Args:
        metric: cosine, argmax_agreement, top_5_agreement, mispredictions, max_abs_error or
            mean_abs_error.
        accepted: its lowest and highest value.
        origin_model: the file of the original; by default the model as it was loaded.
        seed: of the generated inputs.

    Raises:
        VerificationError: the metric of an output is outside of the range.
        UsageError: there is no such metric.
    """
    found = compare_with_loaded(
        model, original=origin_model, metric=metric, accepted=accepted, seed=seed
    )
    for text in found.remarks(f"{metric} of the outputs and the original's is in {accepted}"):
        ctx.remark(text)
