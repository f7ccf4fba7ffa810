"""BaseGraph: a graph by PPQ's names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from tiered.compat.argument_types import checks_arguments
from tiered.compat.ppq import variable_sources
from tiered.compat.ppq.configs.quantable import copy_notes
from tiered.compat.ppq.detached import NOWHERE
from tiered.compat.ppq.elements import (
    Operation,
    Variable,
    check_type,
    operation_of,
    variable_of,
)
from tiered.compat.ppq.handles import node_of, value_of
from tiered.graph import Graph, Model, Node, Value
from tiered.graph.edits import surgery
from tiered.graph.queries.networkx_view import unique_labels
from tiered.support.errors import ModelError


@checks_arguments
@dataclass(slots=True, unsafe_hash=True)
class BaseGraph:
    """A `Graph`."""

    graph: Graph

    @property
    def operations(self) -> Mapping[str, Operation]:
        """The operations by name; the table is rebuilt only after an edit.

        Of several operations of one name the first has the name, others `name#2`, `name#3`.
        """
        return _Operations(self.graph)

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The variables by name, as they are now."""
        return _Variables(self.graph)

    variable = variables  # PPQ's documents misspell it

    def parameters(self) -> list[Variable]:
        """Return the parameters of the graph."""
        return [each for each in self.variables.values() if each.is_parameter]

    @property
    def inputs(self) -> MutableMapping[str, Variable]:
        return _Ports(self.graph, is_input=True)

    @property
    def outputs(self) -> MutableMapping[str, Variable]:
        return _Ports(self.graph, is_input=False)

    def create_operation(
        self,
        op_type: str,
        name: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        inputs: Iterable[Variable | None] = (),
        outputs: Iterable[Variable] = (),
        *,
        platform: str | Enum | None = None,
    ) -> Operation:
        check_type(self.graph, name or op_type, op_type)
        read, written = list(map(value_of, inputs)), [value._value for value in outputs]
        node = self.graph.add_node(op_type, read, written, attributes, name=name)
        return Operation(node, platform=platform)

    def create_variable(
        self,
        name: str | None = None,
        value: np.ndarray[Any, Any] | None = None,
        dest_ops: Iterable[Operation] = (),
        source_op: Operation | None = None,
        *,
        is_parameter: bool = False,
    ) -> Variable:
        if is_parameter and value is None:
            raise ModelError(f"parameter {name or ''!r} needs a value")
        users = [operation._node for operation in dest_ops]
        return Variable(self.graph.create_value(name, value, node_of(source_op), users))

    def append_operation(self, operation: Operation) -> None:
        """Add an operation that was removed, copied, or made by its name and type.

        Raises:
            ModelError: it is in a graph already, or there is no such type.
        """
        node = operation._node
        if node.graph is None or node.graph.name != NOWHERE:
            self.graph.append_node(node)
            return
        check_type(self.graph, operation.name, node.op_type, node.domain)
        made = self.graph.add_node(
            node.op_type, (), (), node.attributes, domain=node.domain, name=node.label
        )
        self.graph.set_metadata(made, node.metadata)
        operation._node = made

    def append_variable(self, variable: Variable) -> None:
        """Add a variable that was removed, copied, or made by its name.

        One without contents enters the graph with the operation that computes it, or as an input.
        """
        value = variable._value
        if value.graph is not None and value.graph.name == NOWHERE:
            if value.tensor is None:
                variable._value = surgery.new_value(self.graph, value.name, value.type)
            else:
                variable._value = self.graph.constant(value.tensor, value.name)
        elif value.graph is not None or value._tensor is not None:
            self.graph.append_constant(value)

    def remove_operation(self, removing_op: Operation, keep_coherence: bool = False) -> None:
        """Remove an operation.

        Args:
            removing_op: it.
            keep_coherence: whether its readers read its input; else they keep the variable, which
                has no source until it gets one.
        """
        node = removing_op._node
        if keep_coherence:
            self.graph.bypass(node)
        else:
            self._check(removing_op)
            variable_sources.remove(node)

    def remove_variable(self, removing_var: Variable) -> None:
        self.graph.delete_value(removing_var._value)

    def insert_op_before(self, A: Operation, B: Operation, input_idx: int = 0) -> None:
        self.graph.insert_before(A._node, B._node, input_idx)

    def insert_op_after(self, A: Operation, B: Operation, output_idx: int = 0) -> None:
        self.graph.insert_after(A._node, B._node, output_idx)

    def insert_op_on_var(self, inserting_op: Operation, var: str) -> None:
        """Insert an operation without operands between a variable and all that use it.

        As an output of the graph the variable keeps its name, and the operation computes it.

        Args:
            inserting_op: it, in the graph.
            var: the name of the variable.

        Raises:
            ModelError: there is no such variable, nothing uses it, it is an input and an output of
                the graph, or the operation has operands.
        """
        new, value = inserting_op._node, self._named(var)._value
        self._check(inserting_op)
        if value.producer is not None:
            self.graph.insert_after(new, value.producer, value.index)
            return
        if not value.is_used:
            raise ModelError(f"nothing uses variable {var!r}, so no operation is inserted")
        if value.is_graph_output and value in self.graph.inputs:
            raise ModelError(f"variable {var!r} is an input and an output: only one keeps the name")
        if new.inputs or new.outputs:
            raise ModelError(f"operation {inserting_op.name!r} has operands already")
        with self.graph.model.transaction():
            result = surgery.new_value(self.graph, f"{new.label}_output")
            self.graph.set_outputs(new, [result])
            self.graph.replace_uses(value, result)
            self.graph.set_inputs(new, [value])

    def insert_op_between_ops(
        self, inserting_op: Operation, up_op: Operation, down_op: Operation
    ) -> None:
        """Insert an operation without operands between two, which have one variable in common.

        Other operations that read the variable keep reading it.

        Raises:
            ModelError: the second reads no variable of the first, or several, or one twice; or the
                operation has operands.
        """
        for operation in (inserting_op, up_op, down_op):
            self._check(operation)
        upper, lower = up_op._node, down_op._node
        read = enumerate(lower.inputs)
        links = [at for at, value in read if value is not None and value.producer is upper]
        if len(links) != 1:
            found = f"reads {len(links)} variables of {up_op.name!r}, not one"
            raise ModelError(f"operation {down_op.name!r} {found}")
        self.graph.insert_before(inserting_op._node, lower, links[0])

    def insert_op_between_var_and_op(
        self, inserting_op: Operation, up_var: Variable, down_op: Operation
    ) -> None:
        """Insert an operation without operands between a variable and one that reads it once.

        Raises:
            ModelError: the operation does not read the variable, or reads it twice; or the new one
                has operands.
        """
        for operation in (inserting_op, down_op):
            self._check(operation)
        places = [at for at, each in enumerate(down_op._node.inputs) if each is up_var._value]
        if len(places) != 1:
            found = f"reads variable {up_var.name!r} {len(places)} times, not once"
            raise ModelError(f"operation {down_op.name!r} {found}")
        self.graph.insert_before(inserting_op._node, down_op._node, places[0])

    def _named(self, name: str) -> Variable:
        """Return a variable, or raise if there is none of that name."""
        if name not in self.variables:
            raise ModelError(f"graph {self.graph.name!r} has no variable {name!r}")
        return self.variables[name]

    def create_link_with_op(
        self, A: Operation | None, B: Operation | None, variable: Variable | None = None
    ) -> None:
        if variable is not None and variable_sources.is_free(variable._value):
            self.append_variable(variable)
        producer, value = node_of(A), value_of(variable)
        if (
            producer is not None
            and value is not None
            and variable_sources.is_missing(value.producer)
        ):
            variable_sources.give(value, producer)
        self.graph.connect(producer, node_of(B), value)

    def create_link_with_var(self, A: Variable, B: Variable) -> None:
        """Let all that reads B, which has no source, read A.

        Raises:
            ModelError: an operation computes B.
        """
        variable_sources.join(A._value, B._value)

    def get_upstream_operations(self, operation: Operation) -> list[Operation]:
        self._check(operation)
        return [
            operation_of(n) for n in variable_sources.operations_among(operation._node.predecessors)
        ]

    def get_downstream_operations(self, operation: Operation) -> list[Operation]:
        self._check(operation)
        return [operation_of(node) for node in operation._node.successors]

    def _check(self, operation: Operation) -> None:
        """Raise if an operation is not in this graph."""
        if operation._node.graph is not self.graph:
            raise ModelError(f"operation {operation.name!r} is not in graph {self.graph.name!r}")

    def topological_sort(self) -> list[Operation]:
        nodes = variable_sources.operations_among(self.graph.topological_order())
        return [operation_of(node) for node in nodes]

    def mark_variable_as_graph_input(self, var: Variable) -> None:
        self.graph.mark_input(var._value)

    def mark_variable_as_graph_output(self, var: Variable) -> None:
        self.graph.add_output(var._value)

    def copy(self, copy_value: bool = False) -> BaseGraph:
        """Return the graph in a copy of its model, with the configs and notes of its operations."""
        model = self.graph.model
        assert isinstance(model, Model)
        copy = model.copy(deep=copy_value)
        twins = dict(zip(model.graphs(), copy.graphs(), strict=True))
        for graph, twin in twins.items():
            by_outputs = {tuple(node.proto.output): node for node in twin.nodes}
            copy_notes((node, by_outputs[tuple(node.proto.output)]) for node in graph.nodes)
        return BaseGraph(twins[self.graph])

    def __copy__(self) -> BaseGraph:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> BaseGraph:
        return self.copy(copy_value=True)


