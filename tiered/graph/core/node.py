"""Node: one NodeProto, with its operands as Values and its bodies as Graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import onnx
from onnx.defs import OpSchema

from tiered.graph.core.provenance import origins_of
from tiered.graph.core.schema import (
    EARLY_OPERATORS,
    Schema,
    decode_attribute,
    default_of,
    schema_in_use,
    schema_of,
)
from tiered.graph.core.tensor import Tensor
from tiered.graph.core.value import refuse_copy
from tiered.support.errors import ModelError
from tiered.support.operator_name import operator_name

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.value import Value

_MISSING: Any = object()
_NONE: Final[Mapping[str, onnx.AttributeProto]] = {}
"""The attributes of every node that has none."""


def domain_of(name: str) -> str:
    """Return the domain in the form for comparison: "" for "ai.onnx", the default domain."""
    return "" if name == "ai.onnx" else name


class Node:
    """One operator. It has identity: undo restores the same object; its hash is its serial.

    Read `inputs`, `outputs` and attributes here; all edits go through the primitives of `Graph`.
    """

    # Bound by graph.api: how the opset of the model writes each operator is known above this file.
    _newest_operands: ClassVar[Callable[[Node], Sequence[Value | None]]]
    _operand_index: ClassVar[Callable[[Node, str], int]]

    __slots__ = {
        "_attributes": None,
        "_captured": None,
        "_constant": None,
        "_inputs": None,
        "_outputs": None,
        "_parameter": None,
        "_scratch": None,
        "bodies": "The graphs that the node holds: branches of an If, the body of a Loop or Scan.",
        "domain": 'The operator\'s domain; "" is ONNX\'s own, also where the file says "ai.onnx".',
        "graph": "The graph of the node, None once it was removed; `owner` raises instead.",
        "id": "The serial number within the model; new nodes have larger ones.",
        "op_type": "The operator's name without its domain: Conv.",
        "proto": "The NodeProto behind it, to read; all edits go through `Graph`.",
        "sources": "The nodes that a rewrite made it from; () for a node of the file.",
    }

    def __init__(self, serial: int, graph: Graph, proto: onnx.NodeProto) -> None:
        self.id = serial
        self.graph: Graph | None = graph
        self.proto = proto
        self.op_type: str = proto.op_type
        self.domain: str = domain_of(proto.domain)
        self.bodies: tuple[Graph, ...] = ()
        self._inputs: list[Value | None] = []
        self._outputs: list[Value | None] = []
        self._attributes: Mapping[str, onnx.AttributeProto] | None = None
        # Values of the graphs above that the bodies read, with the number of reads.
        self._captured: dict[Value, int] | None = None
        self._constant: Tensor | object | None = _MISSING
        self._parameter: Any = _MISSING
        self._scratch: dict[str, Any] | None = None
        # The sources of a node that a rewrite made; empty for a node of the file.
        self.sources: tuple[Node, ...] = ()

    def __hash__(self) -> int:
        return self.id

    __copy__ = __deepcopy__ = refuse_copy

    def __lt__(self, other: Node) -> bool:
        """Compare serial numbers: some algorithms of networkx need an order of nodes."""
        return self.id < other.id

    def __repr__(self) -> str:
        return f"<{'' if self.graph else 'removed '}{self.op_type} {self.label!r}>"

    # --- place ------------------------------------------------------------------------------------

    @property
    def owner(self) -> Graph:
        """Return the graph that the node is in.

        Raises:
            ModelError: the node was removed.
        """
        if self.graph is None:
            raise ModelError(f"node {self.label!r} ({self.op_type}) was removed from its graph")
        return self.graph

    @property
    def name(self) -> str:
        """Return the name in the file, "" for a nameless node; `label` is never empty."""
        return self.proto.name

    @property
    def operator(self) -> str:
        """Return the operator as people write it: Conv, com.microsoft::Gelu."""
        return operator_name(self.domain, self.op_type)

    @property
    def label(self) -> str:
        """Return the name, or for a nameless node the name of its first output."""
        return self.proto.name or next((name for name in self.proto.output if name), "")

    @property
    def origins(self) -> tuple[Node, ...]:
        """Return the nodes of the file that the node was made from; itself if it is one of them."""
        return origins_of(self)

    # --- operands ---------------------------------------------------------------------------------

    @property
    def inputs(self) -> tuple[Value | None, ...]:
        """Return the inputs in the model's opset form; None for an absent optional one."""
        return tuple(self._inputs)

    @property
    def outputs(self) -> tuple[Value | None, ...]:
        """Return the outputs in the model's opset form; None for an absent optional one."""
        return tuple(self._outputs)

    @property
    def output(self) -> Value:
        """Return the first output.

        Raises:
            ModelError: the node has none.
        """
        value = self._outputs[0] if self._outputs else None
        if value is None:
            raise ModelError(f"node {self.label!r} ({self.op_type}) has no first output")
        return value

    def input(self, index: int) -> Value | None:
        """Return input `index` in the model's opset form; None if it is absent or past the end."""
        return self._inputs[index] if index < len(self._inputs) else None

    def given(self, index: int) -> Value:
        """Return input `index`, which the caller knows to be there."""
        value = self._inputs[index]
        assert value is not None, f"{self!r} has no input {index}"
        return value

    def const(self, index: int) -> np.ndarray[Any, Any] | None:
        """Return the numbers of constant input `index`; None if it is absent or no constant."""
        value = self.input(index)
        return None if value is None else value.const

    def producer(self, index: int) -> Node | None:
        """Return the node that makes input `index`; None if it is absent or none does."""
        value = self.input(index)
        return None if value is None else value.producer

    @property
    def reads(self) -> list[Value]:
        """Return the values that the node or its bodies read, in the order of its inputs."""
        return [value for value in (*self._inputs, *self.captured) if value is not None]

    @property
    def captured(self) -> tuple[Value, ...]:
        """Return the values of the graphs above that the bodies read, by serial number."""
        return tuple(sorted(self._captured, key=lambda value: value.id)) if self._captured else ()

    @property
    def used_outputs(self) -> dict[int, Value]:
        """Return the outputs that a node reads or that are outputs of a graph, by their place."""
        return {
            place: value
            for place, value in enumerate(self._outputs)
            if value is not None and value.is_used
        }

    @property
    def is_used(self) -> bool:
        """Return whether an output is read by a node or is an output of a graph."""
        for value in self._outputs:
            if value is None:
                continue
            if value.is_used:
                return True
        return False

    @property
    def is_live(self) -> bool:
        """Return whether neither the node nor a node around its graph was removed."""
        graph = self.graph
        while graph is not None and graph.parent_node is not None:
            graph = graph.parent_node.graph
        return graph is not None

    @property
    def is_pinned(self) -> bool:
        """Return whether training info or a quantization annotation names an output."""
        for value in self._outputs:
            if value is None:
                continue
            if value.pins:
                return True
        return False

    @property
    def predecessors(self) -> list[Node]:
        """Return the nodes that this one or its bodies read, in the order of the operands."""
        graph = self.owner
        values = (*self._inputs, *self.captured)
        found = [value.producer for value in values if value is not None and value.graph is graph]
        return [producer for producer in dict.fromkeys(found) if producer is not None]

    @property
    def successors(self) -> list[Node]:
        """Return the nodes of the graph that read this one, directly or in a body, by output."""
        graph = self.owner
        written = [value for value in self._outputs if value is not None and value.graph is graph]
        return list(dict.fromkeys(reader for value in written for reader in value.readers))

    def is_optional(self, index: int) -> bool:
        """Return whether input `index` is optional; of an unknown operator, none is."""
        schema = self.schema
        if schema is None:
            return False
        formal = schema.inputs[min(index, len(schema.inputs) - 1)]
        return formal.option == OpSchema.FormalParameterOption.Optional

    def operand(self, name: str | int) -> Value | None:
        """Return an operand by its name or index in the operator's newest form, None if absent.

        If it is an attribute in the model's opset, the result is a detached constant value.

        Raises:
            ModelError: the operator has no operand of this name.
        """
        index = self._operand_index(name) if isinstance(name, str) else name
        operands = self._newest_operands()
        return operands[index] if index < len(operands) else None

    @property
    def operands(self) -> tuple[Value | None, ...]:
        """Return all operands in the order of the operator's newest form."""
        return tuple(self._newest_operands())

    # --- operator ---------------------------------------------------------------------------------

    @property
    def schema(self) -> Schema | None:
        """Return the schema in force for the model's opset, None for an unknown operator.

        An operator that runtimes run at older opsets than ONNX has the first schema there.
        """
        return schema_in_use(self.op_type, self.domain, self.owner.root.opset(self.domain))

    @property
    def is_early(self) -> bool:
        """Whether ONNX has the operator only from a later opset on, but runtimes run it already."""
        first = EARLY_OPERATORS.get(self.op_type)
        return first is not None and not self.domain and self.owner.root.opset("") < first

    @property
    def version(self) -> int:
        """Return the opset version that last changed the operator; 0 for an unknown operator."""
        schema = self.schema
        return schema.since_version if schema is not None else 0

    @property
    def callee(self) -> tuple[str, str, str]:
        """Return (domain, op type, overload): the id of the local function that it may call."""
        return self.domain, self.op_type, self.proto.overload

    def is_op(self, op_type: str, domain: str = "") -> bool:
        """Return whether the node has this operator, by default in ONNX's own domain.

        The type alone is not enough: other domains and local functions share names with ONNX.
        """
        return self.op_type == op_type and self.domain == domain

    def is_same_at(self, version: int) -> bool:
        """Return whether the operator is the same in another opset version of its domain."""
        own, there = self.schema, schema_of(self.op_type, self.domain, version)
        if own is None or there is None:
            return self.owner.opset(self.domain) == version
        return bool(own.since_version == there.since_version)

    # --- attributes -------------------------------------------------------------------------------

    def attribute_protos(self) -> Mapping[str, onnx.AttributeProto]:
        """Return the attributes that are written down, as protos by name, bodies too."""
        if self._attributes is None:
            protos = self.proto.attribute
            self._attributes = {proto.name: proto for proto in protos} if protos else _NONE
        return self._attributes

    def has_attr(self, name: str) -> bool:
        """Return whether an attribute is written down; one with only a default is not."""
        return name in self.attribute_protos()

    def attr(self, name: str, default: Any = _MISSING) -> Any:
        """Return an attribute; if it is absent, `default`, else the default of the schema.

        Numbers, strings, and tuples of them; None if there is no default either; an
        `AttributeReference` if the attribute is a function parameter.
        """
        proto = self.attribute_protos().get(name)
        if proto is not None:
            return decode_attribute(proto)
        if default is not _MISSING:
            return default
        schema = self.schema
        return None if schema is None else default_of(schema, name)

    @property
    def attributes(self) -> dict[str, Any]:
        """Return the attributes that are written down, without bodies and defaults."""
        graphs = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
        return {
            name: decode_attribute(proto)
            for name, proto in self.attribute_protos().items()
            if proto.type not in graphs
        }

    @property
    def settings(self) -> dict[str, Any]:
        """Return the attributes that differ from the schema's defaults."""
        schema = self.schema
        return {
            name: value
            for name, value in self.attributes.items()
            # Not by ==, to which -0.0 is 0.0.
            if schema is None or repr(value) != repr(default_of(schema, name))
        }

    @property
    def has_references(self) -> bool:
        """Return whether the call of the local function around the node decides an attribute."""
        known = self._parameter
        return (self.parameter_reason if known is _MISSING else known) is not None

    @property
    def parameter_reason(self) -> str | None:
        """Return why an attribute is not known: "attribute 'axis' is a function parameter".

        None if each attribute has a value, or none is written down.
        """
        if self._parameter is _MISSING:
            self._parameter = None
            for name, proto in self.attribute_protos().items():
                if proto.ref_attr_name:
                    self._parameter = f"attribute {name!r} is a function parameter"
                    break
        reason: str | None = self._parameter
        return reason

    @property
    def perm(self) -> tuple[int, ...] | None:
        """Return the permutation of a Transpose; None for other operators, or if it is unknown."""
        if self.op_type != "Transpose" or self.domain or self.has_references:
            return None
        written, x = self.attr("perm", ()), self.input(0)
        if written:
            return tuple(written) if sorted(written) == list(range(len(written))) else None
        rank = None if x is None else x.rank
        return None if rank is None else tuple(reversed(range(rank)))

    @property
    def metadata(self) -> dict[str, str]:
        """Return a copy of the metadata that the file has of the node, by key."""
        return {entry.key: entry.value for entry in self.proto.metadata_props}

    @property
    def scratch(self) -> dict[str, Any]:
        """Return notes of passes for passes: never exported, not in the journal."""
        if self._scratch is None:
            self._scratch = {}
        return self._scratch

    def constant_tensor(self) -> Tensor | None:
        """Return the tensor of a Constant node; None if it is a function parameter."""
        if self._constant is _MISSING:
            self._constant = _read_constant(self)
        assert self._constant is None or isinstance(self._constant, Tensor)
        return self._constant

    def note_constant(self, proto: onnx.AttributeProto, tensor: Tensor) -> None:
        """Cache the tensor of a Constant node if `value` is its only attribute."""
        is_all = self.op_type == "Constant" and len(self.attribute_protos()) == 1
        if is_all and proto.name == "value":
            self._constant = tensor

    def forget_attributes(self) -> None:
        """Drop the decoded attributes; the primitives call it after they replace the proto."""
        self._attributes = None
        self._constant = _MISSING
        self._parameter = _MISSING


def _read_constant(node: Node) -> Tensor | None:
    protos = node.attribute_protos()
    if len(protos) != 1:
        return None
    ((name, proto),) = protos.items()
    if proto.ref_attr_name:
        return None
    folder = node.owner.model.folder
    match name:
        case "value":
            return Tensor(proto.t, folder=folder)
        case "sparse_value":
            return Tensor(proto.sparse_tensor)
        case "value_float":
            return Tensor.of(np.array(proto.f, np.float32))
        case "value_floats":
            return Tensor.of(np.array(proto.floats, np.float32))
        case "value_int":
            return Tensor.of(np.array(proto.i, np.int64))
        case "value_ints":
            return Tensor.of(np.array(proto.ints, np.int64))
        case "value_string" | "value_strings":
            return _string_tensor([proto.s] if name == "value_string" else proto.strings, name)
        case _:
            return None


def _string_tensor(texts: Sequence[bytes], attribute: str) -> Tensor:
    proto = onnx.TensorProto(data_type=onnx.TensorProto.STRING, string_data=texts)
    if attribute == "value_strings":
        proto.dims.append(len(texts))
    return Tensor(proto)
