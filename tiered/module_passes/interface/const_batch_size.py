"""Inputs whose first dim is dynamic  =>  inputs with a batch of the given size"""

from tiered import Model, PassContext, Skip, Unable, UsageError, Value, module_pass


@module_pass(opt_level=None, changes_interface=True)
def const_batch_size(
    model: Model,
    ctx: PassContext,
    *,
    batch_size: int = 1,
    keep: list[str] | None = None,
    only: list[str] | None = None,
) -> Skip | None:
    """Set the dynamic first dim of inputs to a size; a named dim becomes this size everywhere.

    Args:
        batch_size: the size.
        keep: inputs without a batch dim.
        only: the inputs with a batch; default: all but `keep`.

    Raises:
        UsageError: a named input does not exist, or the size is negative.
        ShapeError: the model requires another size, for example in a constant Reshape.
    """
    inputs = {value.name: value for value in model.main.inputs}
    for name in (*(keep or ()), *(only or ())):
        if name not in inputs:
            raise UsageError(f"the model has no input {name!r}; it has {', '.join(inputs)}")
    if batch_size < 0:
        raise UsageError(f"a batch cannot have the size {batch_size}")
    chosen = [
        value
        for name, value in inputs.items()
        if name not in (keep or ()) and name in (only or inputs) and not value.is_overridable
    ]
    batched = [value for value in chosen if _is_batched(value)]
    if not batched:
        if any(value.shape and value.shape[0] == batch_size for value in chosen):
            return Skip("the batch has this size already")
        return Unable("no input has a dynamic first dim; `change_batch` changes one that is fixed")
    shapes: dict[str, list[int | str]] = {
        value.name: [batch_size, *[-1] * (len(value.shape or ()) - 1)] for value in batched
    }
    model.set_input_shapes(shapes)
    return None


def _is_batched(value: Value) -> bool:
    shape = value.shape
    return shape is not None and len(shape) > 0 and not isinstance(shape[0], int)
