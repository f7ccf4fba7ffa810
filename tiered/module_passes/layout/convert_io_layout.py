"""Images, Operators  =>  inputs, outputs and operators in the layout that is asked for"""

from tiered import Model, PassContext, module_pass


@module_pass(opt_level=None, numerics="reassociating", changes_interface=True)
def convert_io_layout(
    model: Model,
    ctx: PassContext,
    *,
    desired_layouts: dict[str, str] = {"Conv": "NHWC"},  # noqa: B006 - never edited
    default_dim: int = 16,
) -> None:
    """Convert as `convert_layout` does, and give images that come in or go out that layout too.

    An input or output is one if an operator that is asked for leads to it in that layout, through
    operators that a permutation passes. It keeps its name, and a remark says what it is now. Inputs
    with a default stay.

    Args:
        desired_layouts: NHWC or NCHW by operator, or by `Operator@glob of node names`. If any is
            NHWC, images are.
        default_dim: what a dynamic dim counts in bytes that are moved.

    Raises:
        UsageError: there is no such layout.
    """
    from tiered import LayoutSizes, place_transposes

    sizes, supports = LayoutSizes(default=default_dim), ctx.backend.supports
    place_transposes(model, sizes, ctx.skip, desired_layouts, supports=supports, tell=ctx.remark)
