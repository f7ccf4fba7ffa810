"""Nodes in an order  =>  the same nodes in an order of a lower peak of memory"""

from typing import Literal

from tiered import Model, PassContext, Skip, memory_plan, module_pass
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.extensions.memory.liveness import peak_change
from tiered.extensions.memory.node_orders import schedule_model


@module_pass(opt_level=None, required=("infer_shapes",))
def schedule(
    model: Model,
    ctx: PassContext,
    *,
    objective: Literal["peak", "depth"] = "peak",
    dims: tuple[str, ...] = (),
    default_dim: int = 16,
) -> Skip | None:
    """Change the order in which nodes are saved, in bodies too; the peak is that of `memory_plan`.

    Up to 14 nodes without a fixed place between them get the order of lowest peak; longer
    stretches a good one. An order that gains nothing stays. Random nodes and unknown operators
    keep their order among each other. A runtime may choose an order of its own.

    Args:
        objective: `peak`, or `depth`: first the nodes with the shortest longest path to them. That
            may raise the peak.
        dims: the sizes of dynamic dims, as `name=size`.
        default_dim: the size of all others.
    """
    sizes = LayoutSizes.parse(dims, default_dim, "schedule", model)
    before = memory_plan(model, dims=sizes.known, default_dim=default_dim)
    if not schedule_model(model, sizes=sizes, by_depth=objective == "depth"):
        return Skip("no order is better")
    after = memory_plan(model, dims=sizes.known, default_dim=default_dim)
    ctx.remark(peak_change(before, after))
    return None
