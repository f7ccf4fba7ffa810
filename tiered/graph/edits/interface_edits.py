"""The primitives that edit the interface of a graph: inputs, outputs and their declarations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import onnx

from tiered.graph.core import use_lists
from tiered.graph.core.edit import Edit
from tiered.graph.core.types import TensorType, ValueType, read_type, tensor_type, write_type
from tiered.graph.core.value import NOT_INFERRED, Value
from tiered.graph.edits.invalidate import forget_elements_below
from tiered.graph.edits.nodes import enter, leave
from tiered.graph.edits.transactions import check_free
from tiered.graph.shape_inference.symbolic_dims import COMPOSED, INVENTED
from tiered.support.amounts import counted
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph


def set_graph_inputs(
    graph: Graph, inputs: Sequence[Value], infos: Sequence[onnx.ValueInfoProto] = ()
) -> None:
    """Replace the list of graph inputs with their declarations; a function has no declarations.

    A removed input that is also an initializer stays an initializer.

    Raises:
        ModelError: a removed input is still read, or a new one has a producer or another graph.
    """
    before, after = graph._inputs, list(inputs)
    for value in set(before).difference(after):
        if value.is_used and value._tensor is None:
            raise ModelError(f"graph input {value.name!r} cannot be removed: it is used")
    for value in after:
        if value.graph is not None and (value.producer is not None or value.graph is not graph):
            raise ModelError(f"{value!r} cannot be an input of graph {graph.name!r}")
        if value.graph is None:
            check_free(graph, value.name)
    if len(set(after)) < len(after):
        raise ModelError(f"graph {graph.name!r} cannot have one input twice")
    _check_declared(graph, "input", after, infos)
    types = [(value, value._type) for value in dict.fromkeys((*before, *after))]
    stated = dict(zip(before, graph._input_infos, strict=False))
    graph._log(Edit.SET_GRAPH_INPUTS, graph, before, graph._input_infos, types)
    write_graph_inputs(graph, after, list(infos))
    for value, info in zip(after, infos, strict=not graph.is_function):
        if stated.get(value) is not info:
            value._type = input_type(graph, info)
    for value in before:
        if value.input_of is None and value._tensor is not None:
            # A constant has the type of its contents, not the declared type of the input.
            value._type = NOT_INFERRED


def _check_declared(
    graph: Graph, what: str, values: Sequence[Value], infos: Sequence[onnx.ValueInfoProto]
) -> None:
    wanted = 0 if graph.is_function else len(values)
    if len(infos) != wanted:
        raise ModelError(
            f"graph {graph.name!r} gets {counted(len(values), what)} with "
            f"{counted(len(infos), 'declaration')}; expected {wanted}"
        )


def write_graph_inputs(graph: Graph, inputs: list[Value], infos: list[onnx.ValueInfoProto]) -> None:
    for value in graph._inputs:
        value.input_of = None
        if value._tensor is None:
            leave(graph, value)
    for value in (*graph._inputs, *inputs):
        if value._tensor is not None:
            # Whether callers may feed it has changed.
            value._elements = NOT_INFERRED
            forget_elements_below(value)
    graph._inputs, graph._input_infos = inputs, infos
    for value in inputs:
        value.input_of = graph
        if value.graph is None:
            value.producer = None
            enter(graph, value)


def input_type(graph: Graph, info: onnx.ValueInfoProto) -> ValueType | None:
    """Return the declared type of an input of a graph.

    Unknown dims of the main graph's inputs get invented names, because each is one size in a run.
    """
    value_type = declared_type(graph, info)
    if not graph.is_main or not isinstance(value_type, TensorType) or not value_type.shape:
        return value_type
    invent = graph.model.dims.invent
    shape = tuple([invent(is_given=True) if dim is None else dim for dim in value_type.shape])
    return tensor_type(value_type.dtype, shape)


def declared_type(graph: Graph, info: onnx.ValueInfoProto) -> ValueType | None:
    """Return the type of an input of a graph with this declaration.

    The dims of loop-carried values may differ in each iteration, even if they have names.
    """
    value_type = read_type(info.type)
    if graph.parent_node is None or graph.parent_node.op_type not in ("Loop", "Scan"):
        return value_type
    if not isinstance(value_type, TensorType) or value_type.shape is None:
        return value_type
    shape = tuple(dim if isinstance(dim, int) else None for dim in value_type.shape)
    return tensor_type(value_type.dtype, shape)


def add_input(
    graph: Graph, name: str, value_type: ValueType | None = None, *, index: int | None = None
) -> Value:
    """Add a graph input of a new name, last or before input `index`, and return its value.

    Raises:
        ModelError: the name is taken.
    """
    value = Value(graph.model.next_serial(), None, name)
    value._type = value_type
    mark_input(graph, value, index=index)
    return value


def mark_input(graph: Graph, value: Value, *, index: int | None = None) -> None:
    """Make a value without a producer an input: a detached one, or an initializer (a default).

    Raises:
        ModelError: a node computes it, or its dtype is unknown.
    """
    mark_inputs(graph, [value], index=index)


def mark_inputs(graph: Graph, values: Iterable[Value], *, index: int | None = None) -> None:
    """Make values inputs, as `mark_input` does each, in one edit.

    Raises:
        ModelError: a node computes one, or its dtype is unknown.
    """
    new = [value for value in dict.fromkeys(values) if value.input_of is not graph]
    if not new:
        return
    shown = _Shown(graph._inputs, graph._input_infos)
    constants = [value for value in new if value._tensor is not None]
    graph.set_graph_inputs(*shown.with_more(graph, new, index))
    if any(map(_has_types_below, constants)):
        # They may follow from the contents, which callers may replace now.
        graph.model.forget_types()


def _has_types_below(value: Value) -> bool:
    outputs = (output for reader in value._users.values() for output in reader._outputs)
    return any(output is not None and output._type is not NOT_INFERRED for output in outputs)


def remove_input(graph: Graph, value: Value) -> None:
    """Remove a graph input without users; one with an initializer becomes a constant.

    Raises:
        ModelError: it has users, or is not an input of the graph.
    """
    remove_inputs(graph, [value])


def remove_inputs(graph: Graph, values: Collection[Value]) -> None:
    """Remove graph inputs without users, as `remove_input` does each, in one edit.

    Raises:
        ModelError: one has users, or is not an input of the graph.
    """
    for value in values:
        if value.input_of is not graph:
            raise ModelError(f"{value.name!r} is not an input of graph {graph.name!r}")
    gone = set(values)
    kept = [at for at, value in enumerate(graph._inputs) if value not in gone]
    infos = [] if graph.is_function else [graph._input_infos[at] for at in kept]
    graph.set_graph_inputs([graph._inputs[at] for at in kept], infos)


def order_inputs(graph: Graph, order: Sequence[Value]) -> None:
    """Reorder the graph inputs.

    Raises:
        ModelError: the order is not a permutation of the inputs.
    """
    graph.set_graph_inputs(*_Shown(graph._inputs, graph._input_infos).ordered(order))


def add_output(graph: Graph, value: Value, *, index: int | None = None) -> None:
    """Make a value an output, last or before output `index`; it may already be one.

    Raises:
        ModelError: the value is not visible in the graph, or its dtype is unknown.
    """
    if graph in value.output_of:
        return
    shown = _Shown(graph._outputs, graph._output_infos)
    graph.set_graph_outputs(*shown.with_more(graph, [value], index))


def remove_output(graph: Graph, value: Value) -> None:
    """Remove a graph output; its producer stays until it is pruned.

    Raises:
        ModelError: it is not an output of the graph.
    """
    shown = _Shown(graph._outputs, graph._output_infos)
    kept = shown.without(value, f"output of graph {graph.name!r}")
    with _keeping_untold(graph, kept.values):
        graph.set_graph_outputs(*kept)


def replace_outputs(graph: Graph, values: Sequence[Value]) -> None:
    """Make some values the outputs, in this order; the declarations of those that were some stay.

    One edit, so that its time does not grow with the square of their number.

    Raises:
        ModelError: a value is not visible in the graph, or its dtype is unknown.
    """
    infos: list[onnx.ValueInfoProto] = []
    if not graph.is_function:
        # Of a value that is returned twice the first declaration stays.
        stated = dict(zip(reversed(graph._outputs), reversed(graph._output_infos), strict=True))
        infos = [stated[each] if each in stated else _declared(graph, each) for each in values]
    with _keeping_untold(graph, values):
        graph.set_graph_outputs(values, infos)


@contextmanager
def _keeping_untold(graph: Graph, kept: Collection[Value]) -> Iterator[None]:
    """Keep the types of former outputs that do not follow from their operators, as value_info."""
    gone = set(graph._outputs).difference(kept)
    found = {
        value: info
        for value, info in zip(graph._outputs, graph._output_infos, strict=False)
        if value in gone and value.graph is graph and not is_implied(value)
    }
    yield
    untold = [(value, info) for value, info in found.items() if value.declared is None]
    if untold:
        set_declarations(graph, untold, keep=len(graph.declarations))


def is_implied(value: Value) -> bool:
    """Return whether operators imply the type of a value: its dims, or all that is known of it."""
    if value.producer is None:
        return True
    made = value.owner.model.types.outputs_of(value.producer)[value.index :]
    found = made[0] if made else None
    has_dims = isinstance(found, TensorType) and found.shape is not None
    return has_dims or found == value.type


def order_outputs(graph: Graph, order: Sequence[Value]) -> None:
    """Reorder the graph outputs.

    Raises:
        ModelError: the order is not a permutation of the outputs.
    """
    graph.set_graph_outputs(*_Shown(graph._outputs, graph._output_infos).ordered(order))


def _declared(graph: Graph, value: Value) -> onnx.ValueInfoProto:
    """Return the declaration of a value that becomes part of the interface."""
    value_type = value.type
    if value_type is None and graph.is_main:
        raise ModelError(f"{value.name!r} needs a type to be an input or output of the model")
    proto = write_type(value_type)
    for dim in proto.tensor_type.shape.dim if proto.HasField("tensor_type") else ():
        if dim.dim_param.startswith((INVENTED, COMPOSED)):
            dim.ClearField("dim_param")
    return onnx.ValueInfoProto(name=value.name, type=proto)


class _Shown(NamedTuple):
    """The inputs or the outputs of a graph, each with its declaration; in a function with none."""

    values: list[Value]
    infos: list[onnx.ValueInfoProto]

    def with_more(self, graph: Graph, more: Sequence[Value], index: int | None) -> _Shown:
        """Return the items with more of them, last or at an index."""
        at = len(self.values) if index is None else index
        values, infos = list(self.values), list(self.infos)
        values[at:at] = more
        if not graph.is_function:
            infos[at:at] = [_declared(graph, value) for value in more]
        return _Shown(values, infos)

    def without(self, value: Value, what: str) -> _Shown:
        """Return the items without one, which must be present."""
        if value not in self.values:
            raise ModelError(f"{value.name!r} is not an {what}")
        values, infos = list(self.values), list(self.infos)
        at = values.index(value)
        del values[at], infos[at : at + 1]
        return _Shown(values, infos)

    def ordered(self, order: Sequence[Value]) -> _Shown:
        """Return the items in another order."""
        if Counter(self.values) != Counter(order):
            names = [value.name for value in self.values]
            raise ModelError(f"an order needs the same values; expected some order of {names}")
        places: dict[Value, list[int]] = {}
        for at, value in enumerate(self.values):
            places.setdefault(value, []).append(at)
        infos = [self.infos[places[value].pop(0)] for value in order] if self.infos else []
        return _Shown(list(order), infos)


def set_declarations(
    graph: Graph, declarations: Iterable[tuple[Value | None, onnx.ValueInfoProto]], keep: int = 0
) -> None:
    """Exchange the user's value_info after the first `keep` entries, each with its value."""
    after, before = list(declarations), graph.declarations[keep:]
    values = dict.fromkeys(value for value, _ in (*before, *after) if value is not None)
    spoken = [(value, value.declared) for value in values]
    graph._log(Edit.SET_DECLARATIONS, graph, keep, before, spoken)
    write_declarations(graph, keep, after)