@dataclass(slots=True, eq=False)
class _Operations(Mapping[str, Operation]):
    """The operations of a graph by name."""

    _graph: Graph

    def _nodes(self) -> dict[str, Node]:
        model = self._graph.model
        assert isinstance(model, Model)
        return model.analysis(_labels)[self._graph]

    def __getitem__(self, name: str) -> Operation:
        return operation_of(self._nodes()[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes())

    def __len__(self) -> int:
        return len(self._nodes())


def _labels(model: Model) -> dict[Graph, dict[str, Node]]:
    return {
        graph: {
            label: node
            for node, label in unique_labels(variable_sources.operations_among(graph.nodes)).items()
        }
        for graph in model.graphs()
    }


@dataclass(slots=True, eq=False)
class _Variables(Mapping[str, Variable]):
    """The variables of a graph by name."""

    _graph: Graph

    def __getitem__(self, name: str) -> Variable:
        return variable_of(self._graph.values[name])

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._graph.values))

    def __len__(self) -> int:
        return len(self._graph.values)


@dataclass(slots=True, eq=False)
class _Ports(MutableMapping[str, Variable]):
    """The inputs or outputs of a graph by name; to change them changes the graph."""

    _graph: Graph
    is_input: bool

    def _values(self) -> dict[str, Value]:
        values = self._graph.inputs if self.is_input else self._graph.outputs
        return {v.name: v for v in values if not (self.is_input and v.is_overridable)}

    def __getitem__(self, name: str) -> Variable:
        return variable_of(self._values()[name])

    def __setitem__(self, name: str, variable: Variable) -> None:
        value = variable._value
        if value.name != name:
            raise ModelError(
                f"the variable is called {value.name!r}, not {name!r}; rename it first"
            )
        if self.is_input:
            self._graph.mark_input(value)
        else:
            self._graph.add_output(value)

    def __delitem__(self, name: str) -> None:
        value = self._values()[name]
        if self.is_input:
            self._graph.remove_input(value)
        else:
            self._graph.remove_output(value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values())

    def __len__(self) -> int:
        return len(self._values())
