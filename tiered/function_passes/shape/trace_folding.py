"""Shape arithmetic that the shapes determine  =>  constants, or one computation of each size"""

from collections import ChainMap
from collections.abc import Collection, Hashable, Iterable, MutableMapping
from typing import Any, Final

import numpy as np

from tiered import DataType, Graph, Node, PassContext, Skip, Tensor, Value, function_pass
from tiered.function_passes.shape._target_shape import expand_target, reshape_target
from tiered.runtime.fold.node_evaluation import freed_bytes

Elements = np.ndarray[Any, np.dtype[Any]]

Known = MutableMapping[Hashable, Value]

_KEPT: Final = frozenset({"Constant", "If", "Loop", "Scan"})

# More elements than any shape.
_MANY: Final = 16

_TRACED: Final = frozenset({DataType.INT64, DataType.INT32, DataType.BOOL})

# The types of known elements that are not symbolic.
_NUMBERS: Final = frozenset({bool, int})


@function_pass(
    opt_level=2,
    required=("infer_shapes",),
    followed_by=("eliminate_unused_initializer",),
    touches=("*",),
)
def trace_folding(graph: Graph, ctx: PassContext) -> None:
    """Fold traced shape arithmetic as far as the declared input shapes determine it.

    There are three laws. An integer tensor with only known elements becomes a constant. Two tensors
    with equal symbolic elements are computed once. The target of a Reshape or Expand becomes a
    constant if each size is a number or a dim of the operand; in the target of a Reshape that has
    other sizes too, the operands of a Concat that are such sizes become constants.
    """
    if graph.parent_node is None:
        _visit(graph, ctx, {})


def _visit(graph: Graph, ctx: PassContext, known: Known) -> None:
    whole, symbolic = _traced(graph)
    # Consumers first: the operands of a new constant need no folding.
    for node in reversed(_in_order(graph, _producers(whole))):
        if node.graph is graph:
            for value in node.outputs:
                if value in whole:
                    _fold_value(graph, ctx, node, value, whole[value])
    sized = {
        node: target
        for op_type in ("Expand", "Reshape")
        for node in graph.nodes_of(op_type)
        if (target := _folded_sizes(node)) is not None
    }
    joined = {node for node in graph.nodes_of("Reshape") if _copied_sizes(node)} - sized.keys()
    keys = set(symbolic.values())
    has_equals = len(keys) < len(symbolic) or any(key in known for key in keys)
    if not (has_equals or sized or joined or graph.body_nodes):
        return  # In most runs nothing is left to do; nothing is sorted then.
    for node in _in_order(graph, {*_producers(symbolic), *sized, *joined, *graph.body_nodes}):
        for body in node.bodies:
            _visit(body, ctx, ChainMap({}, known))
        if node in sized:
            _fold_sizes(graph, node, sized[node])
        elif node in joined:
            _copy_sizes(graph, node)
        for value in node.outputs:
            if value in symbolic:
                _share_value(graph, node, value, symbolic[value], known)


def _traced(graph: Graph) -> tuple[dict[Value, Elements], dict[Value, Hashable]]:
    """Return the computed values with only known elements, and those with symbolic ones.

    Two symbolic values have the same elements if their keys are equal.
    """
    whole: dict[Value, Elements] = {}
    symbolic: dict[Value, Hashable] = {}
    for value in tuple(graph.values.values()):
        node = value.producer
        if node is None or value.dtype not in _TRACED or node.op_type in _KEPT or node.domain:
            continue
        if (elements := value.elements) is None:
            continue
        flat = elements.ravel().tolist()
        if _NUMBERS.issuperset(map(type, flat)):
            whole[value] = elements
        elif None not in flat:
            symbolic[value] = (value.dtype, elements.shape, tuple(flat))
    return whole, symbolic


def _producers(values: Iterable[Value]) -> set[Node]:
    return {value.producer for value in values if value.producer is not None}


def _in_order(graph: Graph, nodes: Collection[Node]) -> list[Node]:
    return [node for node in graph.topological_order() if node in nodes] if nodes else []


