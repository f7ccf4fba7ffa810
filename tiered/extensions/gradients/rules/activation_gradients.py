"""Gradients of activations that are defined piecewise; the others have function bodies."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tiered.extensions.gradients.expression import Expr
from tiered.extensions.gradients.rule_registry import Step, gradient_rule


def _where_positive(step: Step, below: Expr) -> Expr:
    """Return g where x > 0, else another gradient."""
    return step.x.greater(0.0).select(step.g, below)


@gradient_rule("Relu")
def relu(step: Step) -> Sequence[Expr | None]:
    """dx = g where x > 0, else 0; so 0 at 0"""
    return (step.x.greater(0.0).select(step.g, 0.0),)


@gradient_rule("LeakyRelu")
def leaky_relu(step: Step) -> Sequence[Expr | None]:
    """dx = g where x > 0, else alpha g"""
    return (_where_positive(step, step.g * float(step.node.attr("alpha"))),)


@gradient_rule("PRelu", broadcasts=True)
def prelu(step: Step) -> Sequence[Expr | None]:
    """dx = g where x > 0, else slope g; dslope = 0 where x > 0, else x g"""
    x, g = step.x, step.g
    is_positive = x.greater(0.0)
    return is_positive.select(g, g * step.operand(1)), is_positive.select(g.zeros(), g * x)


@gradient_rule("Elu")
def elu(step: Step) -> Sequence[Expr | None]:
    """dx = g where x > 0, else g (y + alpha)"""
    return (_where_positive(step, step.g * (step.y + float(step.node.attr("alpha")))),)


@gradient_rule("Selu")
def selu(step: Step) -> Sequence[Expr | None]:
    """dx = gamma g where x > 0, else g (y + gamma alpha)"""
    alpha, gamma = float(step.node.attr("alpha")), float(step.node.attr("gamma"))
    x, g = step.x, step.g
    return (x.greater(0.0).select(g * gamma, g * (step.y + gamma * alpha)),)


@gradient_rule("Celu")
def celu(step: Step) -> Sequence[Expr | None]:
    """dx = g where x > 0, else g (1 + y / alpha)"""
    return (_where_positive(step, step.g * (1 + step.y / float(step.node.attr("alpha")))),)


@gradient_rule("HardSigmoid")
def hard_sigmoid(step: Step) -> Sequence[Expr | None]:
    """dx = alpha g where 0 < y < 1, else 0"""
    inside = step.y.greater(0.0).both(step.y.less(1.0))
    return (inside.select(step.g * float(step.node.attr("alpha")), 0.0),)


@gradient_rule("ThresholdedRelu")
def thresholded_relu(step: Step) -> Sequence[Expr | None]:
    """dx = g where x > alpha, else 0"""
    return (step.x.greater(float(step.node.attr("alpha"))).select(step.g, 0.0),)


@gradient_rule("Gelu")
def gelu(step: Step) -> Sequence[Expr | None]:
    """dx = g (P + x P'), with P the normal distribution, or its tanh form"""
    x, g = step.x, step.g
    if step.node.attr("approximate") == "tanh":
        inner = (x + 0.044715 * (x * x * x)) * math.sqrt(2 / math.pi)
        t = x.call("Tanh", inner)
        slope = (1 + (3 * 0.044715) * (x * x)) * math.sqrt(2 / math.pi)
        return (g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope),)
    distribution = 0.5 * (1 + x.call("Erf", x * math.sqrt(0.5)))
    density = x.call("Exp", -0.5 * (x * x)) * (1 / math.sqrt(2 * math.pi))
    return (g * (distribution + x * density),)


@gradient_rule("Softmax")
def softmax(step: Step) -> Sequence[Expr | None]:
    """dx = y (g - sum(g y)), along the axes that sum to 1"""
    y, g = step.y, step.g
    return (y * (g - (g * y).sum(_normalized_axes(step))),)


@gradient_rule("LogSoftmax")
def log_softmax(step: Step) -> Sequence[Expr | None]:
    """dx = g - exp(y) sum(g), along the axes that sum to 1"""
    y, g = step.y, step.g
    return (g - y.call("Exp", y) * g.sum(_normalized_axes(step)),)


_ONE_AXIS_SINCE = 13
"""Before, Softmax and its like normalize over all axes from `axis` on."""


def _normalized_axes(step: Step) -> Sequence[int]:
    axis, rank = int(step.node.attr("axis")), step.x.rank
    if step.node.version < _ONE_AXIS_SINCE:
        return range(axis % rank, rank)
    return [axis % rank] if rank else []
