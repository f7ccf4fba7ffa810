"""Operators  =>  the same operators in the layout that the backend runs best"""

from tiered import Model, PassContext, Skip, module_pass


@module_pass(opt_level=3, numerics="reassociating", acts_on=("*",))
def alter_op_layout(model: Model, ctx: PassContext, *, default_dim: int = 16) -> None:
    """Give operators of images the layout of the backend's table, as `convert_layout` would.

    A backend that prefers nothing, or what ONNX has, leaves the model to `convert_layout`.

    Args:
        default_dim: what a dynamic dim counts in bytes that are moved.
    """
    if "NHWC" not in (ctx.target.layout, *ctx.target.layouts.values()):
        return ctx.skip(None, Skip("the backend prefers no operator channels last"))
    from tiered import IMAGE_OPERATORS, LayoutSizes, place_transposes

    preferred = {name: ctx.backend.preferred_layout(name) for name in IMAGE_OPERATORS}
    wanted = {name: layout for name, layout in preferred.items() if layout in ("NCHW", "NHWC")}
    sizes, supports = LayoutSizes(default=default_dim), ctx.backend.supports
    return place_transposes(model, sizes, ctx.skip, wanted, supports=supports)
