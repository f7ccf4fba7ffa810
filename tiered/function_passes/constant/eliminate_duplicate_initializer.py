"""Two initializers with the same bits  =>  one"""

from collections import ChainMap, Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, MutableMapping

from tiered import Graph, PassContext, Size, Tensor, Value, function_pass, size_in_bytes
from tiered.graph.queries.equal_tensors import EqualTensors

Constant = tuple[Value, Tensor]
Kept = MutableMapping[Hashable, Value]


@function_pass(opt_level=1, conflicts=("format_parameter",))
def eliminate_duplicate_initializer(
    graph: Graph, ctx: PassContext, *, max_read: Size = Size("16GB")
) -> None:
    """Keep the first of equal initializers, in this graph or an outer one.

    Dtype, dims and bytes must agree: -0.0 is not 0.0, and NaN equals itself. Tensors that start
    alike are compared at places spread over them, then in blocks that grow, until they differ.

    Args:
        max_read: the most bytes of files that are read to compare tensors, in bytes or as a share
            of the model; those that would need more stay apart, and a remark says how many.
    """
    if graph.parent_node is not None:
        return
    groups = _starting_alike(graph)
    if not groups:
        return
    comparison = EqualTensors(size_in_bytes(max_read, graph.model.nbytes))
    alike: dict[int, Hashable] = {}
    for group in groups:
        keys = comparison.keys([tensor for _, tensor in group])
        counts = Counter(keys)
        found = zip(group, keys, strict=True)
        alike.update({value.id: key for (value, _), key in found if counts[key] > 1})
    if left := comparison.uncompared:
        nbytes = sum(tensor.nbytes for tensor in left)
        ctx.remark(
            f"{len(left)} constants that start alike, {nbytes} bytes, were not compared to the end:"
            f" max_read={max_read}"
        )
    if alike:
        _merge(graph, alike, {})


def _constants(graph: Graph) -> Iterator[Constant]:
    for value in graph.initializers:
        if (tensor := value.tensor) is not None:
            yield value, tensor
    for node in graph.body_nodes:
        for body in node.bodies:
            yield from _constants(body)


def _starting_alike(graph: Graph) -> list[list[Constant]]:
    """Return the constants of one dtype and shape that start with the same elements as another."""
    groups: defaultdict[Hashable, list[Constant]] = defaultdict(list)
    for value, tensor in _constants(graph):
        groups[tensor.dtype, tensor.shape].append((value, tensor))
    outlines: defaultdict[Hashable, list[Constant]] = defaultdict(list)
    for key, group in groups.items():
        for value, tensor in group if len(group) > 1 else ():
            outlines[key, tensor.outline()].append((value, tensor))
    return [group for group in outlines.values() if len(group) > 1]


def _merge(graph: Graph, alike: Mapping[int, Hashable], kept: Kept) -> None:
    candidates = [value for value in graph.initializers if value.id in alike]
    # A constant that must stay replaces the others.
    staying = {value.id for value in candidates if value.is_graph_output or value.pins}
    for value in candidates:
        if value.id in staying:
            kept.setdefault(alike[value.id], value)
    for value in candidates:
        if value.id in staying:
            continue
        first = kept.setdefault(alike[value.id], value)
        if first is not value:
            with graph.rewrite("two initializers with the same bits => one", value):
                graph.replace_uses(value, first)
                graph.remove_constant(value)
    owners = tuple(graph.body_nodes)
    if not owners:
        return
    # An empty tensor may be an absent operand, which onnx's inference of a body sees in the body.
    shared = {key: value for key, value in kept.items() if not _is_empty(value)}
    for node in owners:
        for body in node.bodies:
            _merge(body, alike, ChainMap({}, shared))


def _is_empty(value: Value) -> bool:
    return value.tensor is not None and value.tensor.size == 0
