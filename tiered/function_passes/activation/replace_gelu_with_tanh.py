"""Gelu(x)  =>  Gelu(x, approximate="tanh")"""

from tiered import Graph, Value, op, rewrite, var


@rewrite(op.Gelu(var.x, approximate="none"), opt_level=4, numerics="approximate")
def replace_gelu_with_tanh(graph: Graph, x: Value) -> Value:
    """Compute Gelu by a hyperbolic tangent instead of the error function; off by 4.8e-4 at most.

    Source: Hendrycks & Gimpel 2016, section 2: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
    """
    result: Value = graph.op.Gelu(x, approximate="tanh")
    return result
