"""Sigmoid(x)  =>  HardSigmoid(x), alpha = 1 / 6, beta = 0.5"""

from tiered import Graph, Value, op, rewrite, var


@rewrite(op.Sigmoid(var.x), opt_level=None, numerics="lossy")
def replace_sigmoid_with_hardsigmoid(graph: Graph, x: Value) -> Value:
    """Compute the sigmoid by its piecewise linear form, off by 0.07 at most; opt-in.

    For models that were trained for it, or targets without exponentials. The slope is that of
    HardSwish; NaN stays NaN.

    Source: Howard et al. 2019 (MobileNetV3), section 5.2.
    """
    result: Value = graph.op.HardSigmoid(x, alpha=1 / 6, beta=0.5)
    return result
