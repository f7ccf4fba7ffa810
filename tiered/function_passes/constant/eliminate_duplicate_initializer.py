"""Two initializers with the same bits  =>  one"""

from collections import defaultdict

from tiered import Graph, PassContext, Value, function_pass


@function_pass(opt_level=1, conflicts=("format_parameter",))
def eliminate_duplicate_initializer(graph: Graph, ctx: PassContext) -> None:
    """Keep the first of equal initializers, here or in a graph above.

    Dtype, dims and bytes must agree: -0.0 is not 0.0, and NaN equals itself. Contents are read only
    where dtype and dims agree.
    """
    candidates: defaultdict[object, list[Value]] = defaultdict(list)
    scope: Graph | None = graph
    while scope is not None:
        for value in scope.initializers:
            if not value.is_overridable and value.default is not None:
                tensor = value.default
                candidates[tensor.dtype, tensor.shape].append(value)
        scope = scope.parent
    for alike in candidates.values():
        if len(alike) > 1 and any(value.graph is graph for value in alike):
            _merge(graph, alike)


def _merge(graph: Graph, values: list[Value]) -> None:
    # The graphs above come first, and within a graph the order of the file.
    values.sort(key=lambda value: (value.owner.depth, value.id))
    kept: dict[object, Value] = {}
    for value in values:
        assert value.default is not None
        first = kept.setdefault(value.default.key(), value)
        if first is value or value.graph is not graph or value.pins or value.is_graph_output:
            continue
        with graph.rewrite("two initializers with the same bits => one", value):
            graph.replace_uses(value, first)
            graph.remove_constant(value)
