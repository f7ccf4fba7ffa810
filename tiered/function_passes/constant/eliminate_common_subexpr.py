"""Two nodes that compute the same  =>  one"""

from collections import ChainMap
from collections.abc import Hashable, MutableMapping, Sequence
from typing import Any, Final

from onnx import TypeProto

from tiered import DataType, Graph, Node, PassContext, Tensor, function_pass, is_deterministic
from tiered.graph.queries.op_traits import COMMUTATIVE

Known = MutableMapping[Hashable, Node]

# For 0.0 and -0.0 they may return the first operand.
_ORDERED_FLOATS: Final = frozenset({"Max", "Min"})

# As a graph output, it costs no more than the Identity that would replace it.
_CHEAP: Final = frozenset({"Constant", "Identity"})

# Copies that `recompute` made stay apart: they are there to free memory between their readers.
_MARKS: Final = (
    "tiered.compiler", "tiered.region", "tiered.device", "tiered.stage", "tiered.recomputed"
)  # fmt: skip


@function_pass(
    opt_level=3, required=("infer_shapes",), conflicts=("canonicalize_cast",), touches=("*",)
)
def eliminate_common_subexpr(graph: Graph, ctx: PassContext) -> None:
    """Compute each expression once; a body may use values of its outer graphs."""
    while graph.parent_node is None:
        mark = graph.model.mark()
        _visit(graph, {})
        # Two bodies may be equal only now.
        if not graph.body_nodes or not graph.model.changed_since(mark):
            break


def _visit(graph: Graph, known: Known) -> None:
    """Replace each node of a graph by an earlier one that computes the same.

    The key has two parts. The outline (operator and operands) is cheap and rarely equal, so the
    details (attributes, outputs, compiler) are built only for nodes of one outline.
    `structural_hash` compares computations down to the inputs; equal operands are one value here.

    Args:
        graph: the graph.
        known: the first node of each outline, and of each outline with details.
    """
    order = graph.topological_order()
    for node in order:
        outline = node.domain, node.op_type, _operands(node)
        alike = known.setdefault(outline, node)
        if alike is node or not _may_be_shared(node):
            continue
        if not _may_be_shared(alike):
            known[outline] = node
            continue
        known.setdefault((outline, _details(alike)), alike)
        first = known.setdefault((outline, _details(node)), node)
        if first is not node:
            with graph.rewrite("two nodes that compute the same => one", node):
                graph.replace(node, first.outputs)
    # A node with the operands of one in a body depends on nothing that comes after the body's
    # owner, whatever place the order gives it.
    for node in order:
        for body in node.bodies if node.is_live else ():
            _visit(body, ChainMap({}, known))


def _operands(node: Node) -> tuple[int, ...]:
    """Return the ids of the operands, sorted where their order does not matter."""
    operands = _present([0 if value is None else value.id for value in node.inputs])
    if len(operands) == 2 and node.op_type in COMMUTATIVE and not node.domain:
        return operands if _minds_order(node) else tuple(sorted(operands))
    return operands


def _may_be_shared(node: Node) -> bool:
    """Return whether one node may replace all nodes equal to this one."""
    if node.has_references or node.is_pinned or not is_deterministic(node):
        return False
    if any(_is_apart(inner) for body in node.bodies for inner in body.walk()):
        return False
    outputs = [value for value in node.outputs if value is not None and value.is_graph_output]
    if not all(value.dtype is None or DataType(value.dtype).has_identity for value in outputs):
        return False  # no runtime runs the Identity that would take its place
    is_cheap = node.op_type in _CHEAP and not node.domain
    return not (is_cheap and outputs)


def _is_apart(inner: Node) -> bool:
    """Return whether marks or names in metadata keep the node of a body apart."""
    return inner.has_references or inner.is_pinned or any(map(inner.metadata.get, _MARKS))


def _bodies(node: Node) -> Hashable:
    """Return what is equal for equal bodies: their computation, and the types they declare."""
    return tuple(
        (
            body.attribute,
            body.structural_hash(),
            tuple(info.type.SerializeToString(deterministic=True) for info in body.output_infos),
        )
        for body in node.bodies
    )


def _details(node: Node) -> Hashable:
    """Return the rest of the key: two nodes with equal operands compute the same if it is equal."""
    return (
        _attributes(node),
        _bodies(node) if node.bodies else (),
        _present([value is not None for value in node.outputs]),
        tuple(map(node.metadata.get, _MARKS)),
    )


def _minds_order(node: Node) -> bool:
    if node.op_type not in _ORDERED_FLOATS:
        return False
    dtype = node.output.dtype
    return dtype is None or DataType(dtype).is_float


def _present(slots: Sequence[int]) -> tuple[int, ...]:
    """Return the slots without absent ones at the end, which may be omitted."""
    length = len(slots)
    while length and not slots[length - 1]:
        length -= 1
    return tuple(slots[:length])


def _attributes(node: Node) -> Hashable:
    if node.is_op("Constant"):
        tensor = node.constant_tensor()
        return None if tensor is None else tensor.key()
    return tuple(sorted((name, _frozen(value)) for name, value in node.settings.items()))


def _frozen(value: Any) -> Hashable:
    match value:
        case Tensor():
            return value.key()
        case TypeProto():
            return value.SerializeToString(deterministic=True)
        case tuple():
            return tuple(map(_frozen, value))
        case _:
            return repr(value)