def write_declarations(
    graph: Graph, keep: int, declarations: list[tuple[Value | None, onnx.ValueInfoProto]]
) -> None:
    names = graph.model.names
    for value, info in graph.declarations[keep:]:
        if value is not None:
            value.declared = None
        elif info.name:
            names.release(info.name)
    graph.declarations[keep:] = declarations
    for value, info in declarations:
        if value is not None:
            value.declared = info
        elif info.name:
            names.take(info.name)
    declare_outputs(graph)


def declare_outputs(graph: Graph) -> None:
    """Use the declaration of an output as the value_info of the value if it has none."""
    for value, info in zip(graph._outputs, graph._output_infos, strict=False):
        if value.declared is None and value.graph is graph:
            value.declared = info


def check_declared_alike(graph: Graph, value: Value, output: onnx.ValueInfoProto) -> None:
    """Check the declaration of an output that is an input of the graph too.

    Raises:
        ModelError: the input is declared with another dtype.
    """
    kinds = value._type, read_type(output.type)
    dtypes = {kind.dtype for kind in kinds if isinstance(kind, TensorType)}
    if len(dtypes) > 1:
        raise ModelError(
            f"graph {graph.name!r} declares {value.name!r} as the input {kinds[0]} and as the "
            f"output {kinds[1]}"
        )


