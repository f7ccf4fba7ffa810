"""A model that onnx.checker and the target accept  =>  the same model, or an error"""

from tiered import Model, PassContext, Skip, TargetError, module_pass
from tiered.passes.validity import check_result
from tiered.targets.lost_kernels import note_float_weights


@module_pass(opt_level=0, analysis=True)
def final_check(model: Model, ctx: PassContext) -> None:
    """Check the result with onnx.checker; a model that was invalid before is a remark.

    The check covers dtypes and dims, also the declared ones of outputs. If the context names a
    backend, operators that it does not support are remarks. Under `strict` both are errors.

    Raises:
        ModelError: the passes made an invalid model, or it was invalid and the context is strict.
        TargetError: the backend does not support the model, and the context is strict.
    """
    check_result(model, ctx)
    if not ctx.names_backend:
        return
    note_float_weights(model, ctx.backend)
    coverage = ctx.backend.coverage(model)
    for gap in coverage.gaps:
        for node in gap.nodes:
            ctx.skip(node, Skip("{} does not take it: {}", ctx.backend, "; ".join(gap.reasons)))
    for refusal in coverage.model:
        ctx.skip(None, Skip("{} does not take the model: {}", ctx.backend, refusal))
    if ctx.strict and not coverage.is_met:
        gaps = [*map(str, coverage.gaps), *map(str, coverage.model)]
        raise TargetError(f"{ctx.backend} does not take the model: {'; '.join(gaps[:5])}")
