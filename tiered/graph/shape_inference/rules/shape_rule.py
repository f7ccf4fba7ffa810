"""The registry of shape rules: of each operator, one rule for types and one for values at most."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar, overload

from tiered.graph.core.schema import schema_of
from tiered.graph.opset.aspect import Aspect
from tiered.support.errors import UsageError
from tiered.support.loading import is_plain
from tiered.support.operator_name import operator_name

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.types import TensorType, ValueType
    from tiered.graph.core.value import Elements

TypeRule = Callable[["Node"], "ValueType | Sequence[ValueType | None] | None"]
"""A type rule that reads the node alone; its operands may have any type, or none yet known."""

OperandRule = Callable[["Node", "list[TensorType]"], "TensorType | Sequence[TensorType] | None"]
"""A type rule that also takes the types of the operands present; all are dense tensors."""

ValueRule = Callable[["Node"], "Elements | Sequence[Elements | None] | None"]
"""A value rule: it returns the elements of the outputs, as `Value.elements` has them."""

AnyTypeRule = TypeVar("AnyTypeRule", bound="TypeRule | OperandRule")
AnyValueRule = TypeVar("AnyValueRule", bound=ValueRule)

INAPPLICABLE: Final = (
    AttributeError, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError
)  # fmt: skip
"""The errors by which a rule may decline a node: it says nothing about its outputs."""


class RegisteredTypeRule(NamedTuple):
    """A type rule and how it is called.

    Attributes:
        rule: the function.
        takes_operands: whether it is an `OperandRule`.
        ask_onnx: whether onnx may know dims that the rule leaves open.
    """

    rule: Callable[..., ValueType | Sequence[ValueType | None] | None]
    takes_operands: bool
    ask_onnx: bool


def _registered(rule: Callable[..., Any], *, ask_onnx: bool = False) -> RegisteredTypeRule:
    return RegisteredTypeRule(rule, _parameters(rule) > 1, ask_onnx)


TYPES: Final = Aspect("type", "shape_rule", entry=_registered)
VALUES: Final[Aspect[ValueRule]] = Aspect("value", "shape_rule")


@overload
def shape_rule(
    *op_types: str, domain: str = ..., infers: Literal["types"] = ..., ask_onnx: bool = ...
) -> Callable[[AnyTypeRule], AnyTypeRule]: ...


@overload
def shape_rule(
    *op_types: str, domain: str = ..., infers: Literal["values"]
) -> Callable[[AnyValueRule], AnyValueRule]: ...


def shape_rule(
    *op_types: str,
    domain: str = "",
    infers: Literal["types", "values"] = "types",
    ask_onnx: bool = False,
) -> Callable[[Any], Any]:
    """Register the decorated function as the shape rule of operators.

        @shape_rule("Widen", domain="my.domain")
        def widen(node, operands):
            return TensorType(operands[0].dtype, (*operands[0].shape, node.attr("by")))

    A type rule takes the node and returns the type of its first output, or a sequence of the types
    of several. With a second parameter it also takes the types of the operands present, and is
    called only if all of them are dense tensors. A value rule (`infers="values"`, data
    propagation) takes the node and returns the elements of its small integer or boolean outputs:
    arrays of int, bool, symbolic sizes or None, as `Value.elements` has them.

    A rule returns only what is true for all inputs. None, or an IndexError, KeyError, TypeError,
    ValueError, AttributeError or ZeroDivisionError, says that it cannot infer this node. A rule
    that takes operands is called neither for nodes with attributes that are function parameters,
    nor for onnx's own operators before opset 7.

    Args:
        op_types: the operators.
        domain: their domain; "" is onnx's own.
        infers: whether the function infers types or values.
        ask_onnx: also ask onnx about dims that a type rule returns as None.

    Raises:
        UsageError: no operator is named, or one has such a rule already.
    """
    if infers == "values":
        return VALUES.rule(*op_types, domain=domain)
    return TYPES.rule(*op_types, domain=domain, ask_onnx=ask_onnx)


def _parameters(rule: Callable[..., Any]) -> int:
    if is_plain(rule):
        return rule.__code__.co_argcount
    return len(inspect.signature(rule).parameters)


def register_type_rule(op_type: str, domain: str, rule: TypeRule) -> None:
    """Register a type rule for an operator that onnx does not know: `shape_rule` as a function.

    Raises:
        UsageError: onnx infers the operator itself, or it has a type rule already.
    """
    if not domain or schema_of(op_type, domain) is not None:
        name = operator_name(domain, op_type)
        raise UsageError(f"onnx knows the types of {name}: it takes no rule")
    shape_rule(op_type, domain=domain)(rule)


def unregister_type_rule(op_type: str, domain: str) -> None:
    """Remove the type rule of an operator, as tests do."""
    TYPES.remove(op_type, domain)
