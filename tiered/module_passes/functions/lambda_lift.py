"""If/Loop/Scan {body}  =>  If/Loop/Scan {a call of a local function with the nodes of the body}"""

from typing import Final

from tiered import Graph, Model, PassContext, Skip, module_pass
from tiered.rewriter.idioms.functions.outlining import FunctionNames, why_not_outlined

_OWNERS: Final = ("If", "Loop", "Scan")


@module_pass(opt_level=None, conflicts=("inline",), matches=_OWNERS, touches=("*",))
def lambda_lift(
    model: Model, ctx: PassContext, *, min_nodes: int = 1, domain: str = "tiered.lifted"
) -> None:
    """Move the nodes of bodies into local functions; captured values become inputs of them.

    A body keeps its inputs, outputs and initializers, and one call, which reads the captured values
    and the initializers too. Inner bodies are lifted first. `inline{domains=[tiered.lifted]}` is
    the inverse. Runtimes inline the functions, so the model is not faster.

    Args:
        min_nodes: bodies with fewer nodes stay.
        domain: the domain of the functions.
    """
    names = FunctionNames(model, domain)
    bodies = [
        (graph, node.label)
        for graph in model.graphs()
        if (node := graph.parent_node) is not None and node.op_type in _OWNERS and not node.domain
    ]
    # Bodies come after their node, so the innermost are lifted first.
    for body, label in reversed(bodies):
        owner = body.parent_node
        assert owner is not None
        if len(body) == 1 and body.nodes[0].callee in names.ids:
            continue
        if reason := _refusal(body, min_nodes):
            # The other branch of the owner may be lifted.
            ctx.skip(body.nodes[0] if len(body) else owner, reason)
            continue
        with owner.owner.rewrite("body => a call of a local function", owner):
            names.outline(body, body.nodes, f"{label}_{body.attribute}")


def _refusal(body: Graph, min_nodes: int) -> Skip | None:
    """Return why a body is not lifted; None if it can be."""
    if len(body) < max(min_nodes, 1):
        return Skip("the body has fewer nodes than min_nodes={}", min_nodes)
    return why_not_outlined(body, body.nodes)
