"""MatMul(x, w)  =>  Concat(MatMul(x, w[:, :k]), MatMul(x, w[:, k:]), ...), or by rows or sums"""

from tiered import Model, Node, PassContext, Skip, Unable, memory_plan, module_pass
from tiered.extensions.memory.liveness import peak_change
from tiered.module_passes.memory._product_parts import (
    Cut,
    Dim,
    cut_by_bytes,
    product_in_parts,
    requested_cuts,
)


@module_pass(
    opt_level=None,
    required=("infer_shapes",),
    numerics="reassociating",
    matches=("MatMul",),
)
def serialize_matmul(
    model: Model,
    ctx: PassContext,
    *,
    split: tuple[str, ...] = (),
    dim: Dim = "columns",
    max_bytes: int = 0,
) -> None:
    """Multiply in parts, one after the other; constant weights are cut at once.

    A part needs less scratch memory, and less of a weight at a time. The parts of the result and
    the whole are alive together; a remark says what that is for the peak.

    Args:
        split: which nodes, as `node=parts` or `node=parts/dim`.
        dim: cut the columns of the result, its rows, or the inner dim and add the products.
        max_bytes: cut a node if its second factor (by rows: its result) is larger, into parts
            that are not; 0 for none.

    Raises:
        UsageError: an entry of `split` is no request.
    """
    requested = requested_cuts(split, dim, "serialize_matmul")
    cuts: list[tuple[Node, Cut]] = []
    met: set[str] = set()
    for node in (node for graph in model.graphs() for node in graph.nodes_of("MatMul")):
        met.add(node.label)
        cut = requested.get(node.label) or cut_by_bytes(node, dim, max_bytes)
        if cut is None or cut.parts < 2:
            ctx.skip(node, Skip("no split into parts is requested"))
        else:
            cuts.append((node, cut))
    for name in (name for name in requested if name not in met):
        ctx.skip(None, Unable("no MatMul is named {!r}", name))
    if not cuts:
        return
    before, is_cut = memory_plan(model), False
    for node, cut in cuts:
        graph = node.owner
        with graph.rewrite("MatMul(x, w)  =>  MatMul in parts", node):
            result = product_in_parts(graph, node, cut)
            if isinstance(result, Skip):
                ctx.skip(node, result)
            else:
                graph.replace(node, (result,))
                is_cut = True
    if is_cut:
        ctx.remark(peak_change(before, memory_plan(model)))
