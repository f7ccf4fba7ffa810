"""If(c) {f(x)} {f(x)}  =>  f(x) before the If; If(c) {f(a)} {f(b)}  =>  f(If(c) {a} {b})"""

from collections.abc import Hashable

from tiered import Graph, Node, PassContext, Skip, Value, function_pass, is_deterministic
from tiered.function_passes.control_flow._branches import drop_unused_outputs, replace_outputs


@function_pass(opt_level=None, matches=("If",), conflicts=("sink_into_if",), touches=("*",))
def hoist_from_if(graph: Graph, ctx: PassContext) -> None:
    """Move equal nodes of both branches before the If, or behind it.

    Equal nodes with the same operands move before the If, as one node. Equal nodes that compute
    the same output of the If move behind it if they differ in one operand: the branches return that
    operand instead.
    """
    for node in graph.nodes_of("If"):
        if len(node.bodies) != 2:
            continue
        refused = _refusal(node)
        if refused is not None:
            ctx.skip(node, refused)
            continue
        mark = graph.model.mark()
        with graph.rewrite("equal nodes of both branches => one node outside of the If", node):
            while node.is_live and (_hoist_heads(graph, node) or _hoist_tail(graph, node)):
                pass
        if not graph.model.changed_since(mark):
            ctx.skip(node, Skip("the branches have no equal nodes to move"))


def _refusal(node: Node) -> Skip | None:
    """Return why nothing of an If is moved; None if equal nodes may be."""
    if any(body.annotations for body in node.bodies):
        return Skip("quantization annotations refer to a branch")
    if any(output is None for output in node.outputs):
        return Skip("an output of the If is absent")
    return None


# --- before the If --------------------------------------------------------------------------------


def _hoist_heads(graph: Graph, node: Node) -> bool:
    """Move equal nodes of both branches that read only outer values; return whether there were."""
    one, other = node.bodies
    twins = {_key(each): each for each in other.topological_order() if _is_head(each)}
    for each in one.topological_order():
        twin = twins.get(_key(each)) if _is_head(each) else None
        if twin is None:
            continue
        for output in each.outputs:
            if output is not None and not graph.model.names.is_unique(output.name):
                one.rename_value(output, graph.model.names.fresh(output.name))
        one.move_node(each, graph)
        for mine, old in zip(each.outputs, twin.outputs, strict=True):
            if mine is not None and old is not None:
                _return_outer(graph, node, mine, old)
        other.prune([twin])
        graph.prune([node])
        return True
    return False


def _return_outer(graph: Graph, node: Node, value: Value, old: Value) -> None:
    """Let both branches read a value above them; where both return it, the If does not."""
    one, other = node.bodies
    pairs = enumerate(zip(one.outputs, other.outputs, strict=True))
    same = {index: value for index, pair in pairs if pair == (value, old)}
    if same:
        replace_outputs(graph, node, same)
    if value in one.outputs:
        # onnxruntime refuses branches that return a value of the graph around them.
        copy = one.add_node("Identity", (value,)).output
        outputs = [copy if each is value else each for each in one.outputs]
        one.set_graph_outputs(outputs, one.output_infos)
    other.replace_uses(old, value)


def _is_head(node: Node) -> bool:
    is_copy = node.op_type == "Identity" and not node.domain
    return (
        not is_copy
        and not node.bodies
        and is_deterministic(node)
        and not node.is_pinned
        and all(value is None or value.graph is not node.graph for value in node.inputs)
    )


def _key(node: Node) -> Hashable:
    """Return what is equal for nodes that compute the same from the same values."""
    return _operator(node), node.inputs


def _operator(node: Node) -> Hashable:
    attributes = sorted(
        (proto.name, proto.SerializeToString(deterministic=True)) for proto in node.proto.attribute
    )
    present = tuple(value is not None for value in node.outputs)
    metadata = tuple(sorted(node.metadata.items()))
    return node.callee, tuple(attributes), present, metadata


# --- behind the If --------------------------------------------------------------------------------


def _hoist_tail(graph: Graph, node: Node) -> bool:
    """Move one pair of equal nodes behind the If; return whether there was one."""
    one, other = node.bodies
    for index, output in enumerate(node.outputs):
        first, second = one.outputs[index].producer, other.outputs[index].producer
        if output is None or first is None or second is None:
            continue
        at = _difference(node, index, first, second)
        if at is None:
            continue
        a, b = first.given(at), second.given(at)
        one.add_output(a)
        other.add_output(b)
        chosen = graph.new_value(output.name)
        graph.set_outputs(node, [*node.outputs, chosen])
        stands: dict[Value, Value | None] = {a: chosen}
        (copy,) = graph.copy_nodes([first], stands)
        graph.exchange_outputs(node, index, copy, 0)
        drop_unused_outputs(graph, node)
        one.prune([first])
        other.prune([second])
        return True
    return False


def _difference(node: Node, index: int, first: Node, second: Node) -> int | None:
    """Return the operand in which the nodes differ that compute one output; None: not hoistable."""
    one, other = node.bodies
    if first.graph is not one or second.graph is not other or _operator(first) != _operator(second):
        return None
    is_copy = first.op_type == "Identity" and not first.domain
    if is_copy or first.bodies or not is_deterministic(first) or len(first.outputs) != 1:
        return None
    if any(not _is_only_output(each, index) for each in (first, second)):
        return None
    if len(first.inputs) != len(second.inputs):
        return None
    pairs = zip(first.inputs, second.inputs, strict=True)
    differing = [at for at, (a, b) in enumerate(pairs) if a is not b]
    if len(differing) != 1:
        return None
    a, b = first.inputs[differing[0]], second.inputs[differing[0]]
    if a is None or b is None or a.graph is not one or b.graph is not other:
        return None
    if a.producer is None or b.producer is None or a.output_of or b.output_of:
        return None
    if a.dtype is None or a.dtype != b.dtype:
        return None
    return differing[0]


def _is_only_output(node: Node, index: int) -> bool:
    """Return whether the branch alone reads the output of a node, once."""
    body, value = node.owner, node.output
    return value.n_users == 0 and not value.pins and body.outputs.count(value) == 1
