"""The kinds of edits of a model, and the entries of its journal."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, NamedTuple

Entry = tuple[Any, ...]

Mark = int
"""A position in the journal to undo to: the number of edits made before it."""


class Edit(IntEnum):
    """The kinds of edits; the comment shows the rest of the entry."""

    ADD_NODE = 0  # node
    REMOVE_NODE = 1  # node, graph
    SET_INPUT = 2  # node, index, value before, value after
    SET_INPUTS = 3  # node, inputs before, proto before
    SET_OUTPUTS = 4  # node, outputs before, proto before
    SET_PROTO = 5  # node, proto before (operator, attributes, metadata)
    RENAME_NODE = 6  # node, proto before
    MOVE_NODE = 7  # node, graph before
    ADD_CONSTANT = 8  # value
    REMOVE_CONSTANT = 9  # value, graph
    SET_CONSTANT = 10  # value, tensor before
    SET_TYPE = 11  # value, type before
    RENAME_VALUE = 12  # value, name before
    SET_GRAPH_INPUTS = 13  # graph, inputs before, infos before, types before
    SET_GRAPH_OUTPUTS = 14  # graph, outputs before, infos before
    ADD_FUNCTION = 15  # function
    REMOVE_FUNCTION = 16  # function, position
    SET_OPSET = 17  # model or function, imports before
    MOVE_CONSTANT = 18  # value, graph before
    SET_IR_VERSION = 19  # model, version before
    SET_DECLARATIONS = 20  # graph, number of unchanged ones, the others before, their values
    FORGET_TYPES = 21  # model, types before
    EXCHANGE_OUTPUTS = 22  # node, index, other node, other index
    EXCHANGE_CONTENT = 23  # model, content before
    FOLD_TO_INITIALIZER = 24  # node, graph, the output, its index, its type before
    SET_ORDER = 25  # graph, places before
    EXCHANGE_GRAPH_OUTPUT = 26  # graph, value after, value before, its places
    SET_SKELETON = 27  # model or graph, skeleton before
    SET_ANNOTATIONS = 28  # graph, quantization annotations before


NODE_EDITS = frozenset(
    {
        Edit.ADD_NODE,
        Edit.REMOVE_NODE,
        Edit.SET_INPUT,
        Edit.SET_INPUTS,
        Edit.SET_OUTPUTS,
        Edit.SET_PROTO,
        Edit.RENAME_NODE,
        Edit.MOVE_NODE,
        Edit.EXCHANGE_OUTPUTS,
        Edit.FOLD_TO_INITIALIZER,
    }
)
"""The edits whose subject is a node."""

INTERFACE_EDITS = frozenset(
    {Edit.SET_GRAPH_INPUTS, Edit.SET_GRAPH_OUTPUTS, Edit.EXCHANGE_GRAPH_OUTPUT}
)
"""The edits of the inputs and outputs of a graph."""

RENAMES: Final = frozenset({Edit.RENAME_NODE, Edit.RENAME_VALUE})
"""The edits that no pattern can notice."""

OPERATOR_EDITS: Final = frozenset(
    {
        Edit.ADD_NODE,
        Edit.REMOVE_NODE,
        Edit.SET_PROTO,
        Edit.MOVE_NODE,
        Edit.ADD_FUNCTION,
        Edit.REMOVE_FUNCTION,
        Edit.EXCHANGE_CONTENT,
        Edit.FOLD_TO_INITIALIZER,
    }
)
"""The edits after which a graph may have other operators, or another number of nodes."""

KEEPS_OPERATORS: Final = frozenset(Edit) - OPERATOR_EDITS
"""The edits that leave the operators of all graphs as they are."""


class Stamp(NamedTuple):
    """A moment of a journal; it stays valid when edits are undone later."""

    length: int
    undos: int
