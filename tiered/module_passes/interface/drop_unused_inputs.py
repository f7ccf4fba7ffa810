"""A graph input that no node reads  =>  nothing"""

from tiered import Model, PassContext, Skip, module_pass
from tiered.rewriter.idioms.main_tensors import input_named


@module_pass(opt_level=None, changes_interface=True)
def drop_unused_inputs(
    model: Model, ctx: PassContext, *, keep: tuple[str, ...] = ()
) -> Skip | None:
    """Remove inputs of the model without users; an unused default goes with its input.

    Args:
        keep: inputs that stay.

    Raises:
        UsageError: the model has no such input.
    """
    kept = [input_named(model, name, "drop_unused_inputs") for name in keep]
    unused = [value for value in model.main.inputs if not value.is_used and value not in kept]
    if not unused:
        return Skip("every input is used or kept")
    model.main.remove_inputs(unused)
    for value in unused:
        if value.is_initializer:
            model.main.remove_constant(value)
    return None
