"""Outputs with dims that are inferred as sizes  =>  outputs that declare these sizes"""

from tiered import Model, PassContext, Skip, module_pass


@module_pass(opt_level=None, required=("infer_shapes",), changes_interface=True)
def const_output_shape(model: Model, ctx: PassContext) -> Skip | None:
    """Write the sizes that inference knows where outputs and value_info have names or nothing.

    Exporters give each dim of an output a name of its own, which stays when the inputs get sizes.
    A dim that is declared with a size stays, and so does one that is not known.
    """
    before = model.mark()
    model.declare_known_sizes()
    return None if model.changed_since(before) else Skip("no more sizes are known than declared")
