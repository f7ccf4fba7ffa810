"""Unknown or outdated types  =>  inferred types"""

from tiered import Model, PassContext, module_pass


@module_pass(opt_level=0)
def infer_shapes(model: Model, ctx: PassContext, *, annotate: bool = False) -> None:
    """Infer the types of all values; the interface and the user's value_info are kept.

    Args:
        annotate: write the inferred types of inner values into the model, as value_info.
    """
    model.refresh_types()
    if annotate:
        model.declare_inferred_types()
