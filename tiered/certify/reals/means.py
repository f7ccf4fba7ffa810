"""Sums, means and what is defined by them: normalizations and Gelu."""

from __future__ import annotations

import numpy as np

from tiered.certify.domains.bits import RULES as ON_BITS
from tiered.certify.domains.terms import Array, seed_of
from tiered.certify.evaluation.call import EvaluatedCall, NoRule, Results, axis_of
from tiered.certify.evaluation.values import class_of
from tiered.certify.reals.lifting import domain_of, function, lifted
from tiered.certify.reals.real_arithmetic import powered
from tiered.certify.rules.element_lists import keeps_dims, lanes, reduced_axes, reduced_shape


def reduce(call: EvaluatedCall) -> Results:
    x, domain = call.operand(0), domain_of(call)
    axes = reduced_axes(call, x)
    if axes is None or class_of(x.dtype) != "float" or x.known is not None:
        return lifted(ON_BITS[call.op])(call)
    shape = reduced_shape(x.shape, axes, keeps=keeps_dims(call))
    count = int(np.prod([x.shape[at] for at in axes], dtype=np.int64))
    factor = 1 / max(count, 1) if call.op == "ReduceMean" else 1.0

    def make() -> Array:
        return domain.scaled(domain.total(lanes(x.terms, axes)), factor).reshape(shape)

    return [call.made(x.dtype, shape, make)]


def global_average(call: EvaluatedCall) -> Results:
    x, domain = call.operand(0), domain_of(call)
    shape = [*x.shape[:2], *[1] * (x.rank - 2)]
    count = max(int(np.prod(x.shape[2:], dtype=np.int64)), 1)

    def make() -> Array:
        return domain.scaled(domain.total(x.terms.reshape(*x.shape[:2], -1)), 1 / count).reshape(
            shape
        )

    return [call.made(x.dtype, shape, make)]


def layer_normalization(call: EvaluatedCall) -> Results:
    """By its definition, where it has one result."""
    x, domain = call.operand(0), domain_of(call)
    if len([name for name in call.node.output if name]) > 1 or x.known is not None:
        raise NoRule
    axes = list(range(axis_of(call.get("axis", -1), x.rank), x.rank))
    shape = reduced_shape(x.shape, axes, keeps=True)
    count = max(int(np.prod([x.shape[at] for at in axes], dtype=np.int64)), 1)
    epsilon = np.asarray(call.get("epsilon", 1e-5), np.float32)
    has_mean = call.op == "LayerNormalization"
    bias = call.operand(2) if has_mean and call.has(2) else None

    def mean(elements: Array) -> Array:
        return domain.scaled(domain.total(lanes(elements, axes)), 1 / count).reshape(shape)

    def make() -> Array:
        centred = domain.add(x.terms, domain.scaled(mean(x.terms), -1.0)) if has_mean else x.terms
        var = domain.add(mean(domain.mul(centred, centred)), domain.constant(epsilon))
        root = domain.hashed(_seed("Sqrt"), var)
        made = domain.mul(domain.mul(centred, domain.inverse(root)), call.operand(1).terms)
        return made if bias is None else domain.add(made, bias.terms)

    return [call.made(x.dtype, x.shape, make)]


def _seed(op: str) -> tuple[np.uint64, np.uint64]:
    """Return the seed that `function` gives a unary operator without attributes."""
    return seed_of("", op, (True,))


def gelu(call: EvaluatedCall) -> Results:
    """0.5 * x * (1 + f), where f is Erf(x / sqrt(2)), or Tanh(sqrt(2 / pi) * (x + c * x**3))."""
    x, domain = call.operand(0), domain_of(call)
    if x.known is not None:
        return function(call)

    def make() -> Array:
        if call.get("approximate", "none") == "none":
            inner = domain.hashed(_seed("Erf"), domain.scaled(x.terms, np.sqrt(0.5)))
        else:
            cube = domain.scaled(powered(domain, x.terms, 3), 0.044715)
            argument = domain.scaled(domain.add(x.terms, cube), np.sqrt(2 / np.pi))
            inner = domain.hashed(_seed("Tanh"), argument)
        one = domain.add(inner, domain.constant(np.ones(())))
        return domain.scaled(domain.mul(x.terms, one), 0.5)

    return [call.made(x.dtype, x.shape, make)]
