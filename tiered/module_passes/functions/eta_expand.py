"""A node  =>  a call of a local function with this node"""

from tiered import Graph, Model, Node, PassContext, Skip, Unable, module_pass
from tiered.numerics.precision.narrowing import unmatched
from tiered.rewriter.idioms.functions.outlining import FunctionNames, why_not_outlined


@module_pass(opt_level=None, conflicts=("inline",), touches=("*",))
def eta_expand(
    model: Model,
    ctx: PassContext,
    *,
    ops: tuple[str, ...] = (),
    calls: bool = False,
    domain: str = "tiered.expanded",
) -> None:
    """Wrap nodes into local functions, each with the operands of its node.

    Values that bodies of the node capture become inputs too. `inline{domains=[tiered.expanded]}` is
    the inverse.

    Args:
        ops: the operators that are wrapped: `Relu`, `com.microsoft::Gelu`; `*` is all of
            them; none without it.
        calls: wrap calls of local functions too.
        domain: the domain of the new functions.

    Raises:
        UsageError: an operator does not exist.
    """
    for text in unmatched(model, (name for name in ops if name != "*"), ()):
        ctx.skip(None, Unable("{}", text))
    names = FunctionNames(model, domain)
    known = frozenset(names.ids)
    for graph in list(model.graphs()):
        root = graph.root if graph.parent_node is None or graph.parent_node.is_live else None
        # A body whose owner is wrapped now is inside of its function.
        if root is None or getattr(root, "domain", None) == domain:
            continue
        for node in graph.topological_order():
            if not _is_chosen(node, ops, calls and node.callee in known, domain):
                continue
            if reason := _refusal(graph, node):
                ctx.skip(node, reason)
                continue
            with graph.rewrite("a node => a call of a local function", node):
                names.outline(graph, (node,), f"{node.op_type}_{node.label}")


def _is_chosen(node: Node, ops: tuple[str, ...], is_call: bool, domain: str) -> bool:
    if node.domain == domain:
        return False
    name = node.operator
    return is_call or name in ops or "*" in ops


def _refusal(graph: Graph, node: Node) -> Skip | None:
    """Return why a node is not wrapped; None if it can be."""
    if node.op_type == "Constant" and not node.domain:
        return Skip("a constant has no operands")
    return why_not_outlined(graph, (node,))
