"""Op(Expand(x, shape), y)  =>  Op(x, y), if x or y has each size of shape"""

from tiered import Graph, PassContext, Skip, Value, function_pass
from tiered.rewriter.idioms.elementwise.broadcasting import BROADCASTS, has_size


@function_pass(opt_level=2, matches=("Expand",), touches=("elementwise",))
def fuse_expand_into_binary(graph: Graph, ctx: PassContext) -> None:
    """Use the broadcasting of the operator, if the result surely has the same shape."""
    law = "Op(Expand(x, shape), y) => Op(x, y)"
    for expand in graph.nodes_of("Expand"):
        x, wide = expand.given(0), expand.output
        for user, slot in wide.users:
            if user.domain or user.op_type not in BROADCASTS:
                continue
            others = [value for at, value in enumerate(user.inputs) if at != slot]
            if not _has_every_size(wide, [x, *others]):
                ctx.skip(user, Skip("only the Expand enlarges the result"))
                continue
            with graph.rewrite(law, user):
                user.owner.set_input(user, slot, x)
                graph.prune([expand])


def _has_every_size(wide: Value, operands: list[Value | None]) -> bool:
    """Return whether the operands broadcast to the same shape without the Expand."""
    if wide.shape is None:
        return False
    shapes = [value.shape or () for value in operands if value is not None]
    if len(wide.shape) > max(len(shape) for shape in shapes):
        return False
    return all(
        size == 1 or has_size(shapes, size, at)
        for at, size in enumerate(reversed(wide.shape), start=1)
    )
