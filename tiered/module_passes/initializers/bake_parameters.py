"""A weight in external data  =>  the same weight in the model file"""

from tiered import Model, PassContext, Size, Skip, module_pass, size_in_bytes
from tiered.rewriter.idioms.main_tensors import initializers_matching


@module_pass(opt_level=None, conflicts=("unbake",))
def bake_parameters(
    model: Model, ctx: PassContext, *, tensors: tuple[str, ...] = (), max_size: Size = Size("1GiB")
) -> Skip | None:
    """Let the saved model file hold weights that are in other files now; no byte is read before.

    The other weights stay external. A model file has at most 2 GiB: saving a larger one is an
    error. Weights do not become those that quantisation leaves, as PPQ bakes them: that is
    `QuantableOperation.baking_parameters` of `tiered.compat.ppq`.

    Args:
        tensors: names or globs of initializers, in bodies too; all by default.
        max_size: larger weights stay external.

    Raises:
        UsageError: a name or glob matches no initializer.
        ModelError: a file with weights is missing or too short.
    """
    most = size_in_bytes(max_size, model.nbytes)
    found = [
        (value, tensor)
        for value in initializers_matching(model, tensors, "bake_parameters")
        if (tensor := value.default) is not None and tensor.nbytes <= most
        if tensor.is_external or tensor.place == "data"
    ]
    if not found:
        return Skip("no such weight is in external data")
    for value, tensor in found:
        with value.owner.rewrite("an external weight => one in the model file", value):
            value.owner.set_constant(value, tensor.placed("model"))
    return None
