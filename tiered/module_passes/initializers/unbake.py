"""A weight in the model file  =>  the same weight in external data"""

from tiered import Model, PassContext, Size, Skip, module_pass, size_in_bytes
from tiered.rewriter.idioms.main_tensors import initializers_matching


@module_pass(opt_level=None, conflicts=("bake_parameters",))
def unbake(
    model: Model, ctx: PassContext, *, tensors: tuple[str, ...] = (), min_size: Size = Size("1KB")
) -> Skip | None:
    """Let the saved model have weights in the file beside it: `<name>.onnx.data`.

    The model in memory stays whole; the file of weights is written when the model is saved.

    Args:
        tensors: names or globs of initializers, in bodies too; all by default.
        min_size: smaller weights stay in the model file.

    Raises:
        UsageError: a name or glob matches no initializer.
    """
    least = max(size_in_bytes(min_size, model.nbytes), 1)
    found = [
        (value, tensor)
        for value in initializers_matching(model, tensors, "unbake")
        if (tensor := value.default) is not None and tensor.nbytes >= least
        if not tensor.is_external and tensor.place != "data"
    ]
    movable = [(value, tensor) for value, tensor in found if tensor.can_be_external]
    if not found:
        return Skip("no such weight is in the model file")
    if not movable:
        return Skip("sparse tensors and strings are never external")
    for value, tensor in movable:
        with value.owner.rewrite("a weight in the model file => an external one", value):
            value.owner.set_constant(value, tensor.placed("data"))
    return None
