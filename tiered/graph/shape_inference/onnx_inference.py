"""onnx's own shape inference of one node or a whole model, and the cases where it is unsound.

It sees no weights: tensors up to `DATA_ELEMENTS` elements are kept, because shapes depend on them;
larger ones become typed inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final

import onnx
from onnx import checker, shape_inference

from tiered.graph.core.schema import UNSAFE, schema_of, why_unsafe
from tiered.graph.core.types import ValueType, read_type, write_type
from tiered.graph.io.export import export_model, export_node
from tiered.graph.io.protos import graphs_of, nodes_of
from tiered.graph.opset.aspect import Aspect
from tiered.graph.queries.call_graph import expanded_size, recursive_functions
from tiered.graph.queries.long_lists import shortened
from tiered.graph.queries.onnx_errors import first_cause
from tiered.graph.shape_inference.rules.contrib_types import types_by_signature

if TYPE_CHECKING:
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

DATA_ELEMENTS: Final = 1024
MOST_PROPAGATED: Final = 1 << 20
MOST_EXPANDED: Final = 200_000
_PROPAGATED: Final = frozenset(
    ("Add", "Cast", "Concat", "Gather", "Mul", "Size", "Slice", "Squeeze", "Sub", "Unsqueeze")
)
"""The operators whose operands onnx holds element by element while it propagates."""

# The errors of onnx for a model or node that it finds inconsistent; declared types are kept then.
_INFERENCE_FAILURES = (
    shape_inference.InferenceError,
    checker.ValidationError,
    RuntimeError,
    ValueError,
    TypeError,
    MemoryError,  # absurd sizes
)


def onnx_types(node: Node) -> Sequence[ValueType | None]:
    """Return the types of a node's outputs as onnx infers them; () for an unknown operator."""
    schema = _schema_for_inference(node)
    if schema is None:
        return ()
    try:
        outputs = _inferred_outputs(node, schema)
    except _INFERENCE_FAILURES:
        outputs = {}
    inferred = {name: read_type(proto) for name, proto in outputs.items()}
    if node.domain:
        # onnx infers only a few operators of its other domains.
        for name, kind in types_by_signature(node, schema).items():
            inferred[name] = inferred.get(name) or kind
    return [None if value is None else inferred.get(value.name) for value in node._outputs]


def node_complaint(node: Node) -> str | None:
    """Return what onnx's inference has against a node with all that is known; None if nothing.

    Unlike an inference of the whole model, it knows the constants that a body captures.
    """
    schema = _schema_for_inference(node)
    if schema is None:
        return None
    try:
        _inferred_outputs(node, schema)
    except _INFERENCE_FAILURES as error:
        return first_cause(error)
    return None


def _schema_for_inference(node: Node) -> onnx.defs.OpSchema | None:
    """Return the schema of an operator that onnx can infer; None for another one."""
    if node.has_references or why_unsafe(node):
        return None
    return schema_of(node.op_type, node.domain, node.owner.opset(node.domain))


def _inferred_outputs(node: Node, schema: onnx.defs.OpSchema) -> dict[str, onnx.TypeProto]:
    """Return the types that onnx infers for the outputs of a node, by name.

    Raises:
        Exception: one of `_INFERENCE_FAILURES`: onnx finds the node inconsistent.
    """
    graph = node.owner
    reads = [value for value in (*node._inputs, *node.captured) if value is not None]
    types = {value.name: write_type(value.type) for value in reads}
    data = {
        value.name: tensor.to_proto(value.name)
        for value in reads
        if (tensor := value.tensor) is not None
        and not tensor.is_sparse
        and not tensor.is_on_disk
        and tensor.size <= DATA_ELEMENTS
    }
    proto = export_node(node, max_elements=DATA_ELEMENTS) if node.bodies else shortened(node)
    opsets = [onnx.helper.make_opsetid(d, v) for d, v in graph.root.opset_imports.items()]
    return shape_inference.infer_node_outputs(
        schema, proto, types, data, None, opsets, graph.model.ir_version
    )


def inferred_model(model: ModelState, hidden: Collection[str]) -> onnx.GraphProto | None:
    """Return the main graph with all types that one inference of the model by onnx finds.

    Args:
        model: the model, which gets a note if functions are left out or the inference fails.
        hidden: the outputs of nodes whose inferred types nothing may depend on.
    """
    try:
        proto = export_model(model, max_elements=DATA_ELEMENTS, for_inference=True)
        if hidden:
            hide_outputs(proto, hidden)
        if not calls_are_bounded(model):
            model.note("the local functions call each other too often to infer through them")
            del proto.functions[:]
        elif names := _decided_by_calls(model):
            model.note(f"calls decide attributes of {names}, so nothing is inferred of calls")
            del proto.functions[:]
        bounded = propagation_is_bounded(model, proto)
        return shape_inference.infer_shapes(proto, data_prop=bounded).graph
    except _INFERENCE_FAILURES as error:
        model.note(f"shape inference failed, only declared types are known: {error}")
        return None


def hide_outputs(proto: onnx.ModelProto, names: Collection[str]) -> None:
    """Rename these outputs of nodes, so that nothing is inferred for their consumers."""
    for node in nodes_of(proto):
        node.output[:] = [f"{name} hidden" if name in names else name for name in node.output]


# --- limits ---------------------------------------------------------------------------------------


def is_inferable(model: ModelState) -> bool:
    """Return whether onnx can infer through the local functions of a model."""
    return calls_are_bounded(model) and not _decided_by_calls(model)


