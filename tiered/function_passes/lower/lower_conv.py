"""Conv(x, weight)  =>  Reshape(MatMul(weight, windows of x))"""

import math

from tiered import DataType, Graph, Node, Skip, Value, op, opt, rewrite, var
from tiered.rewriter.idioms.windows import convolved, windows_of


@rewrite(
    op.Conv(var.x, var.weight, opt.bias, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    followed_by=("fold_constant", "eliminate_unused_initializer"),
    legalizes=True,
    numerics="reassociating",
)
def lower_conv(
    graph: Graph, node: Node, x: Value, weight: Value, bias: Value | None
) -> Value | Skip:
    """Gather the windows into columns (im2col), and multiply them by the kernels.

    Any kernel, stride, dilation, padding and number of groups. A kernel of one pixel needs no
    columns: that is `conv_to_matmul`.
    """
    kernel = weight.shape or ()
    if x.dtype not in (DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16):
        return Skip("the dtype of x has no product")
    known = [dim for dim in kernel if isinstance(dim, int) and dim]
    if len(known) < 3 or len(known) != len(kernel) or x.rank != len(kernel):
        return Skip("the kernel size is not known")
    group = int(node.attr("group"))
    if x.dim(1) != known[1] * group or known[0] % group:
        return Skip("the channels do not fit the groups")
    windows = windows_of(node, x, known[2:])
    if isinstance(windows, Skip):
        return windows
    if windows.kernel == 1 and group == 1 and math.prod(windows.counts) == _pixels(x):
        return Skip("the kernel is one pixel")
    return convolved(graph, windows, x, weight, bias, kernels=known[0], group=group)


def _pixels(x: Value) -> int:
    return math.prod(dim for dim in (x.shape or ())[2:] if isinstance(dim, int))
