"""Nodes that a compiler would make one kernel of  =>  a call of a local function with them"""

from tiered import Model, PassContext, UsageError, module_pass
from tiered.rewriter.idioms.functions.fusion_groups import fusion_groups
from tiered.rewriter.idioms.functions.outlining import FunctionNames, why_not_outlined


@module_pass(opt_level=None, required=("infer_shapes",), conflicts=("inline",), touches=("*",))
def fuse_ops(
    model: Model,
    ctx: PassContext,
    *,
    level: int = -1,
    max_depth: int = 256,
    domain: str = "tiered.fused",
) -> None:
    """Outline the groups of nodes that TVM's FuseOps would compile to one kernel.

    A Conv or MatMul takes in the elementwise nodes behind it, elementwise and broadcasting nodes
    take in each other, and end in at most one reduction or data movement. All other operators stay
    alone, and groups of one node are not outlined. A group ends at graph outputs, captured values
    and marks. Every runtime runs the result; only a compiler of regions is faster for it.
    `inline{domains=[tiered.fused]}` is the inverse.

    Args:
        level: 0 makes no groups, 1 groups without reductions, 2 all; -1 is the level of the
            context.
        max_depth: the most nodes of a group.
        domain: the domain of the functions.

    Raises:
        UsageError: max_depth is below 1, or the level below -1.
    """
    if max_depth < 1 or level < -1:
        raise UsageError(
            f"fuse_ops got level={level} and max_depth={max_depth}; expected at least -1 and 1"
        )
    names = FunctionNames(model, domain)
    chosen = ctx.opt_level if level == -1 else level
    for graph in list(model.graphs()):
        if domain == getattr(graph, "domain", None):
            continue
        for nodes in fusion_groups(graph, max_depth=max_depth, level=chosen):
            if reason := why_not_outlined(graph, nodes):
                ctx.skip(nodes[-1], reason)
                continue
            name = "_".join(["fused", *(node.op_type for node in nodes)])
            with graph.rewrite("a group of nodes => a call of a local function", nodes[-1]):
                names.outline(graph, nodes, name)
