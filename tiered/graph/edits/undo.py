"""How each edit of the journal is undone: the same Node and Value objects come back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tiered.graph.core.journal import Edit
from tiered.graph.core.use_lists import enter_function, leave_function
from tiered.graph.edits.content import write_content
from tiered.graph.edits.invalidate import forget_elements_of

if TYPE_CHECKING:
    import onnx

    from tiered.graph.core.graph import Function, Graph
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node
    from tiered.graph.core.tensor import Tensor
    from tiered.graph.core.types import ValueType
    from tiered.graph.core.value import Value


def undo_table(model: ModelState) -> dict[Edit, Callable[..., None]]:
    """Return what undoes each kind of edit of a model."""

    def add_node(node: Node) -> None:
        node.owner._detach(node)

    def remove_node(node: Node, graph: Graph) -> None:
        graph._attach(node)

    def settle(node: Node, graph: Graph, value: Value, index: int, before: Any) -> None:
        graph._unsettle(node, value, index)
        value._type = before

    def set_input(node: Node, index: int, before: Value | None, _after: Value | None) -> None:
        node.owner._write_input(node, index, before)
        forget_elements_of(node)

    def set_inputs(node: Node, before: list[Value | None], proto: onnx.NodeProto) -> None:
        node.owner._write_inputs(node, before, proto)
        forget_elements_of(node)

    def set_outputs(node: Node, before: list[Value | None], proto: onnx.NodeProto) -> None:
        node.owner._write_outputs(node, before, proto)

    def exchange_outputs(one: Node, index: int, other: Node, place: int) -> None:
        one.owner._write_exchanged(one, index, other, place)

    def set_proto(node: Node, before: onnx.NodeProto) -> None:
        node.owner._write_proto(node, before)

    def rename_node(node: Node, before: onnx.NodeProto) -> None:
        node.owner._write_named(node, before)

    def move_node(node: Node, before: Graph) -> None:
        node.owner._write_graph(node, before)

    def add_constant(value: Value) -> None:
        value.owner._leave_constant(value)

    def remove_constant(value: Value, graph: Graph) -> None:
        graph._enter_constant(value)

    def set_constant(value: Value, before: Tensor | None) -> None:
        value.owner._write_tensor(value, before)

    def move_constant(value: Value, before: Graph) -> None:
        value.owner._write_constant_graph(value, before)

    def set_type(value: Value, before: ValueType | None) -> None:
        value._type = before

    def rename_value(value: Value, before: str) -> None:
        value.owner._write_name(value, before)

    def set_graph_inputs(
        graph: Graph, before: list[Value], infos: list[Any], types: list[tuple[Value, Any]]
    ) -> None:
        graph._write_graph_inputs(before, infos)
        for value, value_type in types:
            value._type = value_type

    def set_graph_outputs(graph: Graph, before: list[Value], infos: list[Any]) -> None:
        graph._write_graph_outputs(before, infos)

    def set_declarations(graph: Graph, keep: int, before: list[Any], spoken: list[Any]) -> None:
        graph._write_declarations(keep, before)
        for value, info in spoken:
            value.declared = info

    def forget_types(subject: ModelState, known: Any) -> None:
        subject.types.restore(subject, known)

    def add_function(function: Function) -> None:
        model.functions.remove(function)
        leave_function(function)

    def remove_function(function: Function, position: int) -> None:
        model.functions.insert(position, function)
        enter_function(function)

    def set_opset(root: ModelState | Function, before: dict[str, int]) -> None:
        # All of them, because their order is part of the file.
        root.opset_imports.clear()
        root.opset_imports.update(before)

    def set_ir_version(subject: ModelState, before: int) -> None:
        subject.skeleton.ir_version = before

    return {
        Edit.ADD_NODE: add_node,
        Edit.REMOVE_NODE: remove_node,
        Edit.SETTLE: settle,
        Edit.SET_INPUT: set_input,
        Edit.SET_INPUTS: set_inputs,
        Edit.SET_OUTPUTS: set_outputs,
        Edit.EXCHANGE_OUTPUTS: exchange_outputs,
        Edit.SET_PROTO: set_proto,
        Edit.RENAME_NODE: rename_node,
        Edit.MOVE_NODE: move_node,
        Edit.ADD_CONSTANT: add_constant,
        Edit.REMOVE_CONSTANT: remove_constant,
        Edit.SET_CONSTANT: set_constant,
        Edit.MOVE_CONSTANT: move_constant,
        Edit.SET_TYPE: set_type,
        Edit.RENAME_VALUE: rename_value,
        Edit.SET_GRAPH_INPUTS: set_graph_inputs,
        Edit.SET_GRAPH_OUTPUTS: set_graph_outputs,
        Edit.ADD_FUNCTION: add_function,
        Edit.REMOVE_FUNCTION: remove_function,
        Edit.SET_OPSET: set_opset,
        Edit.SET_IR_VERSION: set_ir_version,
        Edit.SET_DECLARATIONS: set_declarations,
        Edit.FORGET_TYPES: forget_types,
        Edit.EXCHANGE_CONTENT: write_content,
    }
