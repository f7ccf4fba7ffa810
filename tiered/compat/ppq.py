"""The names of `ppq.IR` for the view: BaseGraph, Operation and Variable.

Each name is an alias of a name of tiered, where the documentation is. The behaviour differs where
that of PPQ would break an ONNX model, and errors are `ModelError`s: see `docs/view.md`.

    graph = BaseGraph(model.main)
    relu = graph.create_operation("Relu")
    graph.insert_op_after(relu, graph.operations["conv1"])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tiered.graph import Graph, Model, Node, Value
from tiered.graph.edits import surgery
from tiered.rewriter.subgraphs import graph_search

PLATFORM = "tiered.device"
"""The key of metadata that PPQ calls the platform of an operation."""


@dataclass(slots=True, unsafe_hash=True)
class Variable:
    """A `Value`. Two are equal when their values are the same one."""

    _value: Value

    @property
    def name(self) -> str:
        return self._value.name

    @name.setter
    def name(self, name: str) -> None:
        self._value.owner.rename_value(self._value, name)

    @property
    def is_parameter(self) -> bool:
        return self._value.is_initializer and not self._value.is_overridable

    @is_parameter.setter
    def is_parameter(self, is_parameter: bool) -> None:
        surgery.mark_parameter(self._value, is_parameter)

    @property
    def value(self) -> np.ndarray[Any, Any] | None:
        return self._value.const

    @value.setter
    def value(self, contents: np.ndarray[Any, Any]) -> None:
        self._value.owner.assign(self._value, contents)

    @property
    def source_op(self) -> Operation | None:
        return None if self._value.producer is None else Operation(self._value.producer)

    @source_op.setter
    def source_op(self, operation: Operation) -> None:
        operation._node.owner.connect(operation._node, None, self._value)

    @property
    def src_idx(self) -> int:
        return self._value.index

    @property
    def dest_ops(self) -> tuple[Operation, ...]:
        return tuple(Operation(use.node) for use in self._value.users)

    @property
    def dest_idx(self) -> tuple[int, ...]:
        return tuple(use.slot for use in self._value.users)

    @property
    def shape(self) -> tuple[int | str | None, ...] | None:
        return self._value.shape

    @shape.setter
    def shape(self, shape: Sequence[int | str | None] | None) -> None:
        surgery.retype(self._value, shape=None if shape is None else tuple(shape))

    @property
    def dtype(self) -> int | None:
        return self._value.dtype

    @dtype.setter
    def dtype(self, dtype: int) -> None:
        surgery.retype(self._value, dtype=dtype)

    def copy(self, copy_value: bool = False) -> Variable:
        contents = self._value.const if copy_value else None
        return Variable(self._value.owner.create_value(self.name, contents))


@dataclass(slots=True, eq=False)
class Attributes(MutableMapping[str, Any]):
    """The attributes of a node; writing one writes it into the model."""

    _node: Node

    def __getitem__(self, name: str) -> Any:
        return self._node.attributes[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._node.owner.set_attribute(self._node, name, value)

    def __delitem__(self, name: str) -> None:
        self._node.owner.set_attribute(self._node, name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._node.attributes)

    def __len__(self) -> int:
        return len(self._node.attributes)


@dataclass(slots=True, unsafe_hash=True)
class Operation:
    """A `Node`. Two are equal when their nodes are the same one."""

    _node: Node

    @property
    def name(self) -> str:
        return self._node.label

    @name.setter
    def name(self, name: str) -> None:
        self._node.owner.rename_node(self._node, name)

    @property
    def type(self) -> str:
        return self._node.op_type

    @type.setter
    def type(self, op_type: str) -> None:
        self._node.owner.set_operator(self._node, op_type, self._node.domain)

    @property
    def opset(self) -> int:
        return self._node.version

    @property
    def inputs(self) -> tuple[Variable | None, ...]:
        return tuple(map(_variable, self._node.inputs))

    @property
    def outputs(self) -> tuple[Variable | None, ...]:
        return tuple(map(_variable, self._node.outputs))

    @property
    def parameters(self) -> tuple[Variable, ...]:
        return tuple(value for value in self.inputs if value is not None and value.is_parameter)

    @property
    def num_of_input(self) -> int:
        return len(self._node.inputs)

    @property
    def num_of_output(self) -> int:
        return len(self._node.outputs)

    @property
    def num_of_parameter(self) -> int:
        return len(self.parameters)

    @property
    def attributes(self) -> Attributes:
        return Attributes(self._node)

    def set_attribute(self, name: str, value: Any) -> None:
        self._node.owner.set_attribute(self._node, name, value)

    @property
    def platform(self) -> str | None:
        return self._node.metadata.get(PLATFORM)

    @platform.setter
    def platform(self, platform: str) -> None:
        self._node.owner.set_metadata(self._node, {**self._node.metadata, PLATFORM: platform})

    @property
    def is_computing_op(self) -> bool:
        return self._node.op_type in graph_search.COMPUTING_OPS

    @property
    def extension_attrib(self) -> dict[str, Any]:
        return self._node.scratch

    def copy(self) -> Operation:
        return Operation(self._node.owner.clone(self._node))


@dataclass(slots=True, unsafe_hash=True)
class BaseGraph:
    """A `Graph`."""

    graph: Graph

    @property
    def operations(self) -> dict[str, Operation]:
        return {node.label: Operation(node) for node in self.graph.nodes}

    @property
    def variables(self) -> dict[str, Variable]:
        return {name: Variable(value) for name, value in self.graph.values.items()}

    @property
    def inputs(self) -> dict[str, Variable]:
        values = self.graph.inputs
        return {value.name: Variable(value) for value in values if not value.is_overridable}

    @property
    def outputs(self) -> dict[str, Variable]:
        return {value.name: Variable(value) for value in self.graph.outputs}

    def create_operation(
        self,
        op_type: str,
        name: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        inputs: Iterable[Variable | None] = (),
        outputs: Iterable[Variable] = (),
    ) -> Operation:
        read, written = list(map(_value, inputs)), [value._value for value in outputs]
        return Operation(self.graph.add_node(op_type, read, written, attributes, name=name))

    def create_variable(
        self,
        name: str | None = None,
        value: np.ndarray[Any, Any] | None = None,
        dest_ops: Iterable[Operation] = (),
        source_op: Operation | None = None,
    ) -> Variable:
        users = [operation._node for operation in dest_ops]
        return Variable(self.graph.create_value(name, value, _node(source_op), users))

    def append_operation(self, operation: Operation) -> None:
        self.graph.append_node(operation._node)

    def append_variable(self, variable: Variable) -> None:
        self.graph.append_constant(variable._value)

    def remove_operation(self, removing_op: Operation, keep_coherence: bool = False) -> None:
        remove = self.graph.bypass if keep_coherence else self.graph.delete
        remove(removing_op._node)

    def remove_variable(self, removing_var: Variable) -> None:
        self.graph.delete_value(removing_var._value)

    def insert_op_before(self, A: Operation, B: Operation, input_idx: int = 0) -> None:
        self.graph.insert_before(A._node, B._node, input_idx)

    def insert_op_after(self, A: Operation, B: Operation, output_idx: int = 0) -> None:
        self.graph.insert_after(A._node, B._node, output_idx)

    def create_link_with_op(
        self, A: Operation | None, B: Operation | None, variable: Variable | None = None
    ) -> None:
        self.graph.connect(_node(A), _node(B), _value(variable))

    def create_link_with_var(self, A: Variable, B: Variable) -> None:
        self.graph.join(A._value, B._value)

    def get_upstream_operations(self, operation: Operation) -> list[Operation]:
        return [Operation(node) for node in operation._node.predecessors]

    def get_downstream_operations(self, operation: Operation) -> list[Operation]:
        return [Operation(node) for node in operation._node.successors]

    def topological_sort(self) -> list[Operation]:
        return [Operation(node) for node in self.graph.topological_order()]

    def mark_variable_as_graph_input(self, var: Variable) -> None:
        self.graph.mark_input(var._value)

    def mark_variable_as_graph_output(self, var: Variable) -> None:
        self.graph.add_output(var._value)

    def copy(self, copy_value: bool = False) -> BaseGraph:
        model = self.graph.model
        assert isinstance(model, Model)
        return BaseGraph(model.copy(deep=copy_value).main)


def _variable(value: Value | None) -> Variable | None:
    return None if value is None else Variable(value)


def _value(variable: Variable | None) -> Value | None:
    return None if variable is None else variable._value


def _node(operation: Operation | None) -> Node | None:
    return None if operation is None else operation._node


# --- searching ------------------------------------------------------------------------------------


class Path(list[Operation]):
    """The operations of one path, in order."""

    def append_left(self, operation: Operation) -> None:
        self.insert(0, operation)

    def tolist(self) -> list[Operation]:
        return list(self)


class OperationSet(set[Operation]):
    """Operations without an order."""

    def filter(self, condition: Callable[[Operation], bool]) -> OperationSet:
        return OperationSet(operation for operation in self if not condition(operation))


class SearchableGraph(BaseGraph):
    """A `Graph` to be searched: `path_matching`, `opset_matching` and `pattern_matching`."""

    def path_matching(
        self, sp_expr: OperationTest, rp_expr: Relay, ep_expr: OperationTest, direction: Any = "up"
    ) -> list[Path]:
        found = graph_search.path_matching(
            self.graph, _test(sp_expr), _relay(rp_expr), _test(ep_expr), direction
        )
        return [Path(map(Operation, path)) for path in found]

    def opset_matching(
        self,
        sp_expr: OperationTest,
        rp_expr: Relay,
        ep_expr: OperationTest | None,
        direction: Any = "up",
    ) -> OperationSet:
        end = None if ep_expr is None else _test(ep_expr)
        found = graph_search.opset_matching(
            self.graph, _test(sp_expr), _relay(rp_expr), end, direction
        )
        return OperationSet(map(Operation, found))

    def pattern_matching(
        self,
        patterns: Sequence[OperationTest],
        edges: Iterable[Sequence[int]],
        exclusive: bool = True,
        max_candidates: int = graph_search.MOST_CANDIDATES,
        *,
        slots: Slots | None = None,
    ) -> list[list[Operation]]:
        return GraphPattern(patterns, edges, slots).match(self, exclusive, max_candidates)


class GraphPattern:
    """Patterns and edges for `pattern_matching`, which may be used again and again.

    Raises:
        UsageError: the edges make no acyclic, connected graph of the patterns.
    """

    def __init__(
        self,
        node_patterns: Sequence[OperationTest],
        edges: Iterable[Sequence[int]],
        slots: Slots | None = None,
    ) -> None:
        self.node_patterns = list(node_patterns)
        self.edges = [(tail, head) for tail, head in edges]
        self.slots = dict(slots or {})
        graph_search.search_order(len(self.node_patterns), self.edges, self.slots)

    def match(
        self,
        graph: BaseGraph,
        exclusive: bool = True,
        max_candidates: int = graph_search.MOST_CANDIDATES,
    ) -> list[list[Operation]]:
        found = graph_search.pattern_matching(
            graph.graph,
            [_test(pattern) for pattern in self.node_patterns],
            self.edges,
            exclusive,
            slots=self.slots,
            max_candidates=max_candidates,
        )
        return [[Operation(node) for node in match] for match in found]


PatternTree = GraphPattern
TypeExpr = str

Slots: TypeAlias = "Mapping[tuple[int, int], tuple[int | None, int | None]]"
OperationTest: TypeAlias = "str | Callable[[Operation], bool]"
Relay: TypeAlias = "Callable[[Operation, Operation], bool]"


def _test(wanted: OperationTest) -> graph_search.NodeTest:
    return wanted if isinstance(wanted, str) else lambda node: wanted(Operation(node))


def _relay(wanted: Relay) -> Callable[[Node, Node], bool]:
    return lambda node, after: wanted(Operation(node), Operation(after))
