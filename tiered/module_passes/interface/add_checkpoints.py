"""A tensor of the main graph  =>  the same tensor, and it is also an output"""

from tiered import Model, PassContext, Skip, Unable, UsageError, module_pass
from tiered.rewriter.idioms.main_tensors import tensor_named


@module_pass(opt_level=None, required=("infer_shapes",), changes_interface=True)
def add_checkpoints(
    model: Model, ctx: PassContext, *, tensors: tuple[str, ...] = ()
) -> Skip | None:
    """Append tensors to the outputs, under their own names: PopRT's add_checkpoints.

    A tensor that is an output already is not appended again.

    Args:
        tensors: the names of the tensors, in the order of the new outputs.

    Raises:
        UsageError: the main graph has no such tensor, or its dtype is unknown.
    """
    if not tensors:
        return Unable("no tensors are given")
    found = [tensor_named(model, name, "add_checkpoints") for name in tensors]
    for value in found:
        if value.type is None:
            raise UsageError(
                f"add_checkpoints: the dtype of {value.name!r} is unknown; declare it in value_info"
            )
    new = [value for value in found if not value.is_graph_output]
    if not new:
        return Skip("all tensors are outputs")
    for value in new:
        model.main.add_output(value)
    return None
