"""Unknown or outdated types  =>  inferred types"""

from tiered import Model, PassContext, module_pass


@module_pass(opt_level=0)
def infer_shapes(model: Model, ctx: PassContext) -> None:
    """Infer the types of all values; the interface and the user's value_info are kept."""
    model.refresh_types()
