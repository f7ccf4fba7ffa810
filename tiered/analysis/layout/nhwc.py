"""Channels-last operators as local functions, for operators that ONNX defines channels first.

`tiered.nhwc::Conv(X, W, B)` reads and makes images with channels last, and its kernel has the same
order (OHWI). The function's body is the standard operator between Transposes, so every runtime can
run it; a target with a native kernel recognises the call. Functions for images of other ranks than
4 are named after their spatial dims: `Conv1D`, `Conv3D`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final

import onnx

from tiered.analysis.axes.axis_map import whole
from tiered.analysis.layout.axis_propagation import AxisPropagation, Labels, Permuted, rank_of
from tiered.analysis.layout.permutation import Permutation, inverse, permuted
from tiered.graph import Graph, Model, Node, Value
from tiered.graph.core.schema import operators_of
from tiered.rewriter import Skip
from tiered.support.errors import UsageError, did_you_mean

DOMAIN: Final = "tiered.nhwc"
KEEP: Final = "tiered.keep"

KERNEL_SLOT: Final = {"Conv": 1, "ConvInteger": 1, "ConvTranspose": 1, "QLinearConv": 3}
"""The operand that is a kernel: its last dims are spatial too."""

IMAGE_OPERATORS: Final = (
    "AveragePool", "BatchNormalization", "Conv", "ConvInteger", "ConvTranspose", "DepthToSpace",
    "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "GroupNormalization",
    "InstanceNormalization", "LRN", "LpPool", "MaxPool", "QLinearConv", "Resize", "SpaceToDepth",
)  # fmt: skip
"""Operators with channels in axis 1, by definition or in all runtimes."""

VECTOR_SLOTS: Final = {"Resize": (2, 3)}
"""Operands with one number for each axis: scales and sizes; a call has one of them."""

MICROSOFT: Final = "com.microsoft"

CHANNELS_LAST: Final = {"channels_last": 1}

NATIVE: Final[Mapping[tuple[str, str], tuple[str, Mapping[str, int]]]] = {
    ("", "MaxPool"): ("NhwcMaxPool", {}),
    ("", "QLinearConv"): ("QLinearConv", CHANNELS_LAST),
    (MICROSOFT, "QLinearAveragePool"): ("QLinearAveragePool", CHANNELS_LAST),
    (MICROSOFT, "QLinearGlobalAveragePool"): ("QLinearGlobalAveragePool", CHANNELS_LAST),
}
"""Operators of com.microsoft with channels last, and the attributes that select this."""

Supports = Callable[[str, str, "int | None"], bool]
"""Returns whether a target has an operator of a domain, for data of a dtype."""

DesiredLayouts = Mapping[str, str]
"""NHWC or NCHW by operator, or by `Operator@glob of node names`."""

OnSkip = Callable[[Node | None, Skip], None]
"""Called with a node and the reason why it is not converted."""


def checked_layouts(
    model: Model, desired_layouts: DesiredLayouts, on_skip: OnSkip
) -> DesiredLayouts:
    """Return the layouts that a user asks for; none if the model cannot have functions.

    Args:
        model: the model to convert.
        desired_layouts: NHWC or NCHW by operator, or by `Operator@glob of node names`.
        on_skip: called if the model cannot have functions.

    Raises:
        UsageError: a layout is neither NCHW nor NHWC, or an operator does not exist.
    """
    unknown = sorted(set(desired_layouts.values()) - {"NCHW", "NHWC"})
    if unknown:
        raise UsageError(f"desired_layouts: {unknown[0]!r} is no layout; NCHW and NHWC are")
    _check_operators(model, {entry.partition("@")[0] for entry in desired_layouts})
    _check_names(model, desired_layouts)
    if "NHWC" in desired_layouts.values() and model.ir_version < 8:
        on_skip(None, Skip("before IR 8 no NHWC functions: tiered convert --ir 8"))
        return {}
    return desired_layouts


def _check_operators(model: Model, names: set[str]) -> None:
    if not names:
        return
    known = operators_of("") | {node.op_type for graph in model.graphs() for node in graph.nodes}
    for name in sorted(names - known):
        hint = did_you_mean(name, known)
        raise UsageError(f"desired_layouts: there is no operator {name!r}{hint}")


def _check_names(model: Model, entries: Iterable[str]) -> None:
    for entry in entries:
        op_type, _, names = entry.partition("@")
        if not names:
            continue
        labels = {node.label for graph in model.graphs() for node in graph.nodes_of(op_type)}
        if not any(fnmatchcase(label, names) for label in labels):
            hint = did_you_mean(names, labels)
            raise UsageError(f"desired_layouts: no {op_type} has the name {names!r}{hint}")


def channels_last(rank: int) -> Permutation:
    """Return the permutation that moves axis 1 to the end."""
    return (0, *range(2, rank), 1)


def layout_wanted(node: Node, wanted: DesiredLayouts) -> str | None:
    """Return the layout that the user asks for; None if the node is not named."""
    if node.domain and (node.domain, node.op_type) not in NATIVE:
        return None
    for entry, layout in wanted.items():
        op_type, _, names = entry.partition("@")
        if names and op_type == node.op_type and fnmatchcase(node.label, names):
            return layout
    return wanted.get(node.op_type)


def standard_only(op_type: str, domain: str, dtype: int | None) -> bool:
    """Default target: supports standard ONNX operators only."""
    return not domain


def with_channels_last(
    node: Node,
    propagation: AxisPropagation | Skip,
    wanted: DesiredLayouts,
    supports: Supports = standard_only,
) -> AxisPropagation | Skip:
    """Return a propagation that also allows channels last, if the node can have them.

    A node with channels last is an operator of the target or a local function. If the user asks for
    channels last for some operators, others may follow unless they are asked for channels first.
    """
    rank = rank_of(node)
    if "NHWC" not in wanted.values() or layout_wanted(node, wanted) == "NCHW":
        return propagation
    if rank is None or rank < 3 or node.has_references or node.is_pinned or len(node.outputs) > 1:
        return propagation
    write = _writer(node, rank, supports)
    if write is None:
        return propagation
    labels, last = whole(rank), permuted(whole(rank), channels_last(rank))
    inputs: list[Labels | None] = [labels, *(None for _ in node.inputs[1:])]
    slot = KERNEL_SLOT.get(node.op_type) if write is _write_function else None
    if slot is not None:
        if rank_of(node, slot) != rank:
            return propagation
        # A kernel has the order of the images, so its producer may make it in that order.
        inputs[slot] = labels
    standard = None if isinstance(propagation, Skip) else propagation

    def allows(order: Labels) -> bool:
        return order == last or (standard is not None and standard.allows(order))

    either = partial(_write_either, last, write, standard)
    return AxisPropagation(tuple(inputs), (labels,), either, allows=allows)


Write = Callable[[Permuted], Sequence[Value]]


def _writer(node: Node, rank: int, supports: Supports) -> Write | None:
    """Return the function that writes a node with channels last, None if there is none."""
    native, dtype = NATIVE.get((node.domain, node.op_type)), node.given(0).dtype
    if native is not None and supports(native[0], MICROSOFT, dtype):
        return None if node.attr("channels_last") else partial(_write_native, *native)
    if node.domain or node.op_type not in IMAGE_OPERATORS:
        return None
    if node.op_type == "Resize" and not _is_plain_resize(node):
        return None
    name = _name(node, rank)
    if not supports(node.op_type, "", None) and not supports(name, DOMAIN, None):
        return None  # neither order is taken: what replaces the operator has any
    return _write_function


def _write_either(
    last: Labels, write: Write, standard: AxisPropagation | None, op: Permuted
) -> Sequence[Value]:
    if op.order == last:
        return write(op)
    assert standard is not None
    return standard.write(op)


def _write_native(name: str, flags: Mapping[str, int], op: Permuted) -> Sequence[Value]:
    node = op.node
    attributes = {**node.attributes, **flags}
    # It only concerns the indices, an absent output.
    attributes.pop("storage_order", None)
    build = getattr(op.graph.op(MICROSOFT), name)
    return (build(op.operand(0), *node.inputs[1:], name=node.name, **attributes),)


def _is_plain_resize(node: Node) -> bool:
    """Return whether a Resize interpolates with scales or sizes of all axes.

    A nearest Resize needs no function: it can have any axis order. Before opset 13 the region of
    interest cannot be omitted.
    """
    mode, crop = node.attr("mode"), node.attr("coordinate_transformation_mode", b"")
    return (
        node.owner.opset() >= 13
        and mode not in ("nearest", b"nearest")
        and crop not in ("tf_crop_and_resize", b"tf_crop_and_resize")
        and not node.attr("axes", None)
        and len(_vectors(node)) == 1
    )


def _vectors(node: Node) -> list[int]:
    """Return the operands with one number for each axis; an empty operand counts as absent."""
    operands = {slot: node.input(slot) for slot in VECTOR_SLOTS.get(node.op_type, ())}
    return [slot for slot, value in operands.items() if value is not None and value.dim(0) != 0]


def _write_function(op: Permuted) -> Sequence[Value]:
    last = op.order
    node, graph = op.node, op.graph
    inputs: list[Value | None] = [op.operand(0), *node.inputs[1:]]
    slot = KERNEL_SLOT.get(node.op_type)
    if slot is not None:
        inputs[slot] = op.operand(slot)
    if node.op_type in VECTOR_SLOTS:
        inputs[1:] = [op.vector(slot, whole(len(last))) for slot in _vectors(node)]
    name = declare(graph, node, len(last))
    function = graph.model.function(DOMAIN, name)
    assert function is not None
    result: Value = graph.op(DOMAIN).named(name)(*inputs, name=node.name, **node.attributes)
    called = result.producer
    assert called is not None
    # onnx.reference wants an operand, present or absent, for each input.
    absent = len(function.inputs) - len(called.inputs)
    graph.set_inputs(called, [*called.inputs, *[None] * absent])
    return (result,)


# --- the functions --------------------------------------------------------------------------------


def declare(graph: Graph, node: Node, rank: int) -> str:
    """Return the name of the channels-last function of an operator; add it if it is new."""
    model, root, name = graph.model, graph.root, _name(node, rank)
    if model.function(DOMAIN, name) is None:
        function = _function(node, name, rank)
        if model.ir_version >= 10:
            function.metadata_props.add(key=KEEP, value="a target may have a kernel for it")
        assert isinstance(model, Model)
        model.add(function)
    if not root.opset(DOMAIN):
        model.set_opset(DOMAIN, 1, root)
    return name


def _name(node: Node, rank: int) -> str:
    name = node.op_type if rank == 4 else f"{node.op_type}{rank - 2}D"
    return f"{name}To" if node.op_type == "Resize" and _vectors(node) != [2] else name


def _function(node: Node, name: str, rank: int) -> onnx.FunctionProto:
    schema = node.schema
    assert schema is not None
    first, last = inverse(channels_last(rank)), channels_last(rank)
    inputs = [formal.name for formal in schema.inputs]
    names = list(inputs)
    nodes = []
    for slot in (0, *filter(None, [KERNEL_SLOT.get(node.op_type)])):
        names[slot] = f"{inputs[slot]}_first"
        nodes.append(onnx.helper.make_node("Transpose", [inputs[slot]], [names[slot]], perm=first))
    if node.op_type in VECTOR_SLOTS:
        given = _vectors(node)
        for slot in given:
            names[slot] = f"{inputs[slot]}_first"
            index = onnx.helper.make_node("Constant", [], ["first_axes"], value_ints=first)
            sort = onnx.helper.make_node("Gather", [inputs[slot], "first_axes"], [names[slot]])
            nodes += [index, sort]
        names = [name if slot in (0, *given) else "" for slot, name in enumerate(names)]
        inputs = [inputs[slot] for slot in (0, *given)]
    standard = onnx.helper.make_node(node.op_type, names, ["first"])
    for attribute in schema.attributes.values():
        declared: Any = attribute.type
        kind = onnx.AttributeProto.AttributeType.Value(declared.name)
        standard.attribute.add(name=attribute.name, ref_attr_name=attribute.name, type=kind)
    nodes += [standard, onnx.helper.make_node("Transpose", ["first"], ["Y"], perm=last)]
    opsets = [onnx.helper.make_opsetid("", node.owner.opset())]
    attributes = list(schema.attributes)
    return onnx.helper.make_function(DOMAIN, name, inputs, ["Y"], nodes, opsets, attributes)
