"""`tvm.ir.register_op_attr`: predicates of targets, for `AnnotateTarget`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from tiered.analysis.layout.rules import layout_rule
from tiered.compat.tvm import pattern_tables as contrib
from tiered.compat.tvm.expressions.relay_operators import PREFIXES, Namespace, function_of, get
from tiered.compat.tvm.patterns.operator_names import operators_of
from tiered.compat.tvm.running import devices as annotation
from tiered.extensions.partition import OperatorSupport, create_op_support
from tiered.extensions.partition.supports import COMPOSITES
from tiered.graph import Graph, Node
from tiered.support.errors import UsageError

__all__ = ["annotation", "contrib", "get", "register", "register_op_attr", "registered_support"]

_TARGET: Final = "target."
_LAYOUT: Final = ("FInferCorrectLayout", "FTVMInferCorrectLayout")
_PREDICATES: dict[str, dict[str, Callable[..., Any] | bool]] = {}
"""By target and operator: whether the target takes a node."""


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Register a predicate of a target, or the layout rule of a custom operator.

        @tvm.ir.register_op_attr("nn.relu", "target.npu")
        def relu(expr):
            return expr.inputs[0].rank == 4

    Args:
        op_name: the operator, by TVM's name or ONNX's: `nn.relu`, `Relu`, `my.domain::Scale`.
        attr_key: `target.NAME`, of a function of a node that returns whether the target takes it,
            or, as in old versions, of its attributes and inputs; or `FInferCorrectLayout`, of a
            rule as `tiered.layout_rule` takes it.
        value: the function; without it, the result is a decorator.
        level: accepted, and without effect: the last one counts.

    Raises:
        UsageError: no operator has this name, or the attribute has no equivalent.
    """
    names = operators_of(op_name)

    def add(function: Any) -> Any:
        if attr_key in _LAYOUT:
            for name in names:
                domain, _, op_type = name.rpartition("::")
                layout_rule(op_type, domain=domain)(function)
        elif attr_key.startswith(_TARGET) and len(attr_key) > len(_TARGET):
            table = _PREDICATES.setdefault(attr_key.removeprefix(_TARGET), {})
            table.update(dict.fromkeys(names, function))
        else:
            raise UsageError(
                f"register_op_attr: {attr_key!r} has no equivalent; expected {_TARGET}NAME or "
                f"{_LAYOUT[0]} (tiered.rewrite(..., legalizes=) declares a legalization)"
            )
        return function

    return add if value is None else add(value)


register = register_op_attr


def registered_support(target: str) -> OperatorSupport | None:
    """Return the support of a target by its registered predicates; None if it has none.

    It takes its own composites too: `npu.conv_relu` of `npu`.
    """
    table = _PREDICATES.get(target)
    if table is None:
        return None

    def takes(graph: Graph, node: Node) -> bool:
        if node.domain == COMPOSITES:
            return node.op_type.startswith(f"{target}.")
        predicate = table.get(node.operator, False)
        if isinstance(predicate, bool):
            return predicate
        if len(inspect.signature(predicate).parameters) == 2:
            return bool(predicate(node.attributes, node.inputs))
        return bool(predicate(node))

    return create_op_support(takes)


def __getattr__(name: str) -> Any:
    """Return a function of relay: `relay.op.add`, `relay.op.nn.relu`."""
    if name.startswith("__"):
        raise AttributeError(name)
    return Namespace(name) if name in PREFIXES else function_of(name)
