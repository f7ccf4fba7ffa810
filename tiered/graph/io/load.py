"""From a ModelProto to the view.

The view owns its NodeProtos. Tensors and type declarations are shared with the source and never
written to, so that opening a model copies no weight.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import onnx

from tiered.graph.core import use_lists
from tiered.graph.core.graph import Function, Graph
from tiered.graph.core.node import Node, domain_of
from tiered.graph.core.schema import check_safe
from tiered.graph.core.tensor import Tensor
from tiered.graph.core.value import NOT_INFERRED, SLOT_BITS, Value
from tiered.graph.edits.interface_edits import check_declared_alike, input_type
from tiered.graph.io.copies import own_copies, without
from tiered.graph.io.text_check import wrong_header
from tiered.graph.queries.call_graph import call_graph, recursive_functions
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph.core.model import ModelState

_GRAPH_FIELDS = frozenset(
    {
        "initializer",
        "input",
        "node",
        "output",
        "quantization_annotation",
        "sparse_initializer",
        "value_info",
    }
)
_FUNCTION_FIELDS = frozenset({"input", "node", "output", "value_info"})
_TENSOR = onnx.AttributeProto.TENSOR
_OF_TENSORS = ("Constant", "ConstantOfShape")

Scope = dict[str, Value]


def load_model(model: ModelState, proto: onnx.ModelProto) -> None:
    """Fill an empty view from a ModelProto, which is not changed.

    Raises:
        ModelError: there is no graph, a name is undefined or defined twice, or there is a cycle.
    """
    if not proto.HasField("graph"):
        raise ModelError(f"{model.label} has no graph; expected an ONNX model")
    if (path := wrong_header(proto)) is not None:
        raise ModelError(f"{model.label} has a string that is not UTF-8: {path}")
    model.skeleton = without(proto, frozenset({"functions", "graph"}), onnx.ModelProto())
    for entry in proto.opset_import:
        domain = domain_of(entry.domain)
        model.opset_imports[domain] = entry.version
        model.spellings[domain] = entry.domain if entry.HasField("domain") else None
    main = Graph(model)
    model.main = main
    _Loader(model).fill_main(main, proto.graph)
    if "" not in model.opset_imports and any(domain == "" for domain, _ in main._by_op):
        raise ModelError(f"{model.label} imports no opset of the default domain, but uses it")
    for roots in ((proto,), proto.functions):
        for root in roots:
            # Where a domain is imported twice the last entry counts, for the runtimes too.
            versions = {domain_of(entry.domain): entry.version for entry in root.opset_import}
            if versions.get("", 1) < 1:
                raise ModelError(f"{model.label} imports opset {versions['']}; the first one is 1")
    for source in proto.functions:
        model.functions.append(load_function(model, source))
    _pin_training_names(model)
    check_calls(model)


def check_calls(model: ModelState, new: Function | None = None) -> None:
    """Raise if the main graph reaches a local function that calls itself: it would not terminate.

    Args:
        model: the model; a file may have such functions that nothing calls.
        new: a function that may not call itself even though nothing calls it yet.

    Raises:
        ModelError: it does.
    """
    if not model.functions:
        return
    import networkx as nx

    recursive = recursive_functions(model)
    reached = nx.descendants(call_graph(model), model.main) if recursive else set()
    if new is not None:
        reached.add(new.id)
    found = min(recursive & reached, default=None)
    if found is not None:
        name = ".".join(part for part in found[:2] if part)
        raise ModelError(f"{model.label}: the local function {name!r} calls itself (recursion)")


def load_function(
    model: ModelState, source: onnx.FunctionProto, *, is_new: bool = False
) -> Function:
    """Return the view of a local function that is not yet part of the model.

    Args:
        model: the model.
        source: the function.
        is_new: the caller has checked that the model has no function of this id.

    Raises:
        ModelError: the model has a function of this id, or its nodes are not a valid graph.
    """
    function = Function(model, source)
    if not is_new and model.function(*function.id) is not None:
        raise ModelError(f"{model.label} has a local function {function.id} already")
    _Loader(model).fill_function(function, source)
    return function


class _Loader:
    """Fills one root graph and everything nested in it."""

    def __init__(self, model: ModelState) -> None:
        self.model = model

    def fill_main(self, graph: Graph, proto: onnx.GraphProto) -> None:
        self._fill_graph(graph, proto, [])

    def fill_function(self, function: Function, proto: onnx.FunctionProto) -> None:
        function.skeleton = without(proto, _FUNCTION_FIELDS, onnx.FunctionProto())
        scope: Scope = {}
        for name in proto.input:
            value = self._define(function, scope, [], name)
            value._type = None
            value.input_of = function
            function._inputs.append(value)
        self._fill_nodes(function, proto.node, scope, [])
        function._outputs = [self._output(function, name, [scope]) for name in proto.output]
        self._fill_declarations(function, proto.value_info, scope)

    def _fill_graph(self, graph: Graph, proto: onnx.GraphProto, outer: list[Scope]) -> None:
        graph.skeleton = without(proto, _GRAPH_FIELDS, onnx.GraphProto())
        scope: Scope = {}
        for tensor in proto.initializer:
            self._define_constant(graph, scope, outer, tensor.name, tensor)
        for sparse in proto.sparse_initializer:
            self._define_constant(graph, scope, outer, sparse.values.name, sparse)
        for info in proto.input:
            value = scope.get(info.name) or self._define(graph, scope, outer, info.name)
            if value.input_of is not None:
                raise ModelError(f"graph {graph.name!r} lists the input {info.name!r} twice")
            value.input_of = graph
            value._type = input_type(graph, info)
            graph._inputs.append(value)
            graph._input_infos.append(info)
        self._fill_nodes(graph, proto.node, scope, outer)
        for info in proto.output:
            value = self._output(graph, info.name, [scope, *outer])
            if value.input_of is graph:
                check_declared_alike(graph, value, info)
            graph._outputs.append(value)
            graph._output_infos.append(info)
        self._fill_declarations(graph, proto.value_info, scope)
        for info, value in zip(proto.output, graph._outputs, strict=True):
            if value.declared is None and value.graph is graph:
                value.declared = info
        for annotation in proto.quantization_annotation:
            self._annotate(graph, annotation, [scope, *outer])
        if graph.names_matter:
            for infos, values in ((proto.input, graph._inputs), (proto.output, graph._outputs)):
                for info, value in zip(infos, values, strict=True):
                    graph.keep_file_name(value, info.name)

    # --- values -----------------------------------------------------------------------------------

    def _define(self, graph: Graph, scope: Scope, outer: list[Scope], name: str) -> Value:
        if name in scope:
            raise ModelError(f"graph {graph.name!r} defines the value {name!r} twice")
        if not name:
            raise ModelError(f"graph {graph.name!r} has an input or initializer without a name")
        if not isinstance(name, str):
            raise ModelError(f"graph {graph.name!r} has a value whose name {name!r} is not UTF-8")
        model, shown = self.model, name
        if outer and any(name in above for above in outer):
            # If the name shadowed one of an outer graph, nodes could not move between them.
            shown = model.names.fresh(name)
        model._serial += 1
        value = Value(model._serial, graph, shown)
        value._type = NOT_INFERRED
        scope[name] = graph._values[shown] = value
        model.names.take(shown)
        return value

    def _define_constant(
        self,
        graph: Graph,
        scope: Scope,
        outer: list[Scope],
        name: str,
        proto: onnx.TensorProto | onnx.SparseTensorProto,
    ) -> None:
        value = self._define(graph, scope, outer, name)
        tensor = value._tensor = Tensor(proto, folder=self.model.folder)
        tensor.check(name)
        if tensor.is_external:
            self.model.has_external = True
        graph._constants[value.id] = value

    def _output(self, graph: Graph, name: str, scopes: list[Scope]) -> Value:
        value = _lookup(name, scopes)
        if value is None:
            raise ModelError(f"graph {graph.name!r} has the output {name!r}, which has no source")
        use_lists.add_output_use(value, graph)
        return value

    def _fill_declarations(
        self, graph: Graph, infos: Iterable[onnx.ValueInfoProto], scope: Scope
    ) -> None:
        for info in infos:
            value = scope.get(info.name)
            graph.declarations.append((value, info))
            if value is not None:
                value.declared = info
            elif info.name:
                # No new value may take the name of a declaration without a value.
                self.model.names.take(info.name)

    def _annotate(
        self, graph: Graph, annotation: onnx.TensorAnnotation, scopes: list[Scope]
    ) -> None:
        names = [entry.value for entry in annotation.quant_parameter_tensor_names]
        found = [_lookup(name, scopes) for name in (annotation.tensor_name, *names)]
        values = [value for value in found if value is not None]
        if len(values) < len(found):
            return
        for value in values[1:]:
            value.pins += 1
        graph.annotations.append((values, annotation))

    # --- nodes ------------------------------------------------------------------------------------

    def _fill_nodes(
        self,
        graph: Graph,
        protos: Iterable[onnx.NodeProto],
        scope: Scope,
        outer: list[Scope],
    ) -> None:
        nodes: list[Node] = []
        bodies: dict[int, list[onnx.AttributeProto]] = {}
        for proto, found in own_copies(protos):
            node = self._enter_node(graph, proto)
            nodes.append(node)
            if found:
                bodies[node.id] = found
            # A slice of a repeated field takes half the time of an iteration over it.
            for index, name in enumerate(node.proto.output[:]):
                if not name:
                    node._outputs.append(None)
                    continue
                value = self._define(graph, scope, outer, name)
                value.producer, value.index = node, index
                if value.name != name:
                    node.proto.output[index] = value.name
                node._outputs.append(value)
        scopes, is_sorted = [scope, *outer], True
        for node in nodes:
            is_sorted &= self._read_inputs(graph, node, scope, scopes)
            for attribute in bodies.get(node.id, ()):
                self._fill_bodies(node, attribute, scopes)
        if is_sorted and all(map(_is_after_captured, graph._body_nodes.values())):
            graph._order = tuple(nodes)
        else:
            graph.topological_order()

    def _enter_node(self, graph: Graph, proto: onnx.NodeProto) -> Node:
        model = self.model
        model._serial += 1
        node = Node(model._serial, graph, proto)
        op_type = node.op_type
        if not isinstance(node.domain, str):
            raise ModelError(f"node {node.proto.output[:1]} has a domain that is not UTF-8")
        if not op_type or not isinstance(op_type, str):
            raise ModelError(
                f"node {proto.name!r} of graph {graph.name!r} has the op_type "
                f"{op_type!r}; expected the name of an operator, in UTF-8"
            )
        if op_type in _OF_TENSORS:
            for attribute in node.attribute_protos().values():
                if attribute.type == _TENSOR and not attribute.ref_attr_name:
                    tensor = Tensor(attribute.t, folder=model.folder)
                    tensor.check(node.label)
                    model.has_stored_constants |= tensor.is_stored
                    model.has_external |= tensor.is_external
                    node.note_constant(attribute, tensor)
        check_safe(node)
        graph._nodes[node.id] = node
        alike = graph._by_op.get((node.domain, op_type))
        if alike is None:
            alike = graph._by_op[node.domain, op_type] = {}
        alike[node.id] = node
        if name := proto.name:
            if not isinstance(name, str):
                raise ModelError(f"node {name!r} ({op_type}) has a name that is not UTF-8")
            model.node_names.take(name)
        return node

    def _read_inputs(self, graph: Graph, node: Node, scope: Scope, scopes: list[Scope]) -> bool:
        """Link the inputs of a node; return whether it is after their producers."""
        serial, inputs, is_after = node.id, node._inputs, True
        for index, name in enumerate(node.proto.input[:]):
            if not name:
                inputs.append(None)
                continue
            value = scope.get(name) or _lookup(name, scopes)
            if value is None:
                raise ModelError(
                    f"node {node.label!r} ({node.op_type}) reads {name!r}, which nothing defines"
                )
            inputs.append(value)
            if value.name != name:
                node.proto.input[index] = value.name
            if value.graph is graph:
                # The same as use_lists.add_use without a networkx view and a capture.
                value._users[serial << SLOT_BITS | index] = node
                producer = value.producer
                if producer is not None and producer.id >= serial:
                    is_after = False
            else:
                use_lists.add_use(value, node, index)
        return is_after

    def _fill_bodies(self, node: Node, attribute: onnx.AttributeProto, scopes: list[Scope]) -> None:
        if attribute.ref_attr_name:
            return
        single = attribute.type == onnx.AttributeProto.GRAPH
        for source in [attribute.g] if single else attribute.graphs:
            body = Graph(self.model, node, attribute.name)
            node.owner._body_nodes[node.id] = node
            node.bodies = (*node.bodies, body)
            self._fill_graph(body, source, scopes)


def _lookup(name: str, scopes: list[Scope]) -> Value | None:
    for scope in scopes:
        value = scope.get(name)
        if value is not None:
            return value
    return None


def _is_after_captured(node: Node) -> bool:
    """Return whether a node is after the producers of its captured values."""
    return all(
        value.producer.id < node.id
        for value in node.captured
        if value.producer is not None and value.graph is node.graph
    )


def _pin_training_names(model: ModelState) -> None:
    """Keep the names that the training graphs use: they name values of the main graph.

    What they assign to is no constant.
    """
    names: set[str] = set()
    trained: set[str] = set()
    for training in model.skeleton.training_info:
        for graph in (training.initialization, training.algorithm):
            names.update(name for node in graph.node for name in node.input)
        for binding in (*training.initialization_binding, *training.update_binding):
            names.update((binding.key, binding.value))
            trained.add(binding.key)
    for name in sorted(names):
        value = model.main._values.get(name)
        if value is not None:
            value.pins += 1
            value.is_trained = name in trained
