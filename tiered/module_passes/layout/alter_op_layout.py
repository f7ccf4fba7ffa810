"""Operators  =>  the same operators in the layout that the backend prefers"""

from tiered import Model, PassContext, Skip, module_pass


@module_pass(opt_level=3, numerics="reassociating", touches=("*",))
def alter_op_layout(model: Model, ctx: PassContext, *, default_dim: int = 16) -> None:
    """Convert image operators to the layouts that the backend prefers, as `convert_layout` does.

    If the backend prefers no operator channels last, the model is left to `convert_layout`.

    Args:
        default_dim: the size of a dynamic dim when bytes are counted.
    """
    if "NHWC" not in (ctx.target.layout, *ctx.target.layouts.values()):
        return ctx.skip(None, Skip("the backend prefers no operator channels last"))
    from tiered.analysis.layout.layout_conversion import place_transposes
    from tiered.analysis.layout.nhwc import IMAGE_OPERATORS
    from tiered.analysis.layout.sizes import LayoutSizes

    preferred = {name: ctx.backend.preferred_layout(name) for name in IMAGE_OPERATORS}
    wanted = {name: layout for name, layout in preferred.items() if layout in ("NCHW", "NHWC")}
    sizes, supports = LayoutSizes(default=default_dim), ctx.backend.supports
    return place_transposes(model, sizes, ctx.skip, wanted, supports=supports)
