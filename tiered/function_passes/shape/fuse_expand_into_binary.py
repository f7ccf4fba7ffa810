"""Op(Expand(x, shape), y)  =>  Op(x, y), where x or y has every size that shape asks for"""

from typing import Final

from tiered import Graph, PassContext, Skip, Value, function_pass

# Pow computes a scalar exponent otherwise than a tensor, and Max and Min take the one or the other
# of two zeros by which operand is a scalar: these read the Expand.
_BROADCASTS: Final = frozenset(
    {"Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater",
     "GreaterOrEqual", "Less", "LessOrEqual", "Mul", "Or", "Sub", "Where", "Xor"}
)  # fmt: skip


@function_pass(opt_level=2, looks_for=("Expand",), acts_on=("elementwise",))
def fuse_expand_into_binary(graph: Graph, ctx: PassContext) -> None:
    """Let the operator broadcast by itself, where the result surely has the same shape."""
    law = "Op(Expand(x, shape), y) => Op(x, y)"
    for expand in graph.nodes_of("Expand"):
        x, wide = expand.input(0), expand.output
        for user, slot in wide.users:
            if x is None or user.domain or user.op_type not in _BROADCASTS:
                continue
            others = [value for at, value in enumerate(user.inputs) if at != slot]
            if not _has_every_size(wide, [x, *others]):
                ctx.skip(user, Skip("only the Expand makes an operand grow"))
                continue
            with graph.rewrite(law, user):
                user.owner.set_input(user, slot, x)
                graph.prune([expand])


def _has_every_size(wide: Value, operands: list[Value | None]) -> bool:
    """Return whether the operands broadcast to no less than the expanded one does."""
    if wide.shape is None:
        return False
    shapes = [value.shape or () for value in operands if value is not None]
    if len(wide.shape) > max(len(shape) for shape in shapes):
        return False
    return all(
        size == 1
        or (size is not None and any(size == shape[-at] for shape in shapes if len(shape) >= at))
        for at, size in enumerate(reversed(wide.shape), start=1)
    )
