"""Graph: the main graph, a body of If/Loop/Scan, or a local function, and its primitives.

Every edit of a model is one of the primitives here. Each keeps the NodeProto, the links between
values and users, the networkx view and the journal in step. Passes write with what is built from
them: `graph.op`, `graph.constant`, `graph.replace`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from tiered.errors import ModelError
from tiered.graph import links
from tiered.graph.journal import Edit
from tiered.graph.node import Node, domain_of
from tiered.graph.ordering import sort_nodes
from tiered.graph.schema import encode_attribute, schema_of
from tiered.graph.tensor import Tensor
from tiered.graph.transplant import copy_nodes, dissolve
from tiered.graph.types import ValueType, read_type
from tiered.graph.value import NOT_INFERRED, Value

if TYPE_CHECKING:
    import networkx as nx

    from tiered.graph.builder import OpBuilder
    from tiered.graph.model import Model


class Graph:
    """One graph of a model. A function pass sees each of them."""

    is_function = False

    def __init__(self, model: Model, owner: Node | None = None, attribute: str = "") -> None:
        self.model = model
        self.owner = owner
        # Which attribute of the owner holds this body.
        self.attribute = attribute
        # What the GraphProto or FunctionProto holds beyond nodes, values and types.
        self.skeleton: onnx.GraphProto | onnx.FunctionProto = onnx.GraphProto()
        self._nodes: dict[int, Node] = {}
        self._values: dict[str, Value] = {}
        self._by_op: dict[tuple[str, str], dict[int, Node]] = {}
        # The nodes that have bodies: few, and asked for often.
        self._owners: dict[int, Node] = {}
        self._constants: dict[int, Value] = {}
        self._inputs: list[Value] = []
        self._outputs: list[Value] = []
        self._input_infos: list[onnx.ValueInfoProto] = []
        self._output_infos: list[onnx.ValueInfoProto] = []
        # The user's value_info in its order, each with the value it speaks of (None: of nothing).
        self.declarations: list[tuple[Value | None, onnx.ValueInfoProto]] = []
        self.annotations: list[tuple[list[Value], onnx.TensorAnnotation]] = []
        self._dag: nx.DiGraph[Node] | None = None
        self._order: tuple[Node, ...] | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}, {len(self._nodes)} nodes>"

    # --- place ------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self.skeleton.name

    @property
    def parent(self) -> Graph | None:
        """Return the graph that holds the node whose body this is."""
        return None if self.owner is None else self.owner.graph

    @property
    def root(self) -> Graph:
        """Return the main graph or the local function that this graph is, or is inside of."""
        graph = self
        while graph.owner is not None:
            graph = graph.owner.owner
        return graph

    @property
    def is_main(self) -> bool:
        return self.owner is None and not self.is_function

    @property
    def depth(self) -> int:
        return 0 if self.parent is None else self.parent.depth + 1

    def opset(self, domain: str = "") -> int:
        """Return the imported version of a domain; 0 if it is not imported."""
        return self.root.opset_imports.get(domain, 0)

    @property
    def opset_imports(self) -> dict[str, int]:
        return self.model.opset_imports

    def sees(self, value: Value) -> bool:
        """Tell whether a node of this graph may read the value."""
        graph: Graph | None = self
        while graph is not None:
            if value.graph is graph:
                return True
            graph = graph.parent
        return False

    # --- contents ---------------------------------------------------------------------------------

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes by serial number: those of the file in its order, then the new ones."""
        return tuple(node for _, node in sorted(self._nodes.items()))

    @property
    def owners(self) -> tuple[Node, ...]:
        """Return the nodes that have bodies, by serial number."""
        return tuple(node for _, node in sorted(self._owners.items()))

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def inputs(self) -> tuple[Value, ...]:
        return tuple(self._inputs)

    @property
    def outputs(self) -> tuple[Value, ...]:
        return tuple(self._outputs)

    @property
    def input_infos(self) -> tuple[onnx.ValueInfoProto, ...]:
        """Return the declarations of the inputs, as the interface has them."""
        return tuple(self._input_infos)

    @property
    def output_infos(self) -> tuple[onnx.ValueInfoProto, ...]:
        return tuple(self._output_infos)

    @property
    def initializers(self) -> tuple[Value, ...]:
        """Return the initializers, overridable ones too, in the order of the file."""
        return tuple(value for _, value in sorted(self._constants.items()))

    @property
    def values(self) -> Mapping[str, Value]:
        """Return the graph's own values by name."""
        return self._values

    def value(self, name: str) -> Value | None:
        """Return the value that a node of this graph would read under a name."""
        graph: Graph | None = self
        while graph is not None:
            value = graph._values.get(name)
            if value is not None:
                return value
            graph = graph.parent
        return None

    def nodes_of(self, op_type: str, domain: str = "") -> tuple[Node, ...]:
        """Return the nodes of one operator by serial number, without a scan."""
        found = self._by_op.get((domain, op_type))
        return tuple(found[key] for key in sorted(found)) if found else ()

    def topological_order(self) -> tuple[Node, ...]:
        """Return the nodes, producers first, and otherwise in their order.

        Raises:
            ModelError: the graph has a cycle.
        """
        if self._order is None:
            self._order = sort_nodes(self)
        return self._order

    @property
    def dag(self) -> nx.DiGraph[Node]:
        """Return the live, read-only networkx view: nodes are `Node`s, edges have `slots`."""
        if self._dag is None:
            self._dag = links.build_dag(self)
        return self._dag.copy(as_view=True)

    @property
    def op(self) -> OpBuilder:
        """Return the builder of nodes: `graph.op.Reshape(x, shape, allowzero=1)`."""
        from tiered.graph.builder import OpBuilder

        return OpBuilder(self, "")

    # --- primitives: nodes ------------------------------------------------------------------------

    def _log(self, *entry: Any) -> None:
        journal = self.model.journal
        if journal.frozen is not None:
            raise ModelError(f"the model may not be edited now: {journal.frozen}")
        journal.entries.append(entry)

    def add_node(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        outputs: int | Sequence[str] = 1,
        attributes: Mapping[str, Any] | None = None,
        *,
        domain: str = "",
        name: str | None = None,
        bodies: Iterable[str] = (),
    ) -> Node:
        """Add a node; `outputs` is their number, or their names ("" for an absent one).

        `bodies` are the attributes that hold its bodies: these are empty, and are filled by their
        own primitives.

        Raises:
            ModelError: an input is not visible here, or an output name is taken.
        """
        proto = onnx.NodeProto(op_type=op_type, domain=domain)
        proto.name = self.model.node_names.fresh(name or op_type)
        schema = schema_of(op_type, domain_of(domain), self.opset(domain_of(domain)))
        for key, attribute in (attributes or {}).items():
            proto.attribute.append(encode_attribute(key, attribute, schema))
        bodies = tuple(bodies)
        for key in bodies:
            proto.attribute.add(name=key, type=onnx.AttributeProto.GRAPH)
        return self._insert(proto, inputs, outputs, bodies)

    def _insert(
        self,
        proto: onnx.NodeProto,
        inputs: Sequence[Value | None],
        outputs: int | Sequence[str],
        bodies: Iterable[str] = (),
    ) -> Node:
        """Add a node of which the proto says everything but operands and bodies."""
        model = self.model
        node = Node(model.next_serial(), self, proto)
        node.bodies = tuple(Graph(model, node, attribute) for attribute in bodies)
        for value in inputs:
            if value is not None and not self.sees(value):
                raise ModelError(f"{value!r} is not visible in graph {self.name!r}")
            proto.input.append("" if value is None else value.name)
        node._inputs.extend(inputs)
        if isinstance(outputs, int):
            outputs = [""] * outputs
            for index in range(len(outputs)):
                outputs[index] = model.names.fresh(f"{proto.name}_output_{index}")
                self._new_output(node, index, outputs[index])
        else:
            for index, output in enumerate(outputs):
                if output and output in self._values:
                    raise ModelError(f"graph {self.name!r} has a value {output!r} already")
                self._new_output(node, index, output)
        proto.output.extend(outputs)
        self._attach(node)
        self._log(Edit.ADD_NODE, node)
        return node

    def _new_output(self, node: Node, index: int, name: str) -> None:
        if not name:
            node._outputs.append(None)
            return
        value = Value(self.model.next_serial(), self, name)
        value.producer, value.index = node, index
        value._type = NOT_INFERRED
        node._outputs.append(value)

    def remove_node(self, node: Node) -> None:
        """Remove a node that nobody reads; its bodies go with it.

        Raises:
            ModelError: an output is still read, or is a graph output.
        """
        for value in node._outputs:
            if value is not None and value.is_used:
                raise ModelError(f"node {node.label!r} cannot be removed: {value.name!r} is used")
        self._log(Edit.REMOVE_NODE, node, self)
        self._detach(node)

    def _attach(self, node: Node) -> None:
        """Enter a node into everything that knows the nodes of the graph."""
        node.graph = self
        self._nodes[node.id] = node
        self._by_op.setdefault((node.domain, node.op_type), {})[node.id] = node
        if node.bodies:
            self._owners[node.id] = node
        if node.proto.name:
            self.model.node_names.take(node.proto.name)
        for value in node._outputs:
            if value is not None:
                self._enter(value)
        self._order = None
        if self._dag is not None:
            self._dag.add_node(node)
        links.link_inputs(node)
        links.link_bodies(node)

    def _detach(self, node: Node) -> None:
        links.unlink_bodies(node)
        links.unlink_inputs(node)
        if self._dag is not None:
            self._dag.remove_node(node)
        self._order = None
        for value in node._outputs:
            if value is not None:
                self._leave(value)
        if node.proto.name:
            self.model.node_names.release(node.proto.name)
        del self._by_op[node.domain, node.op_type][node.id]
        del self._nodes[node.id]
        self._owners.pop(node.id, None)
        node.graph = None

    def _enter(self, value: Value) -> None:
        value.graph = self
        self._values[value.name] = value
        self.model.names.take(value.name)

    def _leave(self, value: Value) -> None:
        value.graph = None
        del self._values[value.name]
        self.model.names.release(value.name)

    def set_input(self, node: Node, index: int, value: Value | None) -> None:
        """Make input `index` read another value; None leaves it absent."""
        before = node._inputs[index]
        if before is value:
            return
        self._check_visible(node, value)
        self._log(Edit.SET_INPUT, node, index, before, value)
        self._write_input(node, index, value)

    @staticmethod
    def _check_visible(node: Node, value: Value | None) -> None:
        if value is None or value.graph is node.graph:
            return
        if not node.owner.sees(value):
            raise ModelError(f"node {node.label!r} cannot read {value!r}, which it does not see")

    def _write_input(self, node: Node, index: int, value: Value | None) -> None:
        before = node._inputs[index]
        if before is not None:
            links.drop_use(before, node, index)
        node._inputs[index] = value
        if value is None:
            node.proto.input[index] = ""
        else:
            node.proto.input[index] = value.name
            links.add_use(value, node, index)
        assert node.graph is not None
        node.graph._order = None

    def set_inputs(self, node: Node, inputs: Sequence[Value | None]) -> None:
        """Give the node other inputs, also more or fewer of them."""
        for value in inputs:
            self._check_visible(node, value)
        self._log(Edit.SET_INPUTS, node, list(node._inputs), node.proto)
        proto = _copy(node.proto)
        del proto.input[:]
        proto.input.extend("" if value is None else value.name for value in inputs)
        self._write_inputs(node, list(inputs), proto)

    def _write_inputs(
        self, node: Node, inputs: list[Value | None], proto: onnx.NodeProto
    ) -> None:
        links.unlink_inputs(node)
        node._inputs = inputs
        node.proto = proto
        node.forget_attributes()
        links.link_inputs(node)
        assert node.graph is not None
        node.graph._order = None

    def drop_outputs(self, node: Node, indices: Iterable[int]) -> None:
        """Make unused outputs absent; those at the end are cut off.

        Raises:
            ModelError: one of them is still read.
        """
        outputs = list(node._outputs)
        for index in indices:
            value = outputs[index]
            if value is not None and value.is_used:
                raise ModelError(f"output {value.name!r} of node {node.label!r} is used")
            outputs[index] = None
        while outputs and outputs[-1] is None:
            outputs.pop()
        self._log(Edit.SET_OUTPUTS, node, list(node._outputs), node.proto)
        proto = _copy(node.proto)
        del proto.output[:]
        proto.output.extend("" if value is None else value.name for value in outputs)
        self._write_outputs(node, outputs, proto)

    def _write_outputs(
        self, node: Node, outputs: list[Value | None], proto: onnx.NodeProto
    ) -> None:
        for value in node._outputs:
            if value is not None and value not in outputs:
                self._leave(value)
        for value in outputs:
            if value is not None and value.graph is None:
                self._enter(value)
        node._outputs = outputs
        node.proto = proto
        node.forget_attributes()

    def set_attribute(self, node: Node, name: str, value: Any) -> None:
        """Write an attribute; None removes it."""
        proto = _copy(node.proto)
        for index, attribute in enumerate(proto.attribute):
            if attribute.name == name:
                del proto.attribute[index]
                break
        if value is not None:
            proto.attribute.append(encode_attribute(name, value, node.schema))
        self._set_proto(node, proto)

    def set_metadata(self, node: Node, entries: Mapping[str, str]) -> None:
        """Write the node's metadata_props."""
        proto = _copy(node.proto)
        del proto.metadata_props[:]
        for key, text in entries.items():
            proto.metadata_props.add(key=key, value=text)
        self._set_proto(node, proto)

    def _set_proto(self, node: Node, proto: onnx.NodeProto) -> None:
        self._log(Edit.SET_PROTO, node, node.proto)
        node.proto = proto
        node.forget_attributes()

    def rename_node(self, node: Node, name: str) -> None:
        """Give the node another name."""
        if node.proto.name == name:
            return
        self._log(Edit.RENAME_NODE, node, node.proto)
        proto = _copy(node.proto)
        proto.name = name
        self._write_named(node, proto)

    def _write_named(self, node: Node, proto: onnx.NodeProto) -> None:
        names = self.model.node_names
        if node.proto.name:
            names.release(node.proto.name)
        node.proto = proto
        node.forget_attributes()
        if proto.name:
            names.take(proto.name)

    def move_node(self, node: Node, graph: Graph) -> None:
        """Move a node into another graph, which sees all it reads and is seen by its users."""
        self._log(Edit.MOVE_NODE, node, node.owner)
        self._write_graph(node, graph)

    def _write_graph(self, node: Node, graph: Graph) -> None:
        uses = [(value, use) for value in node._outputs if value is not None for use in value.users]
        outputs = [(value, of) for value in node._outputs if value for of in value.output_of]
        for value, use in uses:
            links.drop_use(value, use.node, use.slot)
        for value, of in outputs:
            links.drop_output_use(value, of)
        node.owner._detach(node)
        graph._attach(node)
        for value, of in outputs:
            links.add_output_use(value, of)
        for value, use in uses:
            links.add_use(value, use.node, use.slot)

    # --- primitives: values -----------------------------------------------------------------------

    def rename_value(self, value: Value, name: str) -> None:
        """Rename a value everywhere: producer, users at any depth, outputs, type declarations.

        Raises:
            ModelError: the name is empty, or taken in this graph.
        """
        if value.name == name:
            return
        if not name or name in self._values:
            raise ModelError(f"value {value.name!r} cannot be renamed: {name!r} is taken or empty")
        self._log(Edit.RENAME_VALUE, value, value.name)
        value.owner._write_name(value, name)

    def _write_name(self, value: Value, name: str) -> None:
        self._leave(value)
        value.name = name
        self._enter(value)
        if value.producer is not None:
            value.producer.proto.output[value.index] = name
        for node, slot in value.users:
            node.proto.input[slot] = name

    def set_type(self, value: Value, value_type: ValueType | None) -> None:
        """State the type of a value."""
        before = value.type
        if before == value_type:
            return
        self._log(Edit.SET_TYPE, value, before)
        value._type = value_type

    def constant(self, array: np.ndarray[Any, Any] | Tensor, name: str = "const") -> Value:
        """Return a new constant value with these contents.

        It is an initializer, or a Constant node where none is possible: in local functions, and
        before IR 4, where each initializer would have to be an input.
        """
        tensor = array if isinstance(array, Tensor) else Tensor.of(array)
        if self.root.is_function or self.model.ir_version < 4:
            key = "sparse_value" if tensor.is_sparse else "value"
            node = self.add_node("Constant", (), attributes={key: tensor}, name=name)
            return node.output
        return self.add_constant(tensor, self.model.names.fresh(name))

    def add_constant(self, tensor: Tensor, name: str) -> Value:
        """Add an initializer of this name."""
        if name in self._values:
            raise ModelError(f"graph {self.name!r} has a value {name!r} already")
        value = Value(self.model.next_serial(), None, name)
        value._tensor = tensor
        value._type = NOT_INFERRED
        self._log(Edit.ADD_CONSTANT, value)
        self._enter_constant(value)
        return value

    def _enter_constant(self, value: Value) -> None:
        self._enter(value)
        self._constants[value.id] = value

    def _leave_constant(self, value: Value) -> None:
        del self._constants[value.id]
        self._leave(value)

    def remove_constant(self, value: Value) -> None:
        """Remove an initializer that nobody reads.

        Raises:
            ModelError: it is still read, or is a graph input.
        """
        if value.is_used or value.is_graph_input:
            raise ModelError(f"initializer {value.name!r} cannot be removed: it is used")
        self._log(Edit.REMOVE_CONSTANT, value, self)
        self._leave_constant(value)

    def set_constant(self, value: Value, tensor: Tensor | None) -> None:
        """Exchange the contents of an initializer; for an overridable one, None takes them away."""
        self._log(Edit.SET_CONSTANT, value, value._tensor)
        self._write_tensor(value, tensor)

    def _write_tensor(self, value: Value, tensor: Tensor | None) -> None:
        value._tensor = tensor
        if tensor is None:
            self._constants.pop(value.id, None)
        else:
            self._constants[value.id] = value
        value._type = NOT_INFERRED

    def move_constant(self, value: Value, graph: Graph) -> None:
        """Move an initializer into another graph, from where all its users are seen."""
        self._log(Edit.MOVE_CONSTANT, value, self)
        self._write_constant_graph(value, graph)

    def _write_constant_graph(self, value: Value, graph: Graph) -> None:
        users, outputs = value.users, value.output_of
        for node, slot in users:
            links.drop_use(value, node, slot)
        for of in outputs:
            links.drop_output_use(value, of)
        value.owner._leave_constant(value)
        graph._enter_constant(value)
        for of in outputs:
            links.add_output_use(value, of)
        for node, slot in users:
            links.add_use(value, node, slot)

    # --- primitives: interface --------------------------------------------------------------------

    def set_graph_inputs(
        self, inputs: Sequence[Value], infos: Sequence[onnx.ValueInfoProto]
    ) -> None:
        """Exchange the list of graph inputs, each with its declaration."""
        self._log(Edit.SET_GRAPH_INPUTS, self, self._inputs, self._input_infos)
        self._write_graph_inputs(list(inputs), list(infos))

    def _write_graph_inputs(self, inputs: list[Value], infos: list[onnx.ValueInfoProto]) -> None:
        for value in self._inputs:
            value.input_of = None
            if value._tensor is None:
                self._leave(value)
            else:
                # A constant has the type of its contents, whatever an input was declared to take.
                value._type = NOT_INFERRED
        self._inputs, self._input_infos = inputs, infos
        for value, info in zip(inputs, infos, strict=True):
            value.input_of = self
            if value._tensor is not None:
                value._type = read_type(info.type)
            if value.graph is None:
                self._enter(value)

    def set_declarations(
        self, declarations: Iterable[tuple[Value | None, onnx.ValueInfoProto]], keep: int = 0
    ) -> None:
        """Exchange the user's value_info after the first `keep` entries, each with its value."""
        after, before = list(declarations), self.declarations[keep:]
        values = dict.fromkeys(value for value, _ in (*before, *after) if value is not None)
        spoken = [(value, value.declared) for value in values]
        self._log(Edit.SET_DECLARATIONS, self, keep, before, spoken)
        self._write_declarations(keep, after)

    def _write_declarations(
        self, keep: int, declarations: list[tuple[Value | None, onnx.ValueInfoProto]]
    ) -> None:
        names = self.model.names
        for value, info in self.declarations[keep:]:
            if value is not None:
                value.declared = None
            elif info.name:
                names.release(info.name)
        self.declarations[keep:] = declarations
        for value, info in declarations:
            if value is not None:
                value.declared = info
            elif info.name:
                names.take(info.name)
        self._declare_outputs()

    def _declare_outputs(self) -> None:
        """Let the declaration of an output speak of the value, where no value_info does."""
        for value, info in zip(self._outputs, self._output_infos, strict=False):
            if value.declared is None and value.graph is self:
                value.declared = info

    def set_graph_outputs(
        self, outputs: Sequence[Value], infos: Sequence[onnx.ValueInfoProto]
    ) -> None:
        """Exchange the list of graph outputs, each with its declaration."""
        self._log(Edit.SET_GRAPH_OUTPUTS, self, self._outputs, self._output_infos)
        self._write_graph_outputs(list(outputs), list(infos))

    def _write_graph_outputs(self, outputs: list[Value], infos: list[onnx.ValueInfoProto]) -> None:
        stated = {id(info) for info in self._output_infos}
        for value in self._outputs:
            links.drop_output_use(value, self)
            if id(value.declared) in stated:
                value.declared = None
        self._outputs, self._output_infos = outputs, infos
        for value in outputs:
            links.add_output_use(value, self)
        self._declare_outputs()

    # --- written in terms of the primitives -------------------------------------------------------

    def replace_uses(self, old: Value, new: Value, *, since: int | None = None) -> None:
        """Make everything that reads `old` read `new`: captures and graph outputs too.

        A graph output keeps its name: the new value takes it, or an Identity bears it where the new
        value has a name of its own to keep (a graph input, an initializer, another output). Nodes
        with a serial number from `since` on keep reading `old`: they are part of what replaces it.
        """
        if old is new:
            return
        for node, slot in old.users:
            if since is None or node.id < since:
                self.set_input(node, slot, new)
        for graph in dict.fromkeys(old.output_of):
            graph._replace_output(old, new)

    def _replace_output(self, old: Value, new: Value) -> None:
        name = old.name
        if old.graph is self:
            self.rename_value(old, self.model.names.fresh(name))
            if new.graph is not self or not new.can_be_renamed:
                node = self.add_node("Identity", (new,), [name], name=f"{name}_identity")
                new = node.output
            else:
                self.rename_value(new, name)
        outputs = [new if value is old else value for value in self._outputs]
        self.set_graph_outputs(outputs, self._output_infos)

    def become_constant(self, value: Value, tensor: Tensor) -> Value:
        """Put a constant of the same name in the place of what a node computes, and return it.

        A graph output keeps its name as `replace_uses` says.
        """
        name = value.name
        if value.is_graph_output:
            constant = self.constant(tensor, name)
        else:
            self.rename_value(value, self.model.names.fresh(name))
            constant = self.constant(tensor, name)
        self.replace_uses(value, constant)
        if value.producer is not None:
            self.prune([value.producer])
        return constant

    def replace(self, node: Node, values: Sequence[Value | None], since: int | None = None) -> None:
        """Put values in the place of the outputs of a node, which goes if nobody reads it any more.

        What is new (serial number from `since` on) takes over the name of what it replaces, so that
        tensors and nodes keep their names through rewrites.
        """
        for before, after in zip(list(node._outputs), values, strict=False):
            if before is None or after is None or before is after:
                continue
            name, interface = before.name, before.is_graph_output
            self.replace_uses(before, after, since=since)
            is_new = since is not None and after.id >= since and after.graph is self
            if is_new and not interface and not before.is_used and after.can_be_renamed:
                self.rename_value(before, self.model.names.fresh(name))
                self.rename_value(after, name)
        label = node.name
        self.prune([node])
        successor = next((value.producer for value in values if value is not None), None)
        is_new = successor is not None and since is not None and successor.id >= since
        if node.graph is None and label and is_new and successor is not None:
            self.rename_node(successor, label)

    def splice(
        self, node: Node, values: Sequence[Value | None], own: Iterable[Value | None]
    ) -> None:
        """Replace a node by code that was put beside it: `own` values take over the names.

        Unlike with `replace`, the nodes keep theirs, which say where they come from.
        """
        names = [None if output is None else output.name for output in node.outputs]
        self.replace(node, values)
        free = set(own)
        for name, value in zip(names, values, strict=False):
            if name and value in free and value is not None and value.can_be_renamed:
                free.discard(value)
                if name not in self.model.names:
                    self.rename_value(value, name)

    def dissolve(self, node: Node, body: Graph) -> list[Node]:
        """Put what one of its bodies holds in the place of a node; return those nodes.

        Names that are not free here are made fresh; the outputs take over the node's names.

        Raises:
            ModelError: the body has inputs, or annotations that speak of its values.
        """
        return dissolve(node, body)

    def copy_nodes(
        self,
        nodes: Iterable[Node],
        stands: dict[Value, Value | None],
        *,
        prefix: str = "",
        attributes: Mapping[str, onnx.AttributeProto] | None = None,
    ) -> list[Node]:
        """Copy nodes of any graph, with all that is nested in them, into this one.

        Args:
            nodes: producers first.
            stands: what stands here for the values that the nodes read, None for an absent one; it
                gets what they write. A value that is not in it is read as it is.
            prefix: of all names: `prefix/name`.
            attributes: what references to attributes stand for, by name: without an entry the
                attribute is absent. None leaves references as they are.

        Raises:
            ModelError: an output of a body would be absent, or a value is not visible here.
        """
        return copy_nodes(nodes, self, stands, prefix=prefix, attributes=attributes)

    def prune(self, nodes: Iterable[Node]) -> None:
        """Remove the nodes that nobody reads, then what only they read: nodes and initializers."""
        pending = list(nodes)
        while pending:
            node = pending.pop()
            if node.graph is None or node.is_used:
                continue
            reads = [value for value in (*node._inputs, *node.captured) if value is not None]
            node.graph.remove_node(node)
            for value in dict.fromkeys(reads):
                if value.graph is None or value.is_used:
                    continue
                if value.producer is not None:
                    pending.append(value.producer)
                elif value.is_initializer and not value.is_graph_input:
                    value.graph.remove_constant(value)

    @contextmanager
    def rewrite(self, law: str, anchor: Node | Value) -> Iterator[None]:
        """Make the edits of the block one numbered rewrite, which is undone beyond the limit."""
        model, mark, label = self.model, self.model.mark(), anchor.label
        yield
        edits = model.journal.since(mark)
        if not edits:
            return
        if model.gate.is_open:
            model.gate.passed(self, law, label, edits)
        else:
            model.undo_to(mark)
            model.gate.refuse()


class Function(Graph):
    """A local function: a graph without initializers, called like an operator."""

    is_function = True

    def __init__(self, model: Model, proto: onnx.FunctionProto) -> None:
        super().__init__(model)
        self._opset_imports: dict[str, int] = {}
        # How the file spells each domain ("", "ai.onnx", or not at all).
        self.spellings: dict[str, str | None] = {}
        for entry in proto.opset_import:
            domain = domain_of(entry.domain)
            self._opset_imports[domain] = entry.version
            self.spellings[domain] = entry.domain if entry.HasField("domain") else None
        self.domain = domain_of(proto.domain)
        self.overload = proto.overload
        self.function_name = proto.name

    @property
    def id(self) -> tuple[str, str, str]:
        """Return (domain, name, overload): what a call names."""
        return self.domain, self.function_name, self.overload

    @property
    def opset_imports(self) -> dict[str, int]:
        return self._opset_imports


def _copy(proto: onnx.NodeProto) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(proto)
    return copy
