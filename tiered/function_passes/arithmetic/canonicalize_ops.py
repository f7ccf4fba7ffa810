"""Add(constant, x)  =>  Add(x, constant), Sum(a, b)  =>  Add(a, b), Transpose  =>  explicit perm"""

from typing import Final

from tiered import Graph, Node, PassContext, Skip, function_pass

_COMMUTATIVE: Final = ("Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Mul", "Or", "Xor")


@function_pass(
    opt_level=3, required=("infer_shapes",), looks_for=("Sum", *_COMMUTATIVE, "Transpose")
)
def canonicalize_ops(graph: Graph, ctx: PassContext) -> None:
    """Write equivalent forms of an operator in one form, so that one pattern matches them.

    A constant operand of a commutative operator is the second one, a Sum of two is an Add, and a
    Transpose has an explicit perm. Max and Min keep their order, which decides between two zeros.
    """
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
        rank = None if node.inputs[0] is None else node.inputs[0].rank
        if rank is None:
            ctx.skip(node, Skip("the rank of x is not known"))
            continue
        with graph.rewrite("Transpose(x) => Transpose(x, perm=...)", node):
            graph.set_attribute(node, "perm", list(reversed(range(rank))))


def _has_constant_left(node: Node) -> bool:
    left, right = node.inputs
    return left is not None and right is not None and left.is_constant and not right.is_constant
