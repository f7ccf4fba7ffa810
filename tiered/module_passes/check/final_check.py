"""A model that onnx.checker takes  =>  the same model, or an error"""

from tiered import Model, PassContext, module_pass


@module_pass(opt_level=0, analysis=True)
def final_check(model: Model, ctx: PassContext) -> None:
    """Hold the result against onnx.checker; a model that was invalid from the start is noted.

    Raises:
        ModelError: the passes made an invalid model.
    """
    model.check()
