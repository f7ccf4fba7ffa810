"""Operators and Transposes  =>  the same operators in orders of axes that move the fewest bytes"""

from typing import Literal

from tiered import Model, PassContext, module_pass


@module_pass(
    opt_level=3,
    numerics="reassociating",
    interface_options={"io_layout": "convert"},
    acts_on=("*",),
)
def convert_layout(
    model: Model,
    ctx: PassContext,
    *,
    desired_layouts: dict[str, str] = {"Conv": "NCHW"},  # noqa: B006 - never edited
    io_layout: Literal["keep", "convert"] = "keep",
    default_dim: int = 16,
) -> None:
    """Place Transposes where they move the fewest bytes, over the whole graph.

    Operators that a permutation passes are written in another order of their axes where that
    saves more than it costs; constants are permuted once, here. The result is never worse, but
    where the layout that is asked for has its price. Operators that are asked for in NHWC become
    calls of local functions, `tiered.nhwc::Conv` and the like, which every runtime can run; the
    pools and normalizations around them follow where that is cheaper. Inputs and outputs keep their
    layout, or are converted too if an operator that is asked for leads to them in that layout,
    through operators that a permutation passes; they keep their names, those with a default stay,
    and a remark says what they are now.

    Args:
        desired_layouts: NHWC or NCHW by operator, or by `Operator@glob of node names`. NCHW is what
            ONNX has.
        io_layout: whether inputs and outputs that are images keep their layout. If any operator is
            asked for in NHWC, images are converted to that.
        default_dim: what a dynamic dim counts in bytes that are moved.

    Raises:
        UsageError: there is no such layout.
    """
    has_transposes = any(graph.nodes_of("Transpose") for graph in model.graphs())
    converts = io_layout == "convert"
    if not (has_transposes or converts) and {"NCHW"}.issuperset(desired_layouts.values()):
        return
    # What has nothing to place does not load what places it.
    from tiered import LayoutSizes, place_transposes

    sizes, supports = LayoutSizes(default=default_dim), ctx.target.supports
    tell = ctx.remark if converts else None
    place_transposes(model, sizes, ctx.skip, desired_layouts, supports=supports, tell=tell)
