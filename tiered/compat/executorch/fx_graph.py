"""`graph_module.graph` of torch.fx over the main graph of a model, edits included."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from tiered.compat.executorch.fx_node import (
    CALL,
    GET_ATTR,
    OUTPUT,
    FxNode,
    FxTarget,
    needed_operator,
    number_like,
)
from tiered.compat.returned_model import output_of
from tiered.graph import Graph, Model, Node as OnnxNode, Value
from tiered.support.errors import ModelError, UsageError, did_you_mean


class FxGraphModule(Model):
    """A model with the names of torch.fx: `graph`, `recompile`. It is a `tiered.Model`."""

    _fx_graph: FxGraph | None = None

    @staticmethod
    def of(model: Model) -> FxGraphModule:
        """Return the model itself, which has these names from now on."""
        if not isinstance(model, FxGraphModule):
            model.__class__ = FxGraphModule
        assert isinstance(model, FxGraphModule)
        return model

    @property
    def graph(self) -> FxGraph:
        """The main graph; it is always up to date."""
        if self._fx_graph is None:
            self._fx_graph = FxGraph(self)
        return self._fx_graph

    def modules(self) -> Iterator[FxGraphModule]:
        """Yield the module itself: a model has no modules inside."""
        yield self

    def recompile(self) -> None:
        """Check the view: edits are in the model already."""
        self.check_view()

    def print_readable(self, print_output: bool = True) -> str:
        """Return the graph as text, a line for each node, and print it."""
        text = "\n".join(node.format_node() for node in self.graph.nodes)
        if print_output:
            print(text)
        return text


class FxGraph:
    """A graph by the names of torch.fx.

    Nodes are in topological order, so that an insertion point decides nothing: a node is where its
    operands are computed.

    Attributes:
        model: the model.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._notes: dict[Value, dict[str, Any]] = {}
        self._nodes: WeakValueDictionary[OnnxNode | Value | Graph, FxNode] = WeakValueDictionary()

    @property
    def owner(self) -> Graph:
        """The main graph of the model."""
        return self.model.main

    @property
    def owning_module(self) -> Model:
        """The model."""
        return self.model

    @property
    def nodes(self) -> FxNodes:
        """The nodes: inputs, weights, operators with their outputs if there are several, output."""
        return FxNodes(self)

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[FxNode]:
        """Return the nodes of a kind, of a target if it is given."""
        found = (node for node in self.nodes if node.op == op)
        return [node for node in found if target is None or node.target == target]

    def output_node(self) -> FxNode:
        """Return the output."""
        return self.node_for(self.owner)

    # --- edits ------------------------------------------------------------------------------------

    @contextmanager
    def inserting_before(self, n: FxNode | None = None) -> Iterator[None]:
        """Insert nodes before a node, which is where their operands are computed anyway.

        Raises:
            ModelError: the node was erased.
        """
        self._check(n)
        yield

    inserting_after = inserting_before

    def call_function(
        self,
        the_function: object,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        type_expr: object = None,
    ) -> FxNode:
        """Add an operator.

        Args:
            the_function: its name, or a function of torch of its name.
            args: the operands: nodes, numbers and arrays; a list of nodes stands for several.
            kwargs: the attributes.
            type_expr: accepted, and without effect.

        Raises:
            UsageError: there is no such operator, or `getitem` has no such output to return.
        """
        if the_function is operator.getitem:
            return self._item(*args)
        target = FxTarget(needed_operator(the_function, self.owner))
        values = self.values_of(args)
        made = self.owner.add_node(
            target.op_type, values, 1, dict(kwargs or {}), domain=target.domain
        )
        return self.node_for(made)

    def _item(self, of: Any = None, at: Any = None, *more: Any) -> FxNode:
        """Return the node of one of several outputs: each has one already."""
        node = of.subject if isinstance(of, FxNode) else None
        if isinstance(node, OnnxNode) and self.has_items(node) and not more and type(at) is int:
            value = node.outputs[at] if at in range(len(node.outputs)) else None
            if value is not None:
                return self.node_for(value)
        raise UsageError(
            f"getitem takes an operator with several outputs and the place of one, not {of}, {at}"
        )

    def create_node(
        self,
        op: str,
        target: Any,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        name: str | None = None,
        type_expr: object = None,
    ) -> FxNode:
        """Add an operator, or return a weight.

        Raises:
            UsageError: the kind is another one.
        """
        if op == GET_ATTR:
            return self.get_attr(target)
        if op != CALL:
            raise UsageError(f"create_node makes {CALL} and {GET_ATTR}, not {op!r}")
        made = self.call_function(target, args, kwargs)
        if name is not None and isinstance(made.subject, OnnxNode):
            self.owner.rename_node(made.subject, name)
        return made

    def get_attr(self, qualified_name: str) -> FxNode:
        """Return a weight.

        Raises:
            UsageError: there is no such weight.
        """
        known = {value.name: value for value in self.owner.initializers}
        if qualified_name not in known:
            hint = did_you_mean(qualified_name, known)
            raise UsageError(f"the graph has no weight {qualified_name!r}{hint}")
        return self.node_for(known[qualified_name])

    def placeholder(self, name: str, type_expr: object = None) -> FxNode:
        """Inputs need a type, which torch.fx does not know.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"an input needs a type: use tiered's graph.add_input({name!r}, ...)")

    def node_copy(
        self, node: FxNode, arg_transform: Callable[[FxNode], FxNode] = lambda node: node
    ) -> FxNode:
        """Add a copy of an operator.

        Raises:
            UsageError: it is no operator with one output.
        """
        if not isinstance(node.subject, OnnxNode) or node.subject.bodies:
            raise UsageError(f"{node.op} {node.name!r} cannot be copied: expected an operator")
        args = [arg if arg is None else arg_transform(arg) for arg in node.args]
        return self.call_function(node.target, args, node.kwargs)

    def erase_node(self, to_erase: FxNode) -> None:
        """Remove a node without users.

        Raises:
            ModelError: it has users, or is the output.
        """
        subject = self._check(to_erase).subject
        if isinstance(subject, OnnxNode):
            subject.owner.remove_node(subject)
        elif isinstance(subject, Value) and subject.is_graph_input:
            self.owner.remove_input(subject)
        elif isinstance(subject, Value) and subject.is_initializer:
            self.owner.remove_constant(subject)
        elif to_erase.op == OUTPUT or to_erase.users:
            raise ModelError(f"{to_erase.name!r} cannot be erased: it is used")

    def eliminate_dead_code(self) -> bool:
        """Remove the operators and weights without users, and return whether there were some."""
        before = self.model.mark()
        self.owner.prune(self.owner.nodes)
        for value in list(self.owner.initializers):
            if not value.is_used and not value.is_graph_input:
                self.owner.remove_constant(value)
        return bool(self.model.changed_since(before))

    def lint(self) -> None:
        """Check that links, names and protos agree."""
        self.model.check_view()

    def output(self, result: Any, type_expr: object = None) -> FxNode:
        """Return other results from the graph."""
        node = self.output_node()
        node.args = (result,)
        return node

    # --- what nodes ask for -----------------------------------------------------------------------

    def node_for(self, subject: OnnxNode | Value | Graph) -> FxNode:
        """Return the node of a thing of the model: the same object each time."""
        found = self._nodes.get(subject)
        if found is None:
            found = self._nodes[subject] = FxNode(self, subject)
        return found

    def node_of(self, value: Value) -> FxNode:
        """Return the node of a value."""
        producer = value.producer
        if producer is None or self.has_items(producer):
            return self.node_for(value)
        return self.node_for(producer)

    def has_items(self, node: OnnxNode) -> bool:
        """Return whether each output of an operator is a node of its own."""
        return sum(value is not None for value in node.outputs) > 1

    def results_of(self, node: FxNode) -> list[Value]:
        """Return the values of a node."""
        if isinstance(node.subject, OnnxNode):
            return [value for value in node.subject.outputs if value is not None]
        return [node.subject] if isinstance(node.subject, Value) else list(self.owner.outputs)

    def values_of(self, args: Iterable[Any]) -> list[Value | None]:
        """Return the values of operands; numbers and arrays become constants.

        Raises:
            UsageError: an operand is none of these, or a node with several outputs.
            ModelError: a node was erased.
        """
        given = list[Any]()
        for arg in args:
            is_list = isinstance(arg, list | tuple) and {*map(type, arg)} == {FxNode}
            given += arg if is_list else [arg]
        nodes = [arg for arg in given if isinstance(arg, FxNode)]
        first = self._value_of(nodes[0]) if nodes else None
        return [self._operand(arg, first) for arg in given]

    def _operand(self, arg: Any, first: Value | None) -> Value | None:
        if arg is None or isinstance(arg, Value):
            return arg
        if isinstance(arg, FxNode):
            return self._value_of(arg)
        if isinstance(arg, bool | int | float | np.ndarray | np.generic):
            return self.owner.constant(number_like(arg, first))
        raise UsageError(f"an operand is a node, a number or an array, not {arg!r}")

    def _value_of(self, node: FxNode) -> Value:
        values = self.results_of(self._check(node))
        if len(values) != 1:
            raise UsageError(
                f"{node.name!r} has {len(values)} outputs: take one of its users, its items"
            )
        return values[0]

    def users_of(self, *values: Value) -> dict[FxNode, None]:
        """Return the nodes that read values, and the output."""
        found: dict[FxNode, None] = {}
        for value in values:
            found.update((self.node_for(reader), None) for reader in value.readers)
            if self.owner in value.output_of:
                found[self.output_node()] = None
        return found

    def replace_uses(
        self, node: FxNode, other: FxNode, chosen: Callable[[FxNode], bool]
    ) -> list[FxNode]:
        """Let users of a node use another one; see `FxNode.replace_all_uses_with`."""
        old, new = self._value_of(node), self._value_of(other)
        users = [user for user in node.users if chosen(user)]
        if set(users) == set(node.users):
            self.owner.replace_uses(old, new)
            return users
        for user in users:
            if user.op == OUTPUT:
                self.return_instead(old, new)
                continue
            for use in [each for each in old.users if each.node is user.subject]:
                use.node.owner.set_input(use.node, use.slot, new)
        return users

    def return_instead(self, old: Value, new: Value) -> None:
        """Return another value from the graph; the output keeps its name.

        Raises:
            UsageError: it is an input too, so that only one of both keeps the name.
        """
        graph, name = self.owner, old.name
        if old.is_graph_input:
            raise UsageError(f"output {name!r} is an input of the graph: it stays that input")
        new = output_of(graph, new)
        graph.exchange_output(old, new)
        graph.rename_value(old, self.model.names.fresh(name))
        graph.rename_value(new, name)

    def notes_of(self, node: FxNode) -> dict[str, Any]:
        """Return the notes of a node."""
        if isinstance(node.subject, OnnxNode):
            return node.subject.scratch
        if isinstance(node.subject, Value):
            return self._notes.setdefault(node.subject, {})
        return {}

    def beside(self, node: FxNode, step: int) -> FxNode:
        """Return the node before or after another one; the first is after the last, as in FX."""
        nodes = list(self.nodes)
        return nodes[(nodes.index(node) + step) % len(nodes)]

    def _check(self, node: FxNode | None) -> FxNode:
        """Return a node that is in the graph.

        Raises:
            ModelError: it was erased.
        """
        node = self.output_node() if node is None else node
        subject = node.subject
        if not isinstance(subject, Graph) and subject.graph is None:
            raise ModelError(f"node {node.name!r} was erased")
        return node


class FxNodes:
    """The nodes of a graph in topological order; a loop over them may edit the graph."""

    def __init__(self, graph: FxGraph) -> None:
        self._graph = graph

    def __iter__(self) -> Iterator[FxNode]:
        return iter(list(self._all()))

    def __reversed__(self) -> Iterator[FxNode]:
        return reversed(list(self._all()))

    def __len__(self) -> int:
        return sum(1 for _ in self._all())

    def _all(self) -> Iterator[FxNode]:
        fx, graph = self._graph, self._graph.owner
        for value in graph.inputs:
            yield fx.node_for(value)
        for value in graph.initializers:
            if not value.is_graph_input:
                yield fx.node_for(value)
        for node in graph.topological_order():
            yield fx.node_for(node)
            if fx.has_items(node):
                yield from (fx.node_for(value) for value in node.outputs if value is not None)
        yield fx.output_node()