def set_graph_outputs(
    graph: Graph, outputs: Sequence[Value], infos: Sequence[onnx.ValueInfoProto] = ()
) -> None:
    """Exchange the list of graph outputs, each with its declaration; those of a function have none.

    Raises:
        ModelError: the graph does not see one of the values, or declares it otherwise as an input.
    """
    for value in outputs:
        if not graph.sees(value):
            raise ModelError(f"{value!r} cannot be an output of graph {graph.name!r}")
    _check_declared(graph, "output", outputs, infos)
    for value, info in zip(outputs, infos, strict=False):
        if value.input_of is graph:
            check_declared_alike(graph, value, info)
    graph._log(Edit.SET_GRAPH_OUTPUTS, graph, graph._outputs, graph._output_infos)
    write_graph_outputs(graph, list(outputs), list(infos))


def write_graph_outputs(
    graph: Graph, outputs: list[Value], infos: list[onnx.ValueInfoProto]
) -> None:
    stated = {id(info) for info in graph._output_infos}
    for value in graph._outputs:
        use_lists.drop_output_use(value, graph)
        if id(value.declared) in stated:
            value.declared = None
    graph._outputs, graph._output_infos = outputs, infos
    for value in outputs:
        use_lists.add_output_use(value, graph)
    declare_outputs(graph)


