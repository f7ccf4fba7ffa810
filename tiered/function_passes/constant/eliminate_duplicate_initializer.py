"""Two initializers with the same bits  =>  one"""

from collections import ChainMap, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, MutableMapping

from onnx import TensorProto

from tiered import Graph, PassContext, Tensor, Value, function_pass

Constant = tuple[Value, Tensor]
Kept = MutableMapping[Hashable, Value]


@function_pass(opt_level=1, conflicts=("format_parameter",))
def eliminate_duplicate_initializer(graph: Graph, ctx: PassContext) -> None:
    """Keep the first of equal initializers, here or in a graph above.

    Dtype, dims and bytes must agree: -0.0 is not 0.0, and NaN equals itself. Contents are read
    whole only where dtype, dims and the first numbers agree.
    """
    if graph.owner is not None:
        return
    alike = [[*_constants(graph)]]
    for looks in (_outside, _inside):
        alike = [part for group in alike for part in _parts(group, looks) if len(part) > 1]
    _merge(graph, {value for group in alike for value, _ in group}, {})


def _constants(graph: Graph) -> Iterator[Constant]:
    for value in graph.initializers:
        if value.tensor is not None:
            yield value, value.tensor
    for node in graph.nodes:
        for body in node.bodies:
            yield from _constants(body)


def _parts(
    group: list[Constant], looks: Callable[[Tensor], Hashable]
) -> Iterable[list[Constant]]:
    parts: defaultdict[Hashable, list[Constant]] = defaultdict(list)
    for value, tensor in group:
        parts[looks(tensor)].append((value, tensor))
    return parts.values()


def _outside(tensor: Tensor) -> Hashable:
    return tensor.dtype, tensor.shape


def _inside(tensor: Tensor) -> Hashable:
    """Return what tells most tensors apart at next to no cost: the first numbers."""
    if tensor.is_sparse or tensor.dtype == TensorProto.STRING:
        return tensor.key()
    return tensor.numpy().reshape(-1)[:64].tobytes()


def _merge(graph: Graph, alike: set[Value], kept: Kept) -> None:
    # What must stay anyway is what the others become.
    candidates = [value for value in graph.initializers if value in alike]
    for value in sorted(candidates, key=lambda value: not _must_stay(value)):
        assert value.tensor is not None
        first = kept.setdefault(value.tensor.key(), value)
        if first is value or _must_stay(value):
            continue
        freed = value.tensor.nbytes
        with graph.rewrite("two initializers with the same bits => one", value):
            graph.replace_uses(value, first)
            graph.remove_constant(value)
        if value.graph is None:
            # There is room for more constants again.
            graph.model.folded_growth -= freed
    for node in graph.nodes:
        for body in node.bodies:
            _merge(body, alike, ChainMap({}, kept))


def _must_stay(value: Value) -> bool:
    return value.is_graph_output or value.pins > 0
