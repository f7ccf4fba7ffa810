"""y = f(If(c) {a} {b})  =>  y = If(c) {f(a)} {f(b)}"""

from collections import deque

from tiered import Graph, Node, PassContext, Skip, Value, function_pass, is_deterministic
from tiered.function_passes.control_flow._branches import drop_unused_outputs


@function_pass(opt_level=None, matches=("If",), conflicts=("hoist_from_if",), touches=("*",))
def sink_into_if(graph: Graph, ctx: PassContext, *, max_nodes: int = 100) -> None:
    """Move nodes behind an If into both branches, where other passes may simplify them.

    A node moves if it reads an output of the If that has no other user, and if its other operands
    do not depend on the If. Then its consumer may move too. TVM's source names this duplication of
    join points as the reason for its continuation-passing style, `ToCPS`.

    Args:
        max_nodes: the most nodes of a branch; a branch of this size takes in no more.
    """
    pending = deque(graph.nodes_of("If"))
    while pending:
        node = pending.popleft()
        if not node.is_live or len(node.bodies) != 2:
            continue
        chosen = _chosen(node, max_nodes)
        if isinstance(chosen, Skip):
            ctx.skip(node, chosen)
            continue
        mark = graph.model.mark()
        with graph.rewrite("f(If(c) {a} {b}) => If(c) {f(a)} {f(b)}", chosen):
            _sink(graph, node, chosen)
        if graph.model.changed_since(mark):
            pending.append(node)


def _chosen(node: Node, max_nodes: int) -> Node | Skip:
    """Return a consumer that can move into the branches, or why there is none."""
    if any(body.annotations for body in node.bodies):
        return Skip("quantization annotations refer to a branch")
    if max(len(body) for body in node.bodies) >= max_nodes:
        return Skip("a branch has reached max_nodes={}", max_nodes)
    reason = Skip("no output has exactly one user")
    for output in node.outputs:
        if output is None or output.n_users == 0:
            continue
        tail = output.users[0].node
        if not output.is_only_read_by(tail):
            continue
        refused = _refusal(node, tail)
        if refused is None:
            return tail
        reason = refused
    return reason


def _refusal(node: Node, tail: Node) -> Skip | None:
    """Return why a consumer cannot move into the branches; None if it can."""
    if tail.bodies:
        return Skip("the consumer has a body")
    if not tail.is_used:
        return Skip("no output of the consumer is used")
    if not is_deterministic(tail):
        return Skip("the consumer is not deterministic")
    if any(output is not None and output.pins for output in tail.outputs):
        return Skip("an annotation names an output of the consumer")
    for value in tail.inputs:
        if value is None or value.producer is node:
            if value is not None and not value.is_only_read_by(tail):
                return Skip("the consumer reads an output with other users")
            continue
        if _depends_on(value, node):
            return Skip("another operand depends on the If")
    return None


def _depends_on(value: Value, node: Node) -> bool:
    """Return whether a value is computed from an output of a node, in its graph."""
    graph = node.owner
    if value.producer is None or value.graph is not graph:
        return False
    place = {each: at for at, each in enumerate(graph.topological_order())}
    pending, seen = [value.producer], {value.producer}
    while pending:
        each = pending.pop()
        if each is node:
            return True
        for before in each.predecessors:
            if before not in seen and place[before] >= place[node]:
                seen.add(before)
                pending.append(before)
    return False


def _sink(graph: Graph, node: Node, tail: Node) -> None:
    """Copy a consumer into both branches; its outputs become outputs of the If."""
    kept = [at for at, output in enumerate(tail.outputs) if output is not None]
    for body in node.bodies:
        stands: dict[Value, Value | None] = {
            output: inner
            for output, inner in zip(node.outputs, body.outputs, strict=True)
            if output is not None
        }
        (copy,) = body.copy_nodes([tail], stands)
        for at in kept:
            made = copy.outputs[at]
            assert made is not None
            body.add_output(made)
    new = [graph.new_value(output.name) for output in tail.outputs if output is not None]
    first = len(node.outputs)
    graph.set_outputs(node, [*node.outputs, *new])
    for at, value in zip(kept, range(first, first + len(new)), strict=True):
        graph.exchange_outputs(node, value, tail, at)
    graph.remove_node(tail)
    drop_unused_outputs(graph, node)
