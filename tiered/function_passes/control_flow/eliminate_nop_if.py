"""If(constant) {a} {b}  =>  the nodes of the branch that is taken"""

from collections import deque
from collections.abc import Hashable

from tiered import Graph, Node, PassContext, Skip, Value, function_pass, is_deterministic

CONSTANT = "If(constant) => the nodes of the branch that is taken"
ALIKE = "If(c) {a} {a} => the nodes of a"


@function_pass(opt_level=1, matches=("If",), touches=("*",))
def eliminate_nop_if(graph: Graph, ctx: PassContext) -> None:
    """Do without an If whose condition is known, or whose branches compute the same.

    What the branch holds moves up; names that are not free above are made fresh, and the outputs
    keep the names that they had outside.
    """
    pending = deque(graph.nodes_of("If"))
    while pending:
        node = pending.popleft()
        if not node.is_live:  # only another one read it
            continue
        chosen = _chosen(node)
        if isinstance(chosen, Skip):
            ctx.skip(node, chosen)
            continue
        branch, law = chosen
        with graph.rewrite(law, node):
            moved = graph.dissolve(node, branch)
            graph.prune(reversed(moved))
        if node.graph is None:
            pending.extend(each for each in moved if each.graph and each.op_type == "If")


def _chosen(node: Node) -> tuple[Graph, str] | Skip:
    """Return the branch that may stand for the If, and by which law."""
    branches = {body.attribute: body for body in node.bodies}
    if len(branches) < 2:
        return Skip("the call of the function gives a branch")
    known = node.const(0)
    if known is not None and known.size == 1:
        branch, law = branches["then_branch" if known.item() else "else_branch"], CONSTANT
    elif _are_alike(branches["then_branch"], branches["else_branch"]):
        branch, law = branches["then_branch"], ALIKE
    else:
        return Skip("the condition is not constant; the branches differ")
    if branch.annotations:
        return Skip("quantization annotations refer to the branch")
    return branch, law


def _are_alike(a: Graph, b: Graph) -> bool:
    """Return whether two bodies compute the same from the same values."""
    return _shape_of(a) == _shape_of(b)


def _shape_of(body: Graph) -> Hashable:
    """Return what is equal for two bodies exactly when they hold the same nodes, but for names."""
    places: dict[Value | None, Hashable] = {}
    for value in body.initializers:
        assert value.default is not None
        places[value] = ("constant", value.default.key())
    for at, value in enumerate(body.inputs):
        places[value] = ("input", body.depth, at)
    lines = []
    for at, node in enumerate(body.topological_order()):
        lines.append(_line(node, places))
        for index, output in enumerate(node.outputs):
            if output is not None:
                places[output] = ("node", body.depth, at, index)
    return tuple(lines), tuple(places.get(value, value) for value in body.outputs)


def _line(node: Node, places: dict[Value | None, Hashable]) -> Hashable:
    if not is_deterministic(node) or node.bodies:
        # A draw is no other draw, and of an unknown operator or a body nothing is known.
        return node
    inputs = tuple(places.get(value, value) for value in node.inputs)
    attributes = sorted(
        (proto.name, proto.SerializeToString(deterministic=True)) for proto in node.proto.attribute
    )
    present = tuple(value is not None for value in node.outputs)
    return node.callee, inputs, tuple(attributes), present
