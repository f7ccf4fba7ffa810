"""The nodes of `torch.fx`: inputs, weights, operators, outputs of operators, and the output."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol

import numpy as np
from onnx import defs, helper

from tiered.graph import Graph, Node as OnnxNode, Value
from tiered.graph.core.schema import operators_of
from tiered.support.amounts import counted
from tiered.support.errors import ModelError, UsageError, did_you_mean

CALL: Final = "call_function"
PLACEHOLDER: Final = "placeholder"
GET_ATTR: Final = "get_attr"
OUTPUT: Final = "output"


class FxTarget(str):
    """The operator of a node, `Relu` or `com.microsoft::Gelu`.

    It is equal to a function of its name: `node.target == torch.relu`.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) if isinstance(other, str) else self == operator_of(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    @property
    def domain(self) -> str:
        """The domain, empty for ONNX's own."""
        return self.rpartition("::")[0]

    @property
    def op_type(self) -> str:
        """The operator without its domain."""
        return self.rpartition("::")[2]


_ATEN: Final = re.compile(r"\baten\W+(\w+)")
"""The name of an overload of torch: `aten.add.Tensor`, `aten::add`."""

_SYNONYMS: Final = {
    **dict.fromkeys(("alias", "clone", "detach", "lift_fresh_copy"), "Identity"),
    **dict.fromkeys(("bmm", "matmul", "mm"), "MatMul"),
    "divide": "Div",
    "eq": "Equal",
    "ge": "GreaterOrEqual",
    "gt": "Greater",
    "le": "LessOrEqual",
    "logical_and": "And",
    "logical_not": "Not",
    "logical_or": "Or",
    "logical_xor": "Xor",
    "lt": "Less",
    "maximum": "Max",
    "minimum": "Min",
    "multiply": "Mul",
    "negative": "Neg",
    "subtract": "Sub",
    "truediv": "Div",
}
"""Functions of torch and Python with the operands of the operator, by another name."""

_OTHER_OPERANDS: Final = {
    "_native_batch_norm_legit_no_training": "BatchNormalization",
    "_to_copy": "Cast",
    "addmm": "Gemm",
    "amax": "ReduceMax",
    "amin": "ReduceMin",
    "avg_pool2d": "AveragePool",
    "batch_norm": "BatchNormalization",
    "cat": "Concat",
    "clamp": "Clip",
    "concat": "Concat",
    "conv1d": "Conv",
    "conv2d": "Conv",
    "conv3d": "Conv",
    "convolution": "Conv",
    "embedding": "Gather",
    "index_select": "Gather",
    "layer_norm": "LayerNormalization",
    "linear": "Gemm",
    "max": "Max",
    "max_pool2d": "MaxPool",
    "mean": "ReduceMean",
    "min": "Min",
    "native_layer_norm": "LayerNormalization",
    "permute": "Transpose",
    "prod": "ReduceProd",
    "sum": "ReduceSum",
    "view": "Reshape",
}
"""Functions of torch that have other operands, or others in addition, than the operator has."""


def operator_of(target: object) -> str:
    """Return the operator that a target means; empty if it means none.

    A function or an overload of torch means the operator of its name: `aten.relu.default`, Relu.
    """
    if isinstance(target, str):
        return target
    name = _name_of(target)
    known = _OTHER_OPERANDS.get(name) or _SYNONYMS.get(name.strip("_"))
    return known or _OPERATORS.get(name.replace("_", "").lower(), "")


def _name_of(target: object) -> str:
    """Return the name of a function: `relu` of `aten.relu.default` and of `torch.nn.ReLU`."""
    name = str(getattr(target, "__name__", ""))
    found = _ATEN.search(str(target)) or _ATEN.search(name)
    return found[1] if found else name.partition(".")[0] or str(target).rpartition(".")[2]


_OPERATORS: Final = {
    schema.name.lower(): schema.name
    for schema in sorted(defs.get_all_schemas(), key=lambda schema: schema.domain, reverse=True)
}
"""The operators by their names in small letters; ONNX's own come before those of other domains."""


class NodeGraph(Protocol):
    """What a node asks of its graph: `FxGraph`."""

    @property
    def owner(self) -> Graph: ...
    def node_for(self, subject: OnnxNode | Value | Graph) -> FxNode: ...
    def node_of(self, value: Value) -> FxNode: ...
    def has_items(self, node: OnnxNode) -> bool: ...
    def results_of(self, node: FxNode) -> list[Value]: ...
    def values_of(self, args: Iterable[Any]) -> list[Value | None]: ...
    def users_of(self, *values: Value) -> dict[FxNode, None]: ...
    def notes_of(self, node: FxNode) -> dict[str, Any]: ...
    def beside(self, node: FxNode, step: int) -> FxNode: ...
    def return_instead(self, old: Value, new: Value) -> None: ...
    def replace_uses(
        self, node: FxNode, other: FxNode, chosen: Callable[[FxNode], bool]
    ) -> list[FxNode]: ...


class FxNode:
    """A node by the names of torch.fx. A graph has one for each thing of the model.

    Attributes:
        graph: the graph that it belongs to.
        subject: a `tiered.Node`, the `Value` of an input, a weight or one of several outputs, or
            the graph itself, of its output.
    """

    __slots__ = ("__weakref__", "graph", "subject")

    def __init__(self, graph: NodeGraph, subject: OnnxNode | Value | Graph) -> None:
        self.graph = graph
        self.subject = subject

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FxNode) and other.subject is self.subject

    def __hash__(self) -> int:
        return hash(self.subject)

    def __repr__(self) -> str:
        return self.name

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the `tiered.Node` or `Value` that it stands for."""
        if name in FxNode.__slots__:
            raise AttributeError(name)
        return getattr(self.subject, name)

    @property
    def op(self) -> str:
        """The kind of the node: placeholder, get_attr, call_function or output."""
        if isinstance(self.subject, Graph):
            return OUTPUT
        if isinstance(self.subject, OnnxNode) or self.subject.producer is not None:
            return CALL
        return PLACEHOLDER if self.subject.is_graph_input else GET_ATTR

    @property
    def name(self) -> str:
        """The name; an operator, and the output, have another one than each other node."""
        if isinstance(self.subject, Graph):
            return self._free(OUTPUT)
        if isinstance(self.subject, Value):
            return self.subject.name
        node, name, graph = self.subject, self.subject.label, self.graph.owner
        value = graph.values.get(name)
        if value is not None and self.graph.node_of(value) != self:
            return self._free(f"{node.op_type}_{name}")
        if not node.name or graph.model.node_names.is_unique(name):
            return name
        # The names of a file may be those of several nodes: all but the first have others.
        before = sum(each.name == name and each.id < node.id for each in graph.nodes)
        return self._free(f"{name}_{before}") if before else name

    def _free(self, name: str) -> str:
        model = self.graph.owner.model
        while (found := model.names.fresh(name)) in model.node_names:
            name = model.node_names.fresh(found)
        return found

    @property
    def target(self) -> Any:
        """The operator, or the name of an input or a weight."""
        if isinstance(self.subject, OnnxNode):
            node = self.subject
            return FxTarget(node.operator)
        if isinstance(self.subject, Graph):
            return OUTPUT
        return operator.getitem if self.op == CALL else self.name

    @target.setter
    def target(self, target: object) -> None:
        node = self._operator("target")
        wanted = FxTarget(needed_operator(target, node.owner))
        node.owner.set_operator(node, wanted.op_type, wanted.domain)

    @property
    def args(self) -> tuple[Any, ...]:
        """The operands, None for an absent one; of the output a tuple with the tuple of results."""
        if isinstance(self.subject, Graph):
            return (tuple(self.graph.node_of(value) for value in self.subject.outputs),)
        if isinstance(self.subject, OnnxNode):
            values = self.subject.inputs
            return tuple(None if v is None else self.graph.node_of(v) for v in values)
        if self.subject.producer is not None:
            return (self.graph.node_for(self.subject.producer), self.subject.index)
        return ()

    @args.setter
    def args(self, args: Iterable[Any]) -> None:
        if isinstance(self.subject, Graph):
            self._return(args)
            return
        node = self._operator("args")
        node.owner.set_inputs(node, self.graph.values_of(args))

    def _return(self, args: Iterable[Any]) -> None:
        """Exchange the results of the graph."""
        (results,) = args
        several = results if isinstance(results, tuple | list) else (results,)
        graph, wanted = self.graph.owner, self.graph.values_of(several)
        if len(wanted) != len(graph.outputs):
            raise UsageError(
                f"the graph has {counted(len(graph.outputs), 'output')}, not {len(wanted)}: "
                "tiered.Graph.add_output and remove_output change their number"
            )
        for old, new in zip(graph.outputs, wanted, strict=True):
            if new is None:
                raise UsageError("an output of a graph is a value, not None")
            if old is not new:
                self.graph.return_instead(old, new)

    @property
    def kwargs(self) -> Mapping[str, Any]:
        """The attributes of an operator; to change one, set all, as in torch.fx."""
        found = self.subject.attributes if isinstance(self.subject, OnnxNode) else {}
        return MappingProxyType(found)

    @kwargs.setter
    def kwargs(self, kwargs: Mapping[str, Any]) -> None:
        node = self._operator("kwargs")
        for name in {**node.attributes, **kwargs}:
            node.owner.set_attribute(node, name, kwargs.get(name))

    @property
    def meta(self) -> dict[str, Any]:
        """Notes that are not saved; `val` is the value, with its `shape` and `dtype`."""
        notes = self.graph.notes_of(self)
        if self.op != OUTPUT:
            values = self.graph.results_of(self)
            notes["val"] = values[0] if len(values) == 1 else values
        return notes

    @meta.setter
    def meta(self, meta: Mapping[str, Any]) -> None:
        notes = self.graph.notes_of(self)
        kept = dict(meta)  # it may be these very notes
        notes.clear()
        notes.update(kept)

    @property
    def users(self) -> dict[FxNode, None]:
        """The nodes that read the result, and the output if the graph returns it."""
        if isinstance(self.subject, Graph):
            return {}
        if isinstance(self.subject, OnnxNode) and self.graph.has_items(self.subject):
            items = (value for value in self.subject.outputs if value is not None)
            return {self.graph.node_for(value): None for value in items if value.is_used}
        return self.graph.users_of(*self.graph.results_of(self))

    @property
    def all_input_nodes(self) -> list[FxNode]:
        """The nodes that it reads, each once."""
        flat = self.args[0] if self.op == OUTPUT else self.args
        return list(dict.fromkeys(arg for arg in flat if isinstance(arg, FxNode)))

    @property
    def next(self) -> FxNode:
        """The node after this one."""
        return self.graph.beside(self, 1)

    @property
    def prev(self) -> FxNode:
        """The node before this one."""
        return self.graph.beside(self, -1)

    def replace_all_uses_with(
        self,
        replace_with: FxNode,
        delete_user_cb: Callable[[FxNode], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[FxNode]:
        """Let the users of the result use that of another node, and return these users.

        An output of the graph keeps its name.

        Args:
            replace_with: the other node.
            delete_user_cb: called with each user; one with a false result stays.
            propagate_meta: whether the other node gets the notes.
        """
        if propagate_meta:
            self.graph.notes_of(replace_with).update(self.graph.notes_of(self))
        return self.graph.replace_uses(self, replace_with, delete_user_cb)

    def replace_input_with(self, old_input: FxNode, new_input: FxNode) -> None:
        """Read another node in place of one."""
        args = self.args[0] if self.op == OUTPUT else self.args
        made = tuple(new_input if arg == old_input else arg for arg in args)
        self.args = (made,) if self.op == OUTPUT else made

    def update_arg(self, idx: int, arg: Any) -> None:
        """Exchange one operand."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Set one attribute."""
        node = self._operator("kwargs")
        node.owner.set_attribute(node, key, arg)

    def append(self, x: FxNode) -> None:
        """Do nothing: nodes are in topological order."""

    prepend = append

    def format_node(self) -> str:
        """Return the node as one line of text."""
        operands, head = ", ".join(map(str, self.args)), f"{self.op}[target={self.target}]"
        return f"%{self.name} : [num_users={len(self.users)}] = {head}({operands})"

    def _operator(self, what: str) -> OnnxNode:
        if not isinstance(self.subject, OnnxNode):
            raise ModelError(f"{self.op} {self.name!r} has no {what} to set")
        return self.subject


