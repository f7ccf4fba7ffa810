"""Operators and Transposes  =>  the same operators in orders of axes that move the fewest bytes"""

from tiered import LayoutSizes, Model, PassContext, module_pass, place_transposes


@module_pass(opt_level=3, numerics="reassociating")
def convert_layout(model: Model, ctx: PassContext, *, default_dim: int = 16) -> None:
    """Place Transposes where they move the fewest bytes, over the whole graph.

    Operators that a permutation passes are written in another order of their axes where that
    saves more than it costs; constants are permuted once, here. The result is never worse.

    Args:
        default_dim: what a dynamic dim counts in bytes that are moved.
    """
    place_transposes(model, LayoutSizes(default=default_dim), ctx.skip)
