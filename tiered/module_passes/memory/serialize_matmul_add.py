"""Add(MatMul(x, w), b)  =>  Concat(Add(MatMul(x, w[:, :k]), b[:k]), ...), or by rows or sums"""

from tiered import Model, Node, PassContext, Skip, Unable, Value, memory_plan, module_pass
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
def serialize_matmul_add(
    model: Model,
    ctx: PassContext,
    *,
    split: tuple[str, ...] = (),
    dim: Dim = "columns",
    max_bytes: int = 0,
) -> None:
    """Multiply and add the bias in parts; a bias is cut with the columns or rows of the weight.

    By the inner dim, the bias is added once, after the sums.

    Args:
        split: which nodes, as `node=parts` or `node=parts/dim`; a node is named by its MatMul, its
            Add, or as `matmul/add`.
        dim: cut the columns of the result, its rows, or the inner dim and add the products.
        max_bytes: cut a node if its second factor (by rows: its result) is larger, into parts
            that are not; 0 for none.

    Raises:
        UsageError: an entry of `split` is no request.
    """
    requested = requested_cuts(split, dim, "serialize_matmul_add")
    cuts: list[tuple[Node, Cut]] = []
    met: set[str] = set()
    for node in (node for graph in model.graphs() for node in graph.nodes_of("MatMul")):
        sum_ = _sum_of(node)
        if isinstance(sum_, Skip):
            ctx.skip(node, sum_)
            continue
        add, _ = sum_
        names = node.label, add.label, f"{node.label}/{add.label}"
        met.update(names)
        found = next((requested[name] for name in names if name in requested), None)
        cut = found or cut_by_bytes(node, dim, max_bytes)
        if cut is None or cut.parts < 2:
            ctx.skip(node, Skip("no split into parts is requested"))
        else:
            cuts.append((node, cut))
    for name in (name for name in requested if name not in met):
        ctx.skip(None, Unable("no MatMul before an Add is named {!r}", name))
    if not cuts:
        return
    before, is_cut = memory_plan(model), False
    for node, cut in cuts:
        # A sum of two products is one of their Adds; a product may read another one's Add.
        sum_ = _sum_of(node)
        if isinstance(sum_, Skip):
            ctx.skip(node, sum_)
            continue
        add, bias = sum_
        graph = node.owner
        with graph.rewrite("Add(MatMul(x, w), b)  =>  the same in parts", add):
            result = product_in_parts(graph, node, cut, bias)
            if isinstance(result, Skip):
                ctx.skip(node, result)
            else:
                graph.replace(add, (result,))
                is_cut = True
    if is_cut:
        ctx.remark(peak_change(before, memory_plan(model)))


def _sum_of(node: Node) -> tuple[Node, Value] | Skip:
    """Return the Add that alone reads a product, and its other operand."""
    users = node.output.users
    if node.output.has_one_user and users[0].node.graph is node.graph:
        add = users[0].node
        bias = add.inputs[1 - users[0].slot] if add.is_op("Add") else None
        if bias is not None:
            return add, bias
    return Skip("no Add alone reads the product")
