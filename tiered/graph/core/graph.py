"""Graph: the main graph, a body of If/Loop/Scan, or a local function, and its primitives.

Every edit of a model is one of the primitives here. Each updates the NodeProto, the use lists, the
networkx view and the journal together. Passes use operations that are composed of primitives:
`graph.op`, `graph.constant`, `graph.replace`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import onnx

from tiered.graph.core import live_dag, use_lists
from tiered.graph.core.gate import RewriteBlock
from tiered.graph.core.node import Node, domain_of
from tiered.graph.core.topological_order import sort_nodes, sort_part
from tiered.graph.core.value import Value, refuse_copy
from tiered.graph.edits import (
    declared_types as edit_declared_types,
    interface_edits as edit_interface,
    nodes as edit_nodes,
    operand_edits as edit_operands,
    replace as edit_replace,
    surgery as edit_surgery,
    value_edits as edit_values,
)
from tiered.support.amounts import counted
from tiered.support.errors import ModelError
from tiered.support.loading import LoadedLater

if TYPE_CHECKING:
    import networkx as nx

    from tiered.graph.core.edit import Entry
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.operator_calls import OperatorCalls
    from tiered.graph.edits import inlining as edit_inline, unroll as edit_unroll

_BY_PLACE: Final = ("If", "Loop", "Scan")


class Graph:
    """One graph of a model: the main one, a body, or a local function.

    A function pass sees each of them.

    Attributes:
        model: the model that it is part of.
        parent_node: the node that has it as a body; None for the main graph and for functions.
        attribute: the attribute of that node that holds it, such as "then_branch".
        skeleton: the proto without nodes, values and types.
        declarations: the value_info of the file, in its order.
        annotations: the quantization annotations, each with the values that it names.
        file_names: the names of inputs and outputs in the file that differ, by their name here.
        is_function: whether it is a local function.
    """

    is_function = False

    # Bound by graph.api: the builder, these queries and outlining are above this file.
    _operators: ClassVar[Callable[[Graph], OperatorCalls]]
    _to_networkx: ClassVar[Callable[[Graph], nx.DiGraph[str]]]
    _inherit_names: ClassVar[Callable[[Sequence[Entry]], bool]]
    _structural_hash: ClassVar[Callable[[Graph], str]]
    _outline: ClassVar[Callable[..., Node]]

    def __init__(self, model: ModelState, node: Node | None = None, attribute: str = "") -> None:
        self.model = model
        self.parent_node = node
        # The attribute of that node that holds this body.
        self.attribute = attribute
        # The GraphProto or FunctionProto without nodes, values and types.
        self.skeleton: onnx.GraphProto | onnx.FunctionProto = onnx.GraphProto()
        self._nodes: dict[int, Node] = {}
        self._values: dict[str, Value] = {}
        self._by_op: dict[tuple[str, str], dict[int, Node]] = {}
        # The nodes that have bodies: few, and needed often.
        self._body_nodes: dict[int, Node] = {}
        self._constants: dict[int, Value] = {}
        self._inputs: list[Value] = []
        self._outputs: list[Value] = []
        self._input_infos: list[onnx.ValueInfoProto] = []
        self._output_infos: list[onnx.ValueInfoProto] = []
        # The list of outputs, and at which places each value is in it.
        self._output_places: tuple[list[Value], dict[Value, list[int]]] | None = None
        # The value_info of the file in its order, each with its value (None: no such value).
        self.declarations: list[tuple[Value | None, onnx.ValueInfoProto]] = []
        self.annotations: list[tuple[list[Value], onnx.TensorAnnotation]] = []
        # The names of inputs and outputs in the file that differ, by their name here: an operator
        # may look them up by a name that shadows one of an outer graph.
        self.file_names: dict[str, str] = {}
        self._dag: nx.DiGraph[Node] | None = None
        self._order: tuple[Node, ...] | None = None
        # The place of each node by serial number, where the user set another order than that.
        self._places: dict[int, int] = {}

    __copy__ = __deepcopy__ = refuse_copy

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}, {counted(len(self._nodes), 'node')}>"

    # --- place ------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Return the name in the file, which may be ""."""
        return self.skeleton.name

    @property
    def parent(self) -> Graph | None:
        """Return the graph of the node that has this body; None for a root."""
        return None if self.parent_node is None else self.parent_node.graph

    @property
    def root(self) -> Graph:
        """Return the main graph or the local function that this graph is, or is inside of."""
        graph = self
        while graph.parent_node is not None:
            graph = graph.parent_node.owner
        return graph

    @property
    def is_main(self) -> bool:
        """Return whether it is the main graph: no body, no local function."""
        return self.parent_node is None and not self.is_function

    @property
    def depth(self) -> int:
        """Return how many nodes it is nested in; 0 for the main graph and for functions."""
        return 0 if self.parent is None else self.parent.depth + 1

    def opset(self, domain: str = "") -> int:
        """Return the imported version of a domain; 0 if it is not imported."""
        root = self if self.parent_node is None else self.root
        return root.opset_imports.get(domain, 0)

    @property
    def opset_imports(self) -> dict[str, int]:
        """Return the versions of the imported domains; for a body, those of its root."""
        return self.model.opset_imports

    def sees(self, value: Value) -> bool:
        """Return whether a node of this graph may read the value."""
        home, graph = value.graph, self
        if home is graph:
            return True
        if home is None:
            return False
        name = home.file_names.get(value.name, value.name)
        while graph is not home:
            # In the file, that name would mean the body's own value.
            if graph.parent_node is None or name in graph.file_names.values():
                return False
            graph = graph.parent_node.owner
        return True

    @property
    def names_matter(self) -> bool:
        """Return whether the operator may look up inputs and outputs of this body by name.

        If, Loop and Scan use their positions; others, such as BeamSearch, use their names.
        """
        node = self.parent_node
        return node is not None and not (node.op_type in _BY_PLACE and not node.domain)

    def keep_file_name(self, value: Value, name: str) -> None:
        """Write an input or output of this new body under a name that it does not have here."""
        if value.name != name and value.graph is self and value.name not in self.file_names:
            self.file_names[value.name] = name
            self.model.names.take(name)

    def is_within(self, other: Graph) -> bool:
        """Return whether this graph is the other one, or nested in it at any depth."""
        graph: Graph | None = self
        while graph is not None and graph is not other:
            graph = graph.parent
        return graph is other

    # --- contents ---------------------------------------------------------------------------------

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes by serial number: those of the file in its order, then the new ones."""
        return tuple(map(self._nodes.__getitem__, sorted(self._nodes)))

    @property
    def body_nodes(self) -> tuple[Node, ...]:
        """Return the nodes that have bodies, by serial number."""
        found = self._body_nodes
        return tuple(map(found.__getitem__, sorted(found))) if found else ()

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def inputs(self) -> tuple[Value, ...]:
        """Return the inputs in order, overridable initializers included."""
        return tuple(self._inputs)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """Return the outputs in order; a body may return a value of a graph around it."""
        return tuple(self._outputs)

    @property
    def input_infos(self) -> tuple[onnx.ValueInfoProto, ...]:
        """Return the declarations of the inputs, as the interface has them."""
        return tuple(self._input_infos)

    @property
    def output_infos(self) -> tuple[onnx.ValueInfoProto, ...]:
        """Return the declarations of the outputs, as the interface has them."""
        return tuple(self._output_infos)

    @property
    def initializers(self) -> tuple[Value, ...]:
        """Return the initializers, overridable ones too, in the order of the file."""
        return tuple(map(self._constants.__getitem__, sorted(self._constants)))

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

    @property
    def operators(self) -> tuple[tuple[str, str], ...]:
        """Return the domain and the name of each operator that has a node, without a scan."""
        return tuple(key for key, found in self._by_op.items() if found)

    def walk(self) -> Iterator[Node]:
        """Yield the nodes of the graph, and of the bodies below it."""
        pending = [self]
        while pending:
            graph = pending.pop()
            yield from graph.nodes
            around = reversed(graph.body_nodes)
            pending += (body for node in around for body in reversed(node.bodies))

    def topological_order(self, part: Iterable[Node] | None = None) -> tuple[Node, ...]:
        """Return the nodes, producers first, and otherwise in their order.

        Args:
            part: return only these nodes, in an order that follows from the edges between them and
                from their serial numbers; the rest of the graph is not visited.

        Raises:
            CycleError: the graph has a cycle.
        """
        if part is not None:
            return tuple(sort_part(part))
        if self._order is None:
            self._order = sort_nodes(self)
        return self._order

    @property
    def dag(self) -> nx.DiGraph[Node]:
        """Return the live, read-only networkx view: nodes are `Node`s, edges have `slots`.

        Attributes of nodes and edges are read-only too; `copy()` returns a graph of your own.
        """
        if self._dag is None:
            self._dag = use_lists.build_dag(self)
        return live_dag.view_of(self._dag)

    def to_networkx(self) -> nx.DiGraph[str]:
        """Return a plain named copy, which networkx can write as GraphML, DOT and the like.

        Its nodes are the labels of the nodes, numbered where two have the same (`Relu#2`);
        attributes of nodes and edges are strings and numbers:

        - node: `op_type`, `domain`, `inputs`, `outputs` (names of values), `attributes`, `bodies`
        - edge: `slots` ("0:1" is output 0 read as input 1; "0:" is read by a body), `values` (their
          names), `types`
        """
        return self._to_networkx()

    def subgraph(self, nodes: Iterable[Node]) -> nx.DiGraph[Node]:
        """Return the live, read-only part of `graph.dag` between some of its nodes."""
        part: nx.DiGraph[Node] = self.dag.subgraph(nodes)
        return part

    def structural_hash(self) -> str:
        """Return a string of 64 hex digits that is equal for graphs that differ only in names.

        Only the computation of the outputs counts: see `is_isomorphic`. Equal subexpressions count
        once. A captured value counts by its computation, one from above the graph by its name, and
        a call of a local function by the computation of the function.
        """
        return self._structural_hash()

    def is_isomorphic(self, other: Graph) -> bool:
        """Return whether two graphs compute the same in the same way: they differ only in names.

        Operators, attributes, contents of constants, bodies, and the order of operands, inputs and
        outputs count; names, the order of independent nodes, and nodes that reach no output do not.
        """
        return self.structural_hash() == other.structural_hash()

    def refusal(self, op_type: str, domain: str = "") -> str | None:
        """Return why the target of the running rule has no such operator; None if it may have it.

        A rule that would build much asks first. What it makes is held against the target anyway.
        """
        asked = self.model.gate.refusal
        return None if asked is None else asked(self, op_type, domain)

    @property
    def op(self) -> OperatorCalls:
        """Return the builder of nodes: `graph.op.Reshape(x, shape, allowzero=1)`."""
        return self._operators()

    # --- edits ------------------------------------------------------------------------------------

    def _log(self, *entry: Any) -> None:
        journal = self.model.journal
        if journal.frozen is not None:
            raise ModelError(f"the model may not be edited now: {journal.frozen}")
        journal.entries.append(entry)

    def _new_body(self, node: Node, attribute: str) -> Graph:
        return Graph(self.model, node, attribute)

    # edits/nodes.py
    add_node = edit_nodes.add_node
    append_node = edit_nodes.append_node
    remove_node = edit_nodes.remove_node
    move_node = edit_nodes.move_node
    fold_to_initializer = edit_nodes.fold_to_initializer
    order_nodes = edit_nodes.order_nodes
    import_domain = edit_nodes.import_domain

    # edits/operands.py
    set_input = edit_operands.set_input
    set_inputs = edit_operands.set_inputs
    set_outputs = edit_operands.set_outputs
    drop_outputs = edit_operands.drop_outputs
    exchange_outputs = edit_operands.exchange_outputs
    set_attribute = edit_operands.set_attribute
    set_operator = edit_operands.set_operator
    set_metadata = edit_operands.set_metadata
    rename_node = edit_operands.rename_node

    # edits/values.py
    constant = edit_values.constant
    add_constant = edit_values.add_constant
    append_constant = edit_values.append_constant
    remove_constant = edit_values.remove_constant
    set_constant = edit_values.set_constant
    move_constant = edit_values.move_constant
    rename_value = edit_values.rename_value
    set_type = edit_values.set_type

    # edits/interface.py and edits/declared_types.py
    set_graph_inputs = edit_interface.set_graph_inputs
    add_input = edit_interface.add_input
    mark_input = edit_interface.mark_input
    mark_inputs = edit_interface.mark_inputs
    remove_input = edit_interface.remove_input
    remove_inputs = edit_interface.remove_inputs
    order_inputs = edit_interface.order_inputs
    set_graph_outputs = edit_interface.set_graph_outputs
    add_output = edit_interface.add_output
    remove_output = edit_interface.remove_output
    replace_outputs = edit_interface.replace_outputs
    order_outputs = edit_interface.order_outputs
    exchange_output = edit_interface.exchange_output
    set_declarations = edit_interface.set_declarations
    set_declared_type = edit_declared_types.set_declared_type

    # --- written in terms of the primitives -------------------------------------------------------

    # edits/replace.py
    replace = edit_replace.replace
    replace_uses = edit_replace.replace_uses
    become_constant = edit_replace.become_constant
    splice = edit_replace.splice
    prune = edit_replace.prune

    # edits/surgery.py
    new_value = edit_surgery.new_value
    create_value = edit_surgery.create_value
    assign = edit_surgery.assign
    insert_before = edit_surgery.insert_before
    insert_after = edit_surgery.insert_after
    clone = edit_surgery.clone
    connect = edit_surgery.connect
    join = edit_surgery.join
    bypass = edit_surgery.bypass
    delete = edit_surgery.delete
    delete_value = edit_surgery.delete_value

    # edits/inline.py and edits/unroll.py, which few runs load
    if TYPE_CHECKING:
        dissolve = edit_inline.dissolve
        copy_nodes = edit_inline.copy_nodes
        inline_call = edit_inline.inline_call
        unroll = edit_unroll.unroll
        unroll_scan = edit_unroll.unroll_scan
    else:
        dissolve = LoadedLater("tiered.graph.edits.inlining", "dissolve")
        copy_nodes = LoadedLater("tiered.graph.edits.inlining", "copy_nodes")
        inline_call = LoadedLater("tiered.graph.edits.inlining", "inline_call")
        unroll = LoadedLater("tiered.graph.edits.unroll", "unroll")
        unroll_scan = LoadedLater("tiered.graph.edits.unroll", "unroll_scan")

    def outline(
        self,
        nodes: Iterable[Node],
        name: str,
        domain: str,
        *,
        overload: str = "",
        is_convex: bool = False,
        taken: Collection[tuple[str, str, str]] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Node:
        """Move nodes into a new local function, and return the call that takes their place.

        Inputs of the function are the values that the nodes and their bodies read from outside, in
        the order of their first use: weights and captured values too. Outputs are the values that
        others use. An attribute reference becomes an attribute of the function. The function
        imports the domains of its nodes at the versions of the graph.

        Args:
            nodes: nodes of this graph, in any order; a node takes its bodies with it.
            name: the name of the function.
            domain: the domain of the function, which is imported.
            overload: the overload of the function.
            is_convex: the caller has checked that no path leaves the nodes and enters them again.
            taken: the ids that are taken, which callers with many regions keep themselves.
            metadata: metadata of the function and of the call.

        Raises:
            ModelError: a node is in another graph, no output is used, a path leaves the nodes and
                enters them again, marks differ, the id is taken, or the IR version has no
                functions.
        """
        options = {"overload": overload, "is_convex": is_convex, "taken": taken}
        return self._outline(nodes, name, domain, **options, metadata=metadata)

    def discard(self, value: Value | None) -> None:
        """Remove a value without users, and the nodes and constants that only it needed."""
        if value is None or value.is_used:
            return
        if value.producer is not None:
            self.prune([value.producer])
        elif value.is_initializer and not value.is_graph_input:
            value.owner.remove_constant(value)

    def rewrite(self, law: str, anchor: Node | Value) -> RewriteBlock:
        """Make the edits of the block one numbered rewrite.

        It is undone beyond the limit, or if it edits nodes outside the scope of the pass.
        """
        return RewriteBlock(self, law, anchor)


class Function(Graph):
    """A local function: a graph without initializers, called like an operator."""

    is_function = True

    def __init__(self, model: ModelState, proto: onnx.FunctionProto) -> None:
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
        """Return (domain, name, overload), by which a call names the function."""
        return self.domain, self.function_name, self.overload

    @property
    def opset_imports(self) -> dict[str, int]:
        return self._opset_imports

    @property
    def defaults(self) -> dict[str, onnx.AttributeProto]:
        """Return the attributes that a call may leave out, with their defaults."""
        assert isinstance(self.skeleton, onnx.FunctionProto)
        return {proto.name: proto for proto in self.skeleton.attribute_proto}
