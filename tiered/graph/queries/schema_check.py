"""The check of nodes against schemas: numbers of operands, types of attributes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import onnx
from onnx.defs import OpSchema

from tiered.graph.core.schema import schema_of
from tiered.support.amounts import counted
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node


def check_operators(model: ModelState) -> None:
    """Raise if a node of a file does not match its schema, so that passes need not check.

    Raises:
        ModelError: it has too few or too many operands, or attributes are missing or of another
            type.
    """
    called = {function.id[:2] for function in model.functions}
    for graph in model.graphs():
        for (domain, op_type), nodes in graph._by_op.items():
            if (domain, op_type) in called:
                continue
            signature = _signature_of(op_type, domain, graph.opset(domain))
            if signature is None:
                continue
            for node in nodes.values():
                signature.check(node)


def check_node_at(node: Node, version: int) -> None:
    """Raise if a node does not match the schema of its operator at an opset version.

    Raises:
        ModelError: it does not; operators without a schema in onnx are not checked.
    """
    signature = _signature_of(node.op_type, node.domain, version)
    if signature is not None:
        signature.check(node)


class _Signature(NamedTuple):
    """The schema of an operator in a form that is fast to check."""

    since: int
    """The opset version that last changed the operator."""
    inputs: range
    outputs: range
    present: tuple[int, ...]
    """The inputs that cannot be left out."""
    kinds: dict[str, int]
    required: frozenset[str]

    def check(self, node: Node) -> None:
        """Raise if a node of a file does not match the schema of its operator.

        Attributes that the operator does not have are ignored: the runtime decides.

        Raises:
            ModelError: it does not.
        """
        proto, reads, attributes = node.proto, node._inputs, node.attribute_protos()
        is_fit = len(reads) in self.inputs and len(node._outputs) in self.outputs
        for index in self.present:
            is_fit = is_fit and reads[index] is not None
        if attributes or self.required:
            for name, entry in attributes.items():
                kind = entry.type
                is_fit = is_fit and self.kinds.get(name, kind) == kind
            is_once = len(attributes) == len(proto.attribute)
            is_fit = is_fit and is_once
            for name in self.required:
                is_fit = is_fit and name in attributes
        if is_fit:
            return
        for reason in self._reasons(proto):
            raise ModelError(f"node {node.label!r} ({node.op_type}-{self.since}) {reason}")

    def _reasons(self, proto: onnx.NodeProto) -> Iterator[str]:
        """Yield each mismatch as a message."""
        for what, names, counts in (
            ("input", proto.input, self.inputs),
            ("output", proto.output, self.outputs),
        ):
            if len(names) not in counts:
                takes = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
                yield f"has {counted(len(names), what)}; its operator takes {takes}"
        for index in self.present:
            if not proto.input[index]:
                yield f"lacks its input {index}"
        seen: set[str] = set()
        for attribute in proto.attribute:
            name, kind = attribute.name, onnx.AttributeProto.AttributeType
            if name in seen:
                yield f"has the attribute {name!r} twice"
            seen.add(name)
            wanted = self.kinds.get(name, attribute.type)
            # An attribute reference often has no type.
            if attribute.type != wanted and (attribute.type or not attribute.ref_attr_name):
                found, takes = kind.Name(attribute.type), kind.Name(wanted)
                yield f"has the attribute {name!r} as {found}; its operator takes {takes}"
        for name in sorted(self.required - seen):
            yield f"lacks the attribute {name!r}"


@lru_cache(maxsize=4096)
def _signature_of(op_type: str, domain: str, version: int) -> _Signature | None:
    """Return the requirements of an operator at an opset version; None if onnx lacks it.

    For an opset newer than onnx has, they are those of its newest: passes read no other form.
    """
    schema = schema_of(op_type, domain, version)
    if schema is None:
        return None
    specs: dict[str, Any] = dict(schema.attributes)
    kind, optional = onnx.AttributeProto.AttributeType, OpSchema.FormalParameterOption.Optional
    return _Signature(
        since=schema.since_version,
        inputs=range(schema.min_input, schema.max_input + 1),
        outputs=range(schema.min_output, schema.max_output + 1),
        present=tuple(
            index
            for index, formal in enumerate(schema.inputs[: schema.min_input])
            if formal.option != optional
        ),
        kinds={name: kind.Value(spec.type.name) for name, spec in specs.items()},
        required=frozenset(name for name, spec in specs.items() if spec.required),
    )
