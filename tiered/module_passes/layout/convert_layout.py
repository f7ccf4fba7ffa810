"""Operators and Transposes  =>  the same operators in orders of axes that take the least time"""

from typing import Literal

from tiered import Model, PassContext, module_pass


@module_pass(
    opt_level=3,
    numerics="reassociating",
    interface_options={"io_layout": "convert"},
    touches=("*",),
)
def convert_layout(
    model: Model,
    ctx: PassContext,
    *,
    desired_layouts: dict[str, str] = {"Conv": "NCHW"},  # noqa: B006 - never edited
    io_layout: Literal["keep", "convert"] = "keep",
    default_dim: int = 16,
) -> None:
    """Place Transposes where they take the least time, over the whole graph.

    Operators are written in another order of their axes where that saves more than it costs, in
    Transposes and in the operators (`tiered/analysis/layout/solve.py` has the algorithm); constants
    are permuted once, here. The result never moves more bytes than before, unless a desired layout
    requires it. Operators that are desired in NHWC become calls of local functions such as
    `tiered.nhwc::Conv`, which every runtime can run; pools and normalizations around them follow
    where that is cheaper.

    Inputs and outputs keep their layout unless `io_layout` is "convert". Then those that connect to
    an operator with a desired layout, through operators that can be permuted, are converted. They
    keep their names, and a remark states their new shapes; inputs with a default are not converted.

    Args:
        desired_layouts: NHWC or NCHW by operator, or by `Operator@glob of node names`. NCHW is the
            layout of standard ONNX.
        io_layout: whether inputs and outputs that are images keep their layout or are converted:
            to NHWC if it is desired for any operator.
        default_dim: the size of a dynamic dim when bytes are counted.

    Raises:
        UsageError: a layout is neither NCHW nor NHWC.
    """
    has_transposes = any(graph.nodes_of("Transpose") for graph in model.graphs())
    converts = io_layout == "convert"
    if not (has_transposes or converts) and {"NCHW"}.issuperset(desired_layouts.values()):
        return
    # Models without Transposes do not load the solver.
    from tiered.analysis.layout.layout_conversion import place_transposes
    from tiered.analysis.layout.sizes import LayoutSizes

    sizes, supports = LayoutSizes(default=default_dim), ctx.target.supports
    on_change = ctx.remark if converts else None
    place_transposes(
        model, sizes, ctx.skip, desired_layouts, supports=supports, on_change=on_change
    )
