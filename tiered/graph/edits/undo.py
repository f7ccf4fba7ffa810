"""The undo of each edit of the journal: it restores the same Node and Value objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tiered.graph.core.edit import Edit
from tiered.graph.core.use_lists import enter_function, leave_function
from tiered.graph.edits import interface_edits, nodes, operand_edits, value_edits
from tiered.graph.edits.content import write_content
from tiered.graph.edits.invalidate import forget_elements_of

if TYPE_CHECKING:
    import onnx

    from tiered.graph.core.graph import Function, Graph
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node
    from tiered.graph.core.types import ValueType
    from tiered.graph.core.value import Value


def undo_table(model: ModelState) -> dict[Edit, Callable[..., None]]:
    """Return the undo function of each edit; its arguments are those of the entry."""

    def add_function(function: Function) -> None:
        model.functions.remove(function)
        leave_function(function)

    def remove_function(function: Function, position: int) -> None:
        model.functions.insert(position, function)
        enter_function(function)

    return {
        Edit.ADD_NODE: nodes.detach,
        Edit.REMOVE_NODE: _remove_node,
        Edit.FOLD_TO_INITIALIZER: nodes.unfold,
        Edit.SET_INPUT: _set_input,
        Edit.SET_INPUTS: _set_inputs,
        Edit.SET_OUTPUTS: operand_edits.write_outputs,
        Edit.EXCHANGE_OUTPUTS: operand_edits.write_exchanged,
        Edit.SET_PROTO: operand_edits.write_proto,
        Edit.RENAME_NODE: operand_edits.write_named,
        Edit.MOVE_NODE: nodes.write_graph,
        Edit.ADD_CONSTANT: value_edits.leave_constant,
        Edit.REMOVE_CONSTANT: _remove_constant,
        Edit.SET_CONSTANT: value_edits.write_tensor,
        Edit.MOVE_CONSTANT: value_edits.write_constant_graph,
        Edit.SET_TYPE: _set_type,
        Edit.RENAME_VALUE: value_edits.write_name,
        Edit.SET_GRAPH_INPUTS: _set_graph_inputs,
        Edit.SET_GRAPH_OUTPUTS: interface_edits.write_graph_outputs,
        Edit.EXCHANGE_GRAPH_OUTPUT: interface_edits.write_exchanged_output,
        Edit.SET_DECLARATIONS: _set_declarations,
        Edit.SET_ANNOTATIONS: _set_annotations,
        Edit.ADD_FUNCTION: add_function,
        Edit.REMOVE_FUNCTION: remove_function,
        Edit.SET_OPSET: _set_opset,
        Edit.SET_IR_VERSION: _set_ir_version,
        Edit.FORGET_TYPES: _forget_types,
        Edit.EXCHANGE_CONTENT: write_content,
        Edit.SET_ORDER: nodes.write_places,
        Edit.SET_SKELETON: _set_skeleton,
    }


def _remove_node(node: Node, graph: Graph) -> None:
    nodes.attach(graph, node)


def _set_input(node: Node, index: int, before: Value | None, _after: Value | None) -> None:
    operand_edits.write_input(node, index, before)
    forget_elements_of(node)


def _set_inputs(node: Node, before: list[Value | None], proto: onnx.NodeProto) -> None:
    operand_edits.write_inputs(node, before, proto)
    forget_elements_of(node)


def _remove_constant(value: Value, graph: Graph) -> None:
    value_edits.enter_constant(graph, value)


def _set_type(value: Value, before: ValueType | None) -> None:
    value._type = before


def _set_graph_inputs(
    graph: Graph, before: list[Value], infos: list[Any], types: list[tuple[Value, Any]]
) -> None:
    interface_edits.write_graph_inputs(graph, before, infos)
    for value, value_type in types:
        value._type = value_type


def _set_declarations(graph: Graph, keep: int, before: list[Any], spoken: list[Any]) -> None:
    interface_edits.write_declarations(graph, keep, before)
    for value, info in spoken:
        value.declared = info


def _set_annotations(graph: Graph, before: list[Any]) -> None:
    graph.annotations[:] = before


def _set_opset(root: ModelState | Function, before: dict[str, int]) -> None:
    # All of them, because their order is part of the file.
    root.opset_imports.clear()
    root.opset_imports.update(before)


def _set_ir_version(model: ModelState, before: int) -> None:
    model.skeleton.ir_version = before


def _set_skeleton(root: Any, before: Any) -> None:
    root.skeleton = before


def _forget_types(model: ModelState, known: Any) -> None:
    model.types.restore(model, known)
