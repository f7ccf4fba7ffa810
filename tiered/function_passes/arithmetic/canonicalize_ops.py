"""Add(constant, x)  =>  Add(x, constant), Sum(a, b)  =>  Add(a, b), Transpose  =>  explicit perm"""

from typing import Final, Literal

import numpy as np

from tiered import Graph, Node, PassContext, Skip, Value, function_pass
from tiered.graph.queries.op_traits import BITWISE, LOGIC

# Max and Min keep the order of their operands, which decides between two zeros.
_COMMUTATIVE: Final = tuple(sorted(("Add", "Mul", *LOGIC, *BITWISE)))
_BIASED: Final = ("Conv", "ConvTranspose", "Gemm")


@function_pass(
    opt_level=3,
    required=("infer_shapes",),
    matches=("Sum", *_COMMUTATIVE, "Transpose", *_BIASED),
    numerics_option="bias",
)
def canonicalize_ops(graph: Graph, ctx: PassContext, *, bias: Literal["", "split"] = "") -> None:
    """Write equivalent forms of an operator in one form, so that one pattern matches them.

    A constant operand of a commutative operator is the second one, a Sum of two is an Add, and a
    Transpose has an explicit perm. Max and Min keep their order, which decides between two zeros.

    Args:
        bias: `split` makes an Add of the bias of Conv, ConvTranspose and Gemm; passes that fuse
            biases would fuse it again.
    """
    if bias == "split":
        _split_biases(graph, ctx)
    for node in graph.nodes_of("Sum"):
        if len(node.inputs) == 2:
            with graph.rewrite("Sum(a, b) => Add(a, b)", node):
                graph.replace(node, (graph.op.Add(*node.inputs, name=node.name or None),))
    for op_type in _COMMUTATIVE:
        for node in graph.nodes_of(op_type):
            if _has_constant_left(node):
                with graph.rewrite(f"{op_type}(constant, x) => {op_type}(x, constant)", node):
                    graph.set_inputs(node, node.inputs[::-1])
    for node in graph.nodes_of("Transpose"):
        if node.has_attr("perm"):
            continue
        rank = node.given(0).rank
        if rank is None:
            ctx.skip(node, Skip("the rank of x is not known"))
            continue
        with graph.rewrite("Transpose(x) => Transpose(x, perm=...)", node):
            graph.set_attribute(node, "perm", list(reversed(range(rank))))


def _has_constant_left(node: Node) -> bool:
    return node.given(0).is_constant and not node.given(1).is_constant


def _split_biases(graph: Graph, ctx: PassContext) -> None:
    for op_type in ("Conv", "ConvTranspose", "Gemm"):
        for node in graph.nodes_of(op_type):
            x, w, bias = node.given(0), node.given(1), node.input(2)
            if bias is None:
                continue
            reason = _why_not_split(node, x)
            if reason is not None:
                ctx.skip(node, reason)
                continue
            with graph.rewrite(f"{op_type}(x, w, bias) => Add({op_type}(x, w), bias)", node):
                like = graph.op.like
                product = like(node, x, w, beta=None) if op_type == "Gemm" else like(node, x, w)
                graph.replace(node, (graph.op.Add(product, _summand(graph, node, x, bias)),))


def _summand(graph: Graph, node: Node, x: Value, bias: Value) -> Value:
    """Return the bias in the shape and scale in which it is added."""
    if node.op_type != "Gemm":
        ones = [1] * len((x.shape or ())[2:])
        return graph.op.Reshape(bias, np.array([-1, *ones], np.int64)) if ones else bias
    beta = node.attr("beta")
    return bias if beta == 1 else graph.op.Mul(bias, float(beta))


def _why_not_split(node: Node, x: Value) -> Skip | None:
    if node.has_references:
        return Skip("{}", node.parameter_reason)
    if node.op_type != "Gemm":
        return Skip("the rank of the image is not known") if x.rank is None else None
    if node.version < 11:
        return Skip("Gemm needs a bias before opset 11")
    if node.attr("beta") == 0:
        return Skip("beta is 0, which hides NaN of the bias")
    if node.attr("beta") != 1 and not x.is_float:
        return Skip("beta scales a bias that is not float")
    return None