def exchange_output(graph: Graph, old: Value, new: Value) -> None:
    """Return `new` from the graph wherever it returns `old`; the declarations stay.

    Raises:
        ModelError: the graph does not see the new value, does not return the old one, or declares
            the new one as an input of another dtype.
    """
    if not graph.sees(new):
        raise ModelError(f"{new!r} cannot be an output of graph {graph.name!r}")
    places = tuple(_places(graph).get(old, ()))
    if not places:
        raise ModelError(f"{old.name!r} is not an output of graph {graph.name!r}")
    if new.input_of is graph and graph._output_infos:
        for place in places:
            check_declared_alike(graph, new, graph._output_infos[place])
    graph._log(Edit.EXCHANGE_GRAPH_OUTPUT, graph, new, old, places)
    write_exchanged_output(graph, old, new, places)


def write_exchanged_output(graph: Graph, old: Value, new: Value, places: Sequence[int]) -> None:
    found = _places(graph)
    _forget_declarations(graph, (old, new))
    for place in places:
        use_lists.drop_output_use(old, graph)
        graph._outputs[place] = new
        use_lists.add_output_use(new, graph)
    left = [place for place in found[old] if place not in places]
    if left:
        found[old] = left
    else:
        del found[old]
    found[new] = sorted([*found.get(new, ()), *places])
    for value in (old, new):
        _declare(graph, value)


def _places(graph: Graph) -> dict[Value, list[int]]:
    """Return at which places of the outputs each value is, ascending."""
    kept = graph._output_places
    if kept is not None and kept[0] is graph._outputs:
        return kept[1]
    found: dict[Value, list[int]] = {}
    for place, value in enumerate(graph._outputs):
        found.setdefault(value, []).append(place)
    graph._output_places = graph._outputs, found
    return found


def _forget_declarations(graph: Graph, values: Iterable[Value]) -> None:
    """Drop the value_info of values that is the declaration of an output."""
    infos, found = graph._output_infos, _places(graph)
    for value in values:
        if any(infos[place] is value.declared for place in found.get(value, ()) if infos):
            value.declared = None


def _declare(graph: Graph, value: Value) -> None:
    """Use the declaration of an output as the value_info of the value if it has none."""
    places = _places(graph).get(value)
    if places and graph._output_infos and value.declared is None and value.graph is graph:
        value.declared = graph._output_infos[places[0]]