def needed_operator(target: object, graph: Graph) -> str:
    """Return the operator that a target means, for a node that is made in a graph.

    Raises:
        UsageError: it means none, or one that onnx lacks in a domain that it knows, or is a
            function with other operands than the operator has.
    """
    found = operator_of(target)
    if not found:
        raise UsageError(f"{target!r} is no operator of ONNX: expected a name, such as 'Relu'")
    if not isinstance(target, str) and _name_of(target) in _OTHER_OPERANDS:
        raise UsageError(
            f"{target!r} has other operands than {found}: give the name {found!r}, and operands "
            "and attributes as ONNX has them"
        )
    name = FxTarget(found)
    known = operators_of(name.domain)
    is_function = graph.model.function(name.domain, name.op_type) is not None
    # What a node of the model has already is not asked for by name.
    if known and name.op_type not in known and not is_function and type(target) is not FxTarget:
        raise UsageError(f"there is no operator {found!r}{did_you_mean(name.op_type, known)}")
    return found


def number_like(number: Any, first: Value | None) -> np.ndarray[Any, Any]:
    """Return a number as an array of the dtype of an operand, of its own without one."""
    array = np.asarray(number)
    if array.dtype.kind == "f" and array.ndim == 0:
        array = array.astype(np.float32)
    if first is None or first.dtype is None or isinstance(number, np.ndarray):
        return array
    return array.astype(helper.tensor_dtype_to_np_dtype(first.dtype))
