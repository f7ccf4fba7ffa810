"""The meaning of operators over the reals, on elements scale * atom + offset.

What has no rule here is an unknown function of its operands: the rule on bits is used, on the terms
of the operands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tiered.certify.affine import AFFINE, Affine, atoms_of, by_channel, of_atoms
from tiered.certify.bits import RULES as ON_BITS, Bits
from tiered.certify.call import Call, NoRule, Results, axis_of
from tiered.certify.reals_extrema import BETWEEN
from tiered.certify.rules.elementwise import (
    PLAIN,
    broadcast,
    dtype_of_result,
    known,
    seed_for,
)
from tiered.certify.rules.flow import FLOW
from tiered.certify.rules.lists import (
    Windows,
    keeps_dims,
    lanes,
    reduced_axes,
    reduced_shape,
    window_of,
)
from tiered.certify.rules.moves import MOVES
from tiered.certify.terms import Array, seed_of
from tiered.certify.values import Tensor, Unproved, class_of, holds

Rule = Callable[[Call], Results]


def domain_of(call: Call) -> Affine:
    assert isinstance(call.domain, Affine)
    return call.domain


# --- what has no rule -------------------------------------------------------------------------


def lifted(rule: Rule) -> Rule:
    """Return a rule on bits as one on reals: it sees the terms of the operands."""

    def on_terms(call: Call) -> Results:
        domain = domain_of(call)
        inputs = [None if x is None else _as_terms(domain, x) for x in call.inputs]
        inner = Call(call.node, inputs, call.opset, Bits(), call.scope)
        inner.axioms = call.axioms
        inner.signed_zeros = False
        return [None if y is None else _as_elements(call, y) for y in rule(inner)]

    return on_terms


def _as_terms(domain: Affine, x: Tensor) -> Tensor:
    made = Tensor(x.dtype, x.shape, lambda: domain.plain(x.terms), x.known, exact=x.exact)
    # Forms come from rules on terms alone: what they hold has terms.
    made.form = x.form
    return made


def _as_elements(call: Call, y: Tensor) -> Tensor:
    if y.known is not None:
        return call.constant(y.known, y.dtype, exact=y.exact)

    def make() -> Array:
        terms = y.terms
        return terms if terms.dtype == AFFINE else of_atoms(terms)

    made = call.made(y.dtype, y.shape, make)
    made.form = y.form
    return made


def function(call: Call) -> Results:
    """An elementwise operator as an unknown function."""
    tensors = [x for x in call.inputs if x is not None]
    shape, dtype, domain = broadcast(tensors), dtype_of_result(call, tensors), domain_of(call)
    numbers = [x.known for x in tensors if x.known is not None]
    if len(numbers) == len(tensors):
        return [known(call, numbers, dtype)]
    seed = seed_for(call, tuple(x is not None for x in call.inputs))

    def make() -> Array:
        return np.broadcast_to(domain.hashed(seed, *(x.terms for x in tensors)), shape)

    return [call.made(dtype, shape, make)]


# --- arithmetic -------------------------------------------------------------------------------


def _arithmetic(call: Call, make: Callable[..., Array]) -> Results:
    tensors = [x for x in call.inputs if x is not None]
    if class_of(tensors[0].dtype) != "float":
        return lifted(ON_BITS[call.op])(call)
    shape = broadcast(tensors)
    numbers = [x.known for x in tensors if x.known is not None]
    if len(numbers) == len(tensors):
        return [known(call, numbers, tensors[0].dtype)]

    def all_elements() -> Array:
        return np.broadcast_to(make(*(x.terms for x in tensors)), shape)

    return [call.made(tensors[0].dtype, shape, all_elements)]


def add(call: Call) -> Results:
    return _arithmetic(call, domain_of(call).add)


def sub(call: Call) -> Results:
    domain = domain_of(call)
    return _arithmetic(call, lambda x, y: domain.add(x, domain.scaled(y, -1.0)))


def mul(call: Call) -> Results:
    return _arithmetic(call, domain_of(call).mul)


def div(call: Call) -> Results:
    domain = domain_of(call)
    return _arithmetic(call, lambda x, y: domain.mul(x, domain.inverse(y)))


def neg(call: Call) -> Results:
    domain = domain_of(call)
    return _arithmetic(call, lambda x: domain.scaled(x, -1.0))


def reciprocal(call: Call) -> Results:
    return _arithmetic(call, domain_of(call).inverse)


def sum_(call: Call) -> Results:
    domain = domain_of(call)

    def make(*elements: Array) -> Array:
        made = elements[0]
        for each in elements[1:]:
            made = domain.add(made, each)
        return made

    return _arithmetic(call, make)


def power(call: Call) -> Results:
    """A power of a small integer is a product."""
    x, exponent = call.operand(0), call.operand(1).known
    if exponent is None or exponent.size != 1 or float(exponent.reshape(())) not in (2, 3, 4):
        return function(call)
    shape, times = broadcast([x, call.operand(1)]), int(exponent.reshape(()))
    if x.known is not None:
        return function(call)
    domain = domain_of(call)
    return [call.made(x.dtype, shape, lambda: _powered(domain, x.terms, times).reshape(shape))]


def _powered(domain: Affine, x: Array, times: int) -> Array:
    made = x
    for _ in range(times - 1):
        made = domain.mul(made, x)
    return made


def cast(call: Call) -> Results:
    x = call.operand(0)
    to = call.operand(1).dtype if call.op == "CastLike" else call.attributes["to"]
    kinds = class_of(x.dtype), class_of(to)
    is_wider = kinds == ("float", "float") and holds(to, x.dtype)
    if x.known is None and (is_wider or kinds == ("integer", "float")):
        return [call.made(to, x.shape, lambda: x.terms, exact=x.exact)]
    return lifted(ON_BITS["Cast"])(call)


def batch_normalization(call: Call) -> Results:
    x = call.operand(0)
    scale, shift, mean, var = (call.operand(at) for at in range(1, 5))
    outputs = [name for name in call.node.output if name]
    if call.get("training_mode", 0) or len(outputs) > 1:
        raise Unproved("BatchNormalization in training")
    if any(each.known is None for each in (scale, shift, mean, var)):
        return lifted(ON_BITS["BatchNormalization"])(call)
    shape = (x.shape[1], *[1] * (x.rank - 2)) if x.rank > 1 else (1,)
    s, b, m, v = (
        each.numbers("a parameter").astype(np.float64).reshape(shape)
        for each in (scale, shift, mean, var)
    )
    factor = s / np.sqrt(v + call.get("epsilon", 1e-5))
    domain = domain_of(call)

    def make() -> Array:
        return domain.add(domain.scaled(x.terms, factor), domain.constant(b - factor * m))

    return [call.made(x.dtype, x.shape, make)]


# --- sums of products -------------------------------------------------------------------------


def _products(call: Call, x: Tensor, y: Tensor, a: tuple[int, ...], b: tuple[int, ...]) -> Array:
    """Return the elements of a product of stacks of matrices."""
    domain = domain_of(call)
    if y.known is not None and len([size for size in b[:-2] if size != 1]) == 0:
        return domain.dots(x.terms.reshape(a), y.terms, y.known.reshape(b[-2:]))
    if x.known is not None and len([size for size in a[:-2] if size != 1]) == 0:
        turned = np.swapaxes(y.terms.reshape(b), -1, -2)
        made = domain.dots(turned, x.terms, x.known.reshape(a[-2:]).T)
        return np.swapaxes(made, -1, -2)
    return domain.dots(x.terms.reshape(a), y.terms.reshape(b), None)


def matmul(call: Call) -> Results:
    x, y = call.operand(0), call.operand(1)
    if class_of(x.dtype) != "float" or x.rank < 1 or y.rank < 1:
        raise NoRule
    a = x.shape if x.rank > 1 else (1, *x.shape)
    b = y.shape if y.rank > 1 else (*y.shape, 1)
    if a[-1] != b[-2]:
        raise Unproved("MatMul of shapes that do not fit")
    shape = [*np.broadcast_shapes(a[:-2], b[:-2])]
    shape += [a[-2]] if x.rank > 1 else []
    shape += [b[-1]] if y.rank > 1 else []
    return [call.made(x.dtype, shape, lambda: _products(call, x, y, a, b).reshape(shape))]


def gemm(call: Call) -> Results:
    x, y, domain = call.operand(0), call.operand(1), domain_of(call)
    if class_of(x.dtype) != "float":
        raise NoRule
    if x.rank != 2 or y.rank != 2:
        raise Unproved("Gemm of operands that are no matrices")
    x, y = (
        call.moved(each, np.transpose, each.shape[::-1]) if call.get(name, 0) else each
        for each, name in ((x, "transA"), (y, "transB"))
    )
    shape = (x.shape[0], y.shape[1])
    alpha, beta = call.get("alpha", 1.0), call.get("beta", 1.0)
    bias = call.operand(2) if call.has(2) else None

    def make() -> Array:
        made = domain.scaled(_products(call, x, y, x.shape, y.shape), alpha)
        return made if bias is None else domain.add(made, domain.scaled(bias.terms, beta))

    return [call.made(x.dtype, shape, make)]


def conv(call: Call) -> Results:
    x, w, domain = call.operand(0), call.operand(1), domain_of(call)
    if class_of(x.dtype) != "float" or w.known is None:
        return _with_bias(call, lifted(ON_BITS["Conv"]))
    group, n, m = call.get("group", 1), x.shape[0], w.shape[0]
    windows = window_of(call, x.shape, w.shape[2:])
    shape = (n, m, *windows.counts)
    weights = w.numbers("the weight of Conv").reshape(group, m // group, -1).astype(np.float64)
    bias = call.operand(2) if call.has(2) else None

    def make() -> Array:
        made = _windows_of(domain, windows, x.terms, weights).reshape(n, m, -1)
        if bias is not None:
            made = domain.add(made, bias.terms[:, None])
        return made.reshape(shape)

    return [call.made(x.dtype, shape, make)]


def _with_bias(call: Call, rule: Rule) -> Results:
    """Return the result of a rule of Conv without its bias, plus the bias."""
    if not call.has(2) or class_of(call.operand(0).dtype) != "float":
        return rule(call)
    bare = Call(call.node, call.inputs[:2], call.opset, call.domain, call.scope)
    bare.axioms = call.axioms
    (made,) = rule(bare)
    assert made is not None
    bias, domain, product = call.operand(2), domain_of(call), made
    shape = (-1, *[1] * (product.rank - 2))
    return [
        call.made(
            product.dtype,
            product.shape,
            lambda: domain.add(product.terms, bias.terms.reshape(shape)),
        )
    ]


def _windows_of(domain: Affine, windows: Windows, x: Array, weights: Array) -> Array:
    """Return the products of windows and weights, [n, group, outputs, places].

    Args:
        domain: the domain.
        windows: where the kernel reads.
        x: elements [n, channels, *sizes].
        weights: numbers [group, outputs, channels / group * kernel].
    """
    group, kernel = len(weights), windows.places.shape[1]
    scale, offset = by_channel(x, has_pads=bool((windows.places < 0).any()))
    if scale is None or offset is None:
        x, scale = of_atoms(domain.plain(x)), np.ones(x.shape[1])
        offset = np.zeros(x.shape[1])
    zero = atoms_of(domain.constant(np.zeros(())))
    rows = windows.rows(seed_of("row"), atoms_of(x), zero, group)
    scales, offsets = (np.repeat(each, kernel).reshape(group, 1, -1) for each in (scale, offset))
    columns = np.moveaxis(scales * weights, -1, 0)[..., None]
    return domain.products(rows[:, :, None], columns, (offsets * weights).sum(-1)[..., None])


# --- reductions and definitions ---------------------------------------------------------------


def reduce(call: Call) -> Results:
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


def global_average(call: Call) -> Results:
    x, domain = call.operand(0), domain_of(call)
    shape = [*x.shape[:2], *[1] * (x.rank - 2)]
    count = max(int(np.prod(x.shape[2:], dtype=np.int64)), 1)

    def make() -> Array:
        return domain.scaled(domain.total(x.terms.reshape(*x.shape[:2], -1)), 1 / count).reshape(
            shape
        )

    return [call.made(x.dtype, shape, make)]


def layer_normalization(call: Call) -> Results:
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


def gelu(call: Call) -> Results:
    """0.5 * x * (1 + f), where f is Erf(x / sqrt(2)), or Tanh(sqrt(2 / pi) * (x + c * x**3))."""
    x, domain = call.operand(0), domain_of(call)
    if x.known is not None:
        return function(call)

    def make() -> Array:
        if call.get("approximate", "none") == "none":
            inner = domain.hashed(_seed("Erf"), domain.scaled(x.terms, np.sqrt(0.5)))
        else:
            cube = domain.scaled(_powered(domain, x.terms, 3), 0.044715)
            argument = domain.scaled(domain.add(x.terms, cube), np.sqrt(2 / np.pi))
            inner = domain.hashed(_seed("Tanh"), argument)
        one = domain.add(inner, domain.constant(np.ones(())))
        return domain.scaled(domain.mul(x.terms, one), 0.5)

    return [call.made(x.dtype, x.shape, make)]


REALS: Final[dict[str, Rule]] = {
    **{name: lifted(rule) for name, rule in ON_BITS.items()},
    **MOVES,
    **FLOW,
    **{name: ON_BITS[name] for name in ("Constant", "ConstantOfShape", "Range")},
    **dict.fromkeys(PLAIN, function),
    "Add": add,
    "BatchNormalization": batch_normalization,
    "Cast": cast,
    "CastLike": cast,
    "Conv": conv,
    "Div": div,
    "Gelu": gelu,
    "Gemm": gemm,
    "GlobalAveragePool": global_average,
    "LayerNormalization": layer_normalization,
    "MatMul": matmul,
    "Mul": mul,
    "Neg": neg,
    "Pow": power,
    "RMSNormalization": layer_normalization,
    "ReduceMean": reduce,
    "ReduceSum": reduce,
    "Reciprocal": reciprocal,
    "Sub": sub,
    "Sum": sum_,
}


def _gather(call: Call) -> Results:
    is_known = call.operand(1).known is not None
    return MOVES["Gather"](call) if is_known else lifted(MOVES["Gather"])(call)


def _if(call: Call) -> Results:
    if call.operand(0).known is None:
        raise Unproved("an If of an unknown condition has no rule over the reals")
    return FLOW["If"](call)


def _or_on_terms(rule: Rule, other: Rule) -> Rule:
    """Return a rule, and where it covers a node not, another one."""

    def either(call: Call) -> Results:
        try:
            return rule(call)
        except NoRule:
            return other(call)

    return either


REALS.update({"Gather": _gather, "If": _if})
REALS.update({name: _or_on_terms(rule, REALS[name]) for name, rule in BETWEEN.items()})
