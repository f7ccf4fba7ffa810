"""Conv(x, w), Conv(x, v), ...  =>  Split(Conv(x, Concat(w, v, ...)))"""

from collections.abc import Hashable

from tiered import Graph, Node, PassContext, function_pass
from tiered.rewriter.idioms.parallel_branches import combine_branches


@function_pass(
    opt_level=4,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    numerics="reassociating",
    matches=("Conv",),
)
def combine_parallel_conv2d(
    graph: Graph, ctx: PassContext, *, min_num_branches: int = 3, min_depth: int = 16
) -> None:
    """Convolve once with the kernels of all branches that read one image.

    An element of the result takes `depth` multiplications, and the Split copies it once more. For a
    small depth these copies cost more than reading the image once saves.

    Args:
        min_num_branches: the least number of branches.
        min_depth: the least product of channels and kernel size.
    """
    combine_branches(graph, _key, ctx.skip, min_num_branches=min_num_branches, min_depth=min_depth)


def _key(node: Node) -> Hashable | None:
    if not node.is_op("Conv") or node.has_references:
        return None
    kernel, bias = node.given(1).tensor, node.input(2)
    if kernel is None or len(kernel.shape) != 4 or node.attr("group") != 1:
        return None
    if bias is not None and bias.tensor is None:
        return None
    return kernel.dtype, kernel.shape[1:], repr(sorted(node.settings.items()))
