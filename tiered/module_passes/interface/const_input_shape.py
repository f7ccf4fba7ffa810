"""Inputs with dynamic dims  =>  inputs with the given dims"""

from tiered import Model, PassContext, Skip, Unable, module_pass


@module_pass(opt_level=None, changes_interface=True)
def const_input_shape(
    model: Model,
    ctx: PassContext,
    *,
    shape: dict[str, list[int | str]] | None = None,
    dim: dict[str, int | str] | None = None,
) -> Skip | None:
    """Set the dims of inputs; a named dim becomes its size wherever the name occurs.

    Args:
        shape: dims by input name: a size, a name, or -1 to keep the dim.
        dim: a size or a new name by dim name, for all inputs with this dim.

    Raises:
        UsageError: an input or dim does not exist, or a size or name is not valid.
        ShapeError: an input has another rank or size, or the model requires another size, for
            example in a constant Reshape.
    """
    if not shape and not dim:
        return Unable("no shape is given")
    model.set_input_shapes(shape or {}, dim)
    return None
