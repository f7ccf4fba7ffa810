"""Op(Unsqueeze(x, first axes), y)  =>  Op(x, y), if y has those axes"""

from typing import Final

from tiered import Graph, PassContext, Skip, function_pass
from tiered.graph.core.types import Shape
from tiered.rewriter.idioms.elementwise.broadcasting import BROADCASTS

_OLDEST: Final = 7
"""Before this opset, operands broadcast only if an attribute is set."""


@function_pass(
    opt_level=2, required=("infer_shapes",), looks_for=("Unsqueeze",), acts_on=("elementwise",)
)
def fuse_unsqueeze_into_binary(graph: Graph, ctx: PassContext) -> None:
    """Leave dims of 1 in front of all others to the broadcasting of the operator.

    After the fusions of attention, which want masks of four dims.
    """
    if graph.opset() < _OLDEST:
        return
    for unsqueeze in graph.nodes_of("Unsqueeze"):
        x, wide = unsqueeze.input(0), unsqueeze.output
        for user, slot in wide.users:
            if x is None or user.domain or user.op_type not in BROADCASTS:
                continue
            if not _is_in_front(x.shape, wide.shape):
                ctx.skip(user, Skip("not all new axes are in front"))
                continue
            others = [value for value in user.inputs if value is not None and value is not wide]
            if all((value.rank or 0) < (wide.rank or 0) for value in others):
                ctx.skip(user, Skip("no other operand has as many axes"))
                continue
            with graph.rewrite("Op(Unsqueeze(x), y) => Op(x, y)", user):
                user.owner.set_input(user, slot, x)
                graph.prune([unsqueeze])


def _is_in_front(before: Shape | None, after: Shape | None) -> bool:
    """Return whether a shape is surely another one with dims of 1 in front."""
    if before is None or after is None or None in before:
        return False
    added = len(after) - len(before)
    return after == (*[1] * added, *before)