def _fold_value(
    graph: Graph, ctx: PassContext, node: Node, value: Value, elements: Elements
) -> None:
    if value.pins or not value.is_used:
        return
    if value.is_graph_output and node.op_type == "Identity":
        # The Identity only renames the output.
        return
    assert value.dtype is not None
    array = elements.astype(DataType(value.dtype).numpy)
    if array.size > _MANY and array.nbytes > freed_bytes(value):
        # The growth budget is fold_constant's, once the operands are constants.
        ctx.skip(node, Skip("the constant would make the model grow"))
        return
    with graph.rewrite("a tensor whose elements are all known => a constant", node):
        graph.become_constant(value, Tensor.of(array))


def _share_value(graph: Graph, node: Node, value: Value, key: Hashable, known: Known) -> None:
    if value.pins or not value.is_used:
        return
    first = known.get(key)
    if first is None or first.graph is None:
        if not value.is_graph_output:
            known[key] = value
    elif not value.is_graph_output or _may_be_returned(first, node):
        with graph.rewrite("two tensors with the same elements for all dims => one", node):
            graph.replace_uses(value, first)
            graph.prune([node])


def _may_be_returned(value: Value, node: Node) -> bool:
    """Return whether a value can become the output of the model that a node computes."""
    return value.can_become_output and value.graph is node.graph and node.op_type != "Identity"


def _folded_sizes(node: Node) -> list[int] | None:
    """Return the new target of a Reshape or Expand; None if it stays as it is.

    A target that is a constant already stays so, and the Reshape loses its allowzero.
    """
    data, sizes = node.given(0), node.input(1)
    if sizes is None or data.shape is None or node.has_references:
        return None
    is_strict = bool(node.attr("allowzero", 0))
    if sizes.is_constant and not is_strict:
        return None
    elements = sizes.elements
    if elements is None or elements.ndim != 1:
        return None
    if sizes.is_constant:
        written: list[int] = elements.tolist()
        return None if 0 in written else written
    folded = reshape_target if node.op_type == "Reshape" else expand_target
    return folded(node, data, elements)


def _fold_sizes(graph: Graph, node: Node, target: list[int]) -> None:
    """Replace the target of a Reshape or Expand by a constant."""
    sizes = node.given(1)
    if sizes.is_constant:
        with graph.rewrite("allowzero where no size is 0 => the default", node):
            graph.set_attribute(node, "allowzero", None)
        return
    with graph.rewrite("sizes that are numbers or dims of the operand => a constant", node):
        graph.set_input(node, 1, graph.constant(np.array(target, np.int64), f"{sizes.name}_folded"))
        if node.attr("allowzero", 0):
            graph.set_attribute(node, "allowzero", None)
        graph.prune(_producers([sizes]))


def _copied_sizes(node: Node) -> dict[int, list[int]]:
    """Return the operands of a Reshape's Concat of sizes that can be constants: 0 copies a dim.

    A 0 is as valid as the size that it copies, unless the target has a -1 or allowzero.
    """
    data, join = node.given(0), node.producer(1)
    if data.shape is None or node.has_references or node.attr("allowzero", 0):
        return {}
    if join is None or not join.is_op("Concat") or not join.output.has_one_user:
        return {}
    dims = [data.owner.model.dims.size(dim) for dim in data.shape]
    found: dict[int, list[int]] = {}
    axis = 0
    for slot, part in enumerate(join.reads):
        elements = part.elements
        if elements is None:
            return {}
        written: list[int] = []
        for size in elements.tolist():
            if isinstance(size, int) and size <= 0:
                return {}
            if isinstance(size, int):
                written.append(size)
            elif size is not None and axis < len(dims) and size == dims[axis]:
                written.append(0)
            axis += 1
        if len(written) == len(elements) and not part.is_constant and part.has_one_user:
            found[slot] = written
    return found


def _copy_sizes(graph: Graph, node: Node) -> None:
    """Make constants of the operands of a Concat of sizes that the Reshape can copy."""
    copied, join = _copied_sizes(node), node.producer(1)
    if not copied or join is None:
        return
    with graph.rewrite("sizes in a Concat that are numbers or dims of the operand => 0", node):
        for slot, written in copied.items():
            part = join.given(slot)
            graph.set_input(join, slot, graph.constant(np.array(written, np.int64), "copied"))
            graph.prune(_producers([part]))
