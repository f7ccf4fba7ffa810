"""From the view to a ModelProto: new GraphProtos and bodies, which share nothing with the view."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import onnx

from tiered.graph.core.lazy_bytes import is_stored
from tiered.graph.core.tensor import Tensor
from tiered.graph.core.types import TensorType, tensor_type, write_type
from tiered.graph.core.value import Value
from tiered.graph.queries.long_lists import has_long_lists, shortened

if TYPE_CHECKING:
    from tiered.graph.core.graph import Function, Graph
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node


def export_model(
    model: ModelState,
    *,
    max_elements: int | None = None,
    annotate: bool = False,
    for_inference: bool = False,
    is_bare: bool = False,
) -> onnx.ModelProto:
    """Return the model as a new ModelProto.

    Args:
        model: the view; it is not changed.
        max_elements: make larger initializers typed inputs without contents, which is enough for
            shape inference.
        for_inference: leave out declared shapes that can be inferred, and the contents of
            overridable initializers, so that inference does not use them.
        annotate: write inferred types as value_info too, not only those of the user.
        is_bare: leave stored weights on disk, for callers that can read them.
    """
    proto = onnx.ModelProto()
    proto.CopyFrom(model.skeleton)
    write_opsets(model, proto)
    writer = _Writer(max_elements, annotate, for_inference, is_bare)
    writer.write_graph(model.main, proto.graph)
    for function in model.functions:
        writer.write_function(function, proto.functions.add())
    return proto


def export_node(
    node: Node, *, max_elements: int | None = None, is_bare: bool = False
) -> onnx.NodeProto:
    """Return a node with its bodies as a new NodeProto; the options are those of `export_model`."""
    proto = onnx.NodeProto()
    _Writer(max_elements, annotate=False, is_bare=is_bare)._write_node(node, proto)
    return proto


def write_opsets(owner: ModelState | Function, proto: onnx.ModelProto | onnx.FunctionProto) -> None:
    """Write the imported opsets of a model or function, each domain as the file spells it."""
    del proto.opset_import[:]
    for domain, version in owner.opset_imports.items():
        entry = proto.opset_import.add(version=version)
        # Unset and "" mean the same, but are different bytes; "ai.onnx" also means "".
        spelling = owner.spellings.get(domain, domain)
        if spelling is not None:
            entry.domain = spelling


def export_function(function: Function) -> onnx.FunctionProto:
    """Return a local function as a new FunctionProto."""
    proto = onnx.FunctionProto()
    _Writer(None, annotate=False).write_function(function, proto)
    return proto


class _Writer:
    def __init__(
        self,
        max_elements: int | None,
        annotate: bool,
        for_inference: bool = False,
        is_bare: bool = False,
    ) -> None:
        self.max_elements = max_elements
        self.annotate = annotate
        self.for_inference = for_inference
        self.is_bare = is_bare
        self.is_whole = max_elements is None and not is_bare

    def write_graph(self, graph: Graph, proto: onnx.GraphProto) -> None:
        assert isinstance(graph.skeleton, onnx.GraphProto)
        proto.MergeFrom(graph.skeleton)
        if graph._body_nodes:
            for node in graph.topological_order():
                self._write_node(node, proto.node.add())
        elif self.max_elements is not None and has_long_lists(graph):
            proto.node.extend(map(shortened, graph.topological_order()))
        else:
            # One call copies them all in half the time.
            proto.node.extend(node.proto for node in graph.topological_order())
            for made in proto.node if self.is_whole else ():
                _embed_constant(made)
        self._write_infos(graph._inputs, graph._input_infos, proto.input)
        self._write_infos(graph._outputs, graph._output_infos, proto.output)
        if self.for_inference:
            _forget_what_follows(graph, proto)
        for value in graph.initializers:
            self._write_initializer(value, proto)
        proto.value_info.extend(self._declarations(graph))
        for values, annotation in graph.annotations:
            if all(value.graph is not None for value in values):
                _write_annotation(values, annotation, proto.quantization_annotation.add())
        if graph.file_names:
            _rename(proto, graph.file_names)

    def write_function(self, function: Function, proto: onnx.FunctionProto) -> None:
        assert isinstance(function.skeleton, onnx.FunctionProto)
        proto.MergeFrom(function.skeleton)
        write_opsets(function, proto)
        proto.input.extend(value.name for value in function.inputs)
        proto.output.extend(value.name for value in function.outputs)
        for node in function.topological_order():
            self._write_node(node, proto.node.add())
        proto.value_info.extend(self._declarations(function))

    def _write_node(self, node: Node, proto: onnx.NodeProto) -> None:
        proto.CopyFrom(node.proto if self.max_elements is None else shortened(node))
        if self.is_whole:
            _embed_constant(proto)
        if not node.bodies:
            return
        bodies = iter(node.bodies)
        for attribute in proto.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                if not attribute.ref_attr_name:
                    self.write_graph(next(bodies), attribute.g)
            elif attribute.type == onnx.AttributeProto.GRAPHS:
                for body in node.bodies:
                    if body.attribute == attribute.name:
                        self.write_graph(next(bodies), attribute.graphs.add())

    def _write_initializer(self, value: Value, proto: onnx.GraphProto) -> None:
        tensor = value.default
        assert tensor is not None
        if self.for_inference and value.is_graph_input:
            return
        if tensor.is_sparse and self.max_elements is None:
            assert isinstance(tensor.proto, onnx.SparseTensorProto)
            sparse = proto.sparse_initializer.add()
            sparse.CopyFrom(tensor.proto)
            sparse.values.name = value.name
            return
        # onnx infers that a sparse one is of another type, which no operator takes.
        if self.max_elements is None or (
            tensor.size <= self.max_elements
            and not (tensor.is_on_disk or tensor.is_sparse or value.is_trained)
        ):
            made = tensor.to_proto(value.name) if self.is_bare else tensor.embedded(value.name)
            proto.initializer.append(made)
        elif not value.is_graph_input:
            proto.input.add(name=value.name, type=write_type(value.type))

    def _declarations(self, graph: Graph) -> Iterable[onnx.ValueInfoProto]:
        for value, info in graph.declarations:
            if self.for_inference and (value is None or _is_inferable(value)):
                continue
            if value is None:
                yield info
            elif value.graph is graph:
                yield _named(info, value.name)
        if self.annotate:
            yield from (info for _, info in inferred_declarations(graph))

    @staticmethod
    def _write_infos(
        values: Iterable[Value],
        infos: Iterable[onnx.ValueInfoProto],
        target: Iterable[onnx.ValueInfoProto],
    ) -> None:
        target.extend(  # type: ignore[attr-defined]  # a repeated field
            _stated(_named(info, value.name), value)
            for value, info in zip(values, infos, strict=True)
        )


def _embed_constant(proto: onnx.NodeProto) -> None:
    """Read the tensor of a Constant if it was left on disk."""
    if proto.op_type == "Constant":
        for attribute in proto.attribute:
            if is_stored(attribute.t):
                attribute.t.CopyFrom(Tensor(attribute.t).embedded(attribute.t.name))


def _is_inferable(value: Value) -> bool:
    """Return whether onnx can find out the type of a value from the inputs."""
    return value.producer is not None and value.producer.schema is not None


def _forget_what_follows(graph: Graph, proto: onnx.GraphProto) -> None:
    """Remove the declared shapes and names, so that inference does not use them."""
    for value, info in zip(graph._outputs, proto.output, strict=True):
        if value.tensor is not None and value.producer is None:
            # onnx would take the declared type, which may be open, for that of the constant.
            info.type.CopyFrom(write_type(value.type))
        elif _is_inferable(value) and info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")
    for value, info in zip(graph._inputs, proto.input, strict=False):
        if isinstance(value.type, TensorType):
            info.type.CopyFrom(write_type(value.type))


def _named(info: onnx.ValueInfoProto, name: str) -> onnx.ValueInfoProto:
    if info.name == name:
        return info
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(info)
    copy.name = name
    return copy


def _stated(info: onnx.ValueInfoProto, value: Value) -> onnx.ValueInfoProto:
    """Return a declaration with a type if the value is a constant.

    onnx's inference of a body takes the type of an output that is an initializer from here alone.
    """
    if value._tensor is None or info.type.WhichOneof("value") is not None:
        return info
    kind = value.type or tensor_type(value._tensor.dtype, value._tensor.shape)
    return onnx.ValueInfoProto(name=info.name, type=write_type(kind))


def inferred_declarations(graph: Graph) -> Iterable[tuple[Value, onnx.ValueInfoProto]]:
    """Yield the inner values that the model does not declare, with their inferred types."""
    for value in sorted(graph._values.values(), key=lambda value: value.id):
        if value.producer is not None and value.declared is None and not value.output_of:
            kind = without_invented(write_type(value.type))
            if kind.WhichOneof("value"):
                yield value, onnx.ValueInfoProto(name=value.name, type=kind)


def without_invented(proto: onnx.TypeProto) -> onnx.TypeProto:
    """Remove the dim names that shape inference invented."""
    for dim in proto.tensor_type.shape.dim if proto.HasField("tensor_type") else ():
        if dim.dim_param.startswith("unk__"):
            dim.ClearField("dim_param")
    return proto


def _write_annotation(
    values: list[Value], annotation: onnx.TensorAnnotation, target: onnx.TensorAnnotation
) -> None:
    target.CopyFrom(annotation)
    target.tensor_name = values[0].name
    for entry, value in zip(target.quant_parameter_tensor_names, values[1:], strict=True):
        entry.value = value.name


def _rename(proto: onnx.GraphProto, names: Mapping[str, str]) -> None:
    """Rename values of a body, in nested bodies too."""
    for infos in (proto.input, proto.output, proto.value_info, proto.initializer):
        for info in infos:
            info.name = names.get(info.name, info.name)
    for sparse in proto.sparse_initializer:
        sparse.values.name = names.get(sparse.values.name, sparse.values.name)
    for annotation in proto.quantization_annotation:
        annotation.tensor_name = names.get(annotation.tensor_name, annotation.tensor_name)
        for entry in annotation.quant_parameter_tensor_names:
            entry.value = names.get(entry.value, entry.value)
    for node in proto.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                if body.node or body.output:
                    _rename(body, names)
