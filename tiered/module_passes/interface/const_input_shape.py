"""Inputs with dynamic dims  =>  inputs with the dims that are given"""

from tiered import Model, PassContext, Skip, module_pass


@module_pass(opt_level=None, changes_interface=True)
def const_input_shape(
    model: Model,
    ctx: PassContext,
    *,
    shape: dict[str, list[int | str]] | None = None,
    dim: dict[str, int | str] | None = None,
) -> Skip | None:
    """Fix the dims of inputs; a name of a dim becomes its size wherever it occurs.

    Args:
        shape: the dims by name of the input: a size, a name, or -1 to leave the dim as it is.
        dim: a size or another name by name of the dim, for all inputs that have it.

    Raises:
        UsageError: there is no such input or dim, or a size or a name is none.
        ShapeError: it has another rank or size, or the model only works with other sizes, as where
            a batch was written into a Reshape.
    """
    if not shape and not dim:
        return Skip("no shape is given")
    model.set_input_shapes(shape or {}, dim)
    return None
