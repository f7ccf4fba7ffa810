"""Two initializers with the same bits  =>  one"""

from collections import ChainMap, Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, MutableMapping

from tiered import Graph, PassContext, Tensor, Value, function_pass

Constant = tuple[Value, Tensor]
Kept = MutableMapping[Hashable, Value]


@function_pass(opt_level=1, conflicts=("format_parameter",))
def eliminate_duplicate_initializer(graph: Graph, ctx: PassContext) -> None:
    """Keep the first of equal initializers, in this graph or an outer one.

    Dtype, dims and bytes must agree: -0.0 is not 0.0, and NaN equals itself. Contents are read
    whole only if dtype, dims and the first elements agree.
    """
    if graph.owner is not None:
        return
    groups: defaultdict[Hashable, list[Constant]] = defaultdict(list)
    for value, tensor in _constants(graph):
        groups[tensor.dtype, tensor.shape].append((value, tensor))
    alike: dict[int, Tensor] = {}
    for group in groups.values():
        if len(group) > 1:
            alike.update(_alike(group))
    if alike:
        _merge(graph, alike, {})


def _constants(graph: Graph) -> Iterator[Constant]:
    for value in graph.initializers:
        if (tensor := value.tensor) is not None:
            yield value, tensor
    for node in graph.owners:
        for body in node.bodies:
            yield from _constants(body)


def _alike(group: list[Constant]) -> Iterator[tuple[int, Tensor]]:
    """Yield the constants of one dtype and shape that start with the same elements as another."""
    outlines = [tensor.outline() for _, tensor in group]
    counts = Counter(outlines)
    for (value, tensor), outline in zip(group, outlines, strict=True):
        if counts[outline] > 1:
            yield value.id, tensor


def _merge(graph: Graph, alike: Mapping[int, Tensor], kept: Kept) -> None:
    candidates = [value for value in graph.initializers if value.id in alike]
    # A constant that must stay replaces the others.
    staying = {value.id for value in candidates if value.is_graph_output or value.pins}
    for value in candidates:
        if value.id in staying:
            kept.setdefault(alike[value.id].key(), value)
    for value in candidates:
        if value.id in staying:
            continue
        first = kept.setdefault(alike[value.id].key(), value)
        if first is not value:
            with graph.rewrite("two initializers with the same bits => one", value):
                graph.replace_uses(value, first)
                graph.remove_constant(value)
    owners = tuple(graph.owners)
    if not owners:
        return
    # An empty tensor may be an absent operand, which onnx's inference of a body sees in the body.
    shared = {key: value for key, value in kept.items() if not _is_empty(value)}
    for node in owners:
        for body in node.bodies:
            _merge(body, alike, ChainMap({}, shared))


def _is_empty(value: Value) -> bool:
    return value.tensor is not None and value.tensor.size == 0
