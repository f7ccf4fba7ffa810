"""Two nodes that compute the same  =>  one"""

from collections import ChainMap
from collections.abc import Hashable, MutableMapping

from tiered import COMMUTATIVE, Graph, Node, PassContext, function_pass, is_deterministic

Known = MutableMapping[Hashable, Node]


@function_pass(opt_level=3, required=("infer_shapes",), conflicts=("canonicalize_cast",))
def eliminate_common_subexpr(graph: Graph, ctx: PassContext) -> None:
    """Compute each expression once; a body may use what the graphs above it have computed."""
    if graph.owner is None:
        _visit(graph, {})


def _visit(graph: Graph, known: Known) -> None:
    for node in graph.topological_order():
        for body in node.bodies:
            _visit(body, ChainMap({}, known))
        key = _key(node)
        if key is None:
            continue
        first = known.setdefault(key, node)
        if first is not node:
            with graph.rewrite("two nodes that compute the same => one", node):
                graph.replace(node, first.outputs)


def _key(node: Node) -> Hashable | None:
    """Return what is equal for two nodes exactly when they compute the same; None for never."""
    if node.bodies or node.has_references or not is_deterministic(node):
        return None
    operands = [0 if value is None else value.id for value in node.inputs]
    if node.domain == "" and node.op_type in COMMUTATIVE and len(operands) == 2:
        operands.sort()
    attributes = sorted(
        (proto.name, proto.SerializeToString(deterministic=True)) for proto in node.proto.attribute
    )
    present = tuple(value is not None for value in node.outputs)
    return (
        node.domain,
        node.op_type,
        node.proto.overload,
        tuple(operands),
        tuple(attributes),
        present,
        node.metadata.get("tiered.compiler"),
    )
