"""Gradients of functions of one tensor, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tiered.extensions.gradients.expression import Expr
from tiered.extensions.gradients.rule_registry import Step, gradient_rule
from tiered.graph import TensorType

Derivative = Callable[[Expr, Expr], Expr]
"""Returns dy/dx, from x and y."""

DERIVATIVES: Final[Mapping[str, Derivative]] = {
    "Abs": lambda x, y: x.call("Sign", x),
    "Acos": lambda x, y: -((1 - x * x) ** -0.5),
    "Acosh": lambda x, y: (x * x - 1) ** -0.5,
    "Asin": lambda x, y: (1 - x * x) ** -0.5,
    "Asinh": lambda x, y: (x * x + 1) ** -0.5,
    "Atan": lambda x, y: 1 / (x * x + 1),
    "Atanh": lambda x, y: 1 / (1 - x * x),
    "Cos": lambda x, y: -x.call("Sin", x),
    "Cosh": lambda x, y: x.call("Sinh", x),
    "Erf": lambda x, y: (2 / math.sqrt(math.pi)) * x.call("Exp", -(x * x)),
    "Exp": lambda x, y: y,
    "Log": lambda x, y: 1 / x,
    "Reciprocal": lambda x, y: -(y * y),
    "Sigmoid": lambda x, y: y * (1 - y),
    "Sin": lambda x, y: x.call("Cos", x),
    "Sinh": lambda x, y: x.call("Cosh", x),
    "Softplus": lambda x, y: x.call("Sigmoid", x),
    "Softsign": lambda x, y: (1 + x.call("Abs", x)) ** -2.0,
    "Sqrt": lambda x, y: 0.5 / y,
    "Tan": lambda x, y: 1 + y * y,
    "Tanh": lambda x, y: 1 - y * y,
}
"""dy/dx by operator, as in tables of derivatives."""


@gradient_rule("Neg")
def negative(step: Step) -> Sequence[Expr | None]:
    """dx = -g"""
    return (-step.g,)


@gradient_rule(*DERIVATIVES)
def elementwise(step: Step) -> Sequence[Expr | None]:
    """dx = g * dy/dx"""
    return (step.g * DERIVATIVES[step.node.op_type](step.x, step.y),)


@gradient_rule("Ceil", "Floor", "Hardmax", "Round", "Sign")
def steps(step: Step) -> Sequence[Expr | None]:
    """dx = 0: the function is constant between its jumps"""
    return (None,)


@gradient_rule("EyeLike", "RandomNormalLike", "RandomUniformLike")
def likes(step: Step) -> Sequence[Expr | None]:
    """dx = 0: of x only the shape is read"""
    return (None,)


@gradient_rule(
    "Binarizer", "TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor",
    domain="ai.onnx.ml",
)  # fmt: skip
def decisions(step: Step) -> Sequence[Expr | None]:
    """dx = 0: a threshold or a tree is constant between its jumps"""
    return (None,)


@gradient_rule("OptionalGetElement")
def optional_get_element(step: Step) -> Sequence[Expr | None]:
    """dx = g, if x is a tensor"""
    if not isinstance(step.x.value.type, TensorType):
        raise step.error("its operand is no tensor")
    return (step.g,)


@gradient_rule("Identity")
def identity(step: Step) -> Sequence[Expr | None]:
    """dx = g"""
    return (step.g,)


@gradient_rule("Cast", "CastLike")
def cast(step: Step) -> Sequence[Expr | None]:
    """dx = g, in the dtype of x"""
    return (step.g.cast(step.x.dtype),)


@gradient_rule("Dropout")
def dropout(step: Step) -> Sequence[Expr | None]:
    """dx = g, and g * mask / (1 - ratio) in training"""
    training = step.operands[2] if step.has(2) else None
    if training is None:
        return (step.g,)
    known = training.value.const
    if known is not None and not known.any():
        return (step.g,)
    mask = step.outputs[1] if len(step.outputs) > 1 else None
    if mask is None:
        mask = step.of(step.graph.new_value(f"{step.name}/mask"))
        step.graph.set_outputs(step.node, [step.y.value, mask.value])
    ratio: Expr | float = step.operand(1).cast(step.x.dtype) if step.has(1) else 0.5
    scale = 1 / (1 - ratio) if isinstance(ratio, Expr) else step.x.of(step.x.value).filled(2)
    kept = mask.cast(step.x.dtype)
    return (training.select(step.g * kept * scale, step.g),)


@gradient_rule("Clip")
def clip(step: Step) -> Sequence[Expr | None]:
    """dx = g where min <= x <= max; dmin = sum g where x < min; dmax = sum g where x > max

    Where min > max, every element of y is max.
    """
    x, g = step.x, step.g
    below = x.less(step.operand(1)) if step.has(1) else None
    above = x.greater(step.operand(2)) if step.has(2) else None
    dx = g
    for outside in (below, above):
        if outside is not None:
            dx = outside.select(g.zeros(), dx)
    if below is not None and above is not None:
        is_crossed = step.operand(1).greater(step.operand(2))
        below, above = below.both(is_crossed.negated()), above.either(is_crossed)
    result: list[Expr | None] = [dx]
    for place, outside in ((1, below), (2, above)):
        if outside is None or not step.wants(place):
            result.append(None)
        else:
            part = outside.select(g, 0.0)
            result.append(part.sum(keepdims=False).reshape_as(step.operand(place)))
    return result


@gradient_rule("Shrink")
def shrink(step: Step) -> Sequence[Expr | None]:
    """dx = g where |x| > lambd, else 0"""
    limit = float(step.node.attr("lambd"))
    return (step.x.call("Abs", step.x).greater(limit).select(step.g, 0.0),)
