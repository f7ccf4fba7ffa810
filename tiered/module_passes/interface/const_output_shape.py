"""Outputs with inferred sizes  =>  outputs that declare these sizes"""

from tiered import Model, PassContext, Skip, module_pass


@module_pass(opt_level=None, required=("infer_shapes",), changes_interface=True)
def const_output_shape(model: Model, ctx: PassContext) -> Skip | None:
    """Declare inferred sizes where outputs and value_info have symbolic or unknown dims.

    Exporters name each output dim separately, and the names remain when the inputs get sizes.
    Dims that are declared with a size or are not known are not changed.
    """
    before = model.mark()
    model.declare_known_sizes()
    return None if model.changed_since(before) else Skip("no more sizes are known than declared")
