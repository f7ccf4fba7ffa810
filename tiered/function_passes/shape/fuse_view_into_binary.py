"""Op(x with more or fewer dims of 1 in front, y)  =>  Op(x, y), if y has as many dims"""

import itertools
from typing import Final

from tiered import Graph, PassContext, Skip, function_pass
from tiered.graph.queries.op_traits import VIEWS
from tiered.rewriter.idioms.elementwise.broadcasting import BROADCASTS

Shape = tuple[int | str | None, ...]

_OLDEST: Final = 7
"""Before this opset, operands broadcast only if an attribute is set."""

_VIEWS: Final = tuple(op_type for op_type in VIEWS if op_type != "Identity")


@function_pass(opt_level=2, required=("infer_shapes",), matches=_VIEWS, touches=("elementwise",))
def fuse_view_into_binary(graph: Graph, ctx: PassContext) -> None:
    """Leave dims of 1 in front of all others to the broadcasting of the operator.

    After the fusions of attention, which want masks of four dims.
    """
    if graph.opset() < _OLDEST:
        return
    for op_type in _VIEWS:
        for view in graph.nodes_of(op_type):
            x, seen = view.given(0), view.output
            for user, slot in seen.users:
                if user.domain or user.op_type not in BROADCASTS:
                    continue
                if not _differ_in_front(x.shape, seen.shape):
                    ctx.skip(user, Skip("other dims than those in front differ"))
                    continue
                others = [value for value in user.reads if value is not seen]
                most = max(x.rank or 0, seen.rank or 0)
                if all((value.rank or 0) < most for value in others):
                    ctx.skip(user, Skip("no other operand has as many axes"))
                    continue
                with graph.rewrite("Op(view of x, y) => Op(x, y)", user):
                    user.owner.set_input(user, slot, x)
                    graph.prune([view])


def _differ_in_front(one: Shape | None, other: Shape | None) -> bool:
    """Return whether two shapes are surely the same behind their first dims of 1."""
    if one is None or other is None or None in (*one, *other) or one == other:
        return False
    rest, other_rest = (
        tuple(itertools.dropwhile(lambda size: size == 1, shape)) for shape in (one, other)
    )
    return rest == other_rest