def _decided_by_calls(model: ModelState) -> str:
    """Return the operators of `UNSAFE` whose attributes calls decide, joined; "" for none.

    onnx reads the attributes of the call, and may abort the process or run for ever.
    """
    inner = (node for function in model.functions for node in function.walk())
    found = {n.op_type for n in inner if n.op_type in UNSAFE and not n.domain and n.has_references}
    return " and ".join(sorted(found))


def calls_are_bounded(model: ModelState) -> bool:
    """Return whether onnx's inference, which follows every call, ends soon.

    Thirty functions that each call the next one twice make a thousand million calls.
    """
    if not model.functions:
        return True
    return not recursive_functions(model) and expanded_size(model, ()) <= MOST_EXPANDED


def propagation_is_bounded(model: ModelState, proto: onnx.ModelProto) -> bool:
    """Return whether the values that onnx propagates stay small.

    onnx computes small integer tensors during inference; forty Concats of a value with itself make
    a tensor of 10**12 elements, and so may a single Range. A vector whose elements are unknown
    takes as much memory as one whose elements are known, of any dtype.

    Args:
        model: the model.
        proto: what onnx is to infer: the model without large tensors.
    """
    return _computed_vectors_are_short(model) and _read_vectors_are_short(proto)


def _computed_vectors_are_short(model: ModelState) -> bool:
    """Return whether no Concat and no Range makes a long vector of what onnx knows."""
    sizes: dict[Value, int] = {}
    for graph in model.graphs():
        for node in graph.topological_order():
            read = [
                sizes.get(value, _propagated_size(value))
                for value in node._inputs
                if value is not None
            ]
            size = sum(read) if node.op_type == "Concat" else max(read, default=0)
            if size > MOST_PROPAGATED and node.op_type == "Concat":
                return False
            if node.op_type == "Range" and _range_length(node) > MOST_PROPAGATED:
                return False
            for value in node._outputs:
                if value is not None:
                    sizes[value] = min(size, MOST_PROPAGATED)
    return True


def _read_vectors_are_short(proto: onnx.ModelProto) -> bool:
    """Return whether no operator that onnx propagates reads a long vector.

    The sizes are those that onnx infers without propagation.
    """
    inferred = shape_inference.infer_shapes(proto, data_prop=False)
    long = set[str]()
    for graph in graphs_of(inferred):
        for info in (*graph.input, *graph.value_info, *graph.output):
            dims = info.type.tensor_type.shape.dim
            if len(dims) == 1 and dims[0].dim_value > MOST_PROPAGATED:
                long.add(info.name)
        for tensor in graph.initializer:
            if len(tensor.dims) == 1 and tensor.dims[0] > MOST_PROPAGATED:
                long.add(tensor.name)
    return not long or not any(
        node.op_type in _PROPAGATED and not long.isdisjoint(node.input) for node in nodes_of(proto)
    )


def _range_length(node: Node) -> float:
    """Return the approximate length of a Range of constants; 0 for other operands."""
    tensors = [value.default or value.tensor if value else None for value in node._inputs]
    known = [tensor for tensor in tensors if tensor and not tensor.is_sparse and tensor.size == 1]
    if len(known) < 3:
        return 0.0
    start, limit, step = (float(tensor.numpy().item()) for tensor in known)
    return (limit - start) / step if step else 0.0


def _propagated_size(value: Value) -> int:
    """Return how many elements of a value onnx propagates: for an input, the largest rank."""
    if value._tensor is None:
        return 16
    return value._tensor.size if value._tensor.size <= DATA_ELEMENTS else 0


# --- operators whose inferred shapes may be wrong -------------------------------------------------

# From this opset version on, onnx merges both branches of an If; before, it takes one of them.
_IF_MERGES_BRANCHES: Final = 11


UNSOUND: Final[Aspect[Callable[[Node], bool]]] = Aspect("unsound")
"""Tests of nodes whose shapes onnx may infer wrongly."""


def onnx_inference_is_unsound(node: Node) -> bool:
    """Return whether onnx may infer a wrong shape for an output of a node."""
    test = UNSOUND.of(node)
    return test is not None and test(node)


@UNSOUND.rule("If")
def _takes_one_branch(node: Node) -> bool:
    return node.owner.opset() < _IF_MERGES_BRANCHES


@UNSOUND.rule("AveragePool", "LpPool", "MaxPool")
def _rounds_up(node: Node) -> bool:
    """onnx counts windows that start in the padding at the end; the operator ignores them."""
    return bool(node.attr("ceil_mode", 0))


@UNSOUND.rule("NonZero")
def _may_read_scalar(_: Node) -> bool:
    """onnx returns no row of indices for a scalar, and onnxruntime one.

    The rank of the operand may not be known yet.
    """
    return True


@UNSOUND.rule("Squeeze")
def _has_no_axes(node: Node) -> bool:
    """Empty axes mean no axis for onnx, and all axes of size 1 for onnxruntime."""
    given = node.attribute_protos().get("axes")
    if given is not None:
        return not given.ints
    axes = node.input(1)
    return axes is not None and axes.tensor is not None and axes.tensor.size == 0


@UNSOUND.rule("Reshape")
def _may_copy_dim(node: Node) -> bool:
    """A computed size may be 0, which copies a dim."""
    shape = node.input(1)
    return not node.attr("allowzero", 0) and shape is not None and shape.tensor is None
