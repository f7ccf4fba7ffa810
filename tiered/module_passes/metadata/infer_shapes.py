"""Types that are not known yet, or more exactly now  =>  stated"""

from tiered import Model, PassContext, module_pass


@module_pass(opt_level=0)
def infer_shapes(model: Model, ctx: PassContext) -> None:
    """Bring the types of the view up to date; the interface and the user's value_info stay."""
    model.refresh_types()
