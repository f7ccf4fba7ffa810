"""Definitions of operators by others: the results of standard operators, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import onnx

from tiered.certify.domains.terms import Array
from tiered.certify.evaluation.call import EvaluatedCall, NoRule, Results
from tiered.certify.evaluation.evaluate import opaque
from tiered.certify.evaluation.values import CheckedTensor

Rule = Callable[[EvaluatedCall], Results]
RULES: Final[dict[str, Rule]] = {}
"""The rules over the reals, by name; `contrib` fills it."""
_OPSET: Final = 21


class Composed:
    """Makes the results of standard operators for the definition of another one."""

    def __init__(self, call: EvaluatedCall, opset: int = _OPSET) -> None:
        self._call = call
        self._opset = opset
        call.axioms.add("definition")

    def __call__(self, op: str, *inputs: CheckedTensor | None, **attributes: Any) -> CheckedTensor:
        """Return the first result of an operator, which has another domain as "domain::Name"."""
        return self.all(op, 1, *inputs, **attributes)[0]

    def all(
        self, op: str, count: int, *inputs: CheckedTensor | None, **attributes: Any
    ) -> list[CheckedTensor]:
        """Return as many results of an operator, by its rule or as those of a function."""
        names = ["" if x is None else f"x{at}" for at, x in enumerate(inputs)]
        domain, _, name = op.rpartition("::")
        outputs = [f"y{at}" for at in range(count)]
        node = onnx.helper.make_node(name, names, outputs, domain=domain, **attributes)
        call = EvaluatedCall(node, inputs, self._opset, self._call.domain, self._call.scope)
        call.axioms = self._call.axioms
        results = RULES[op](call) if op in RULES else opaque(call)
        return [result for result in results if result is not None]

    def known(self, numbers: Array, dtype: int) -> CheckedTensor:
        """Return numbers as a tensor."""
        return self._call.constant(numbers, dtype)

    def recast(self, x: CheckedTensor, dtype: int) -> CheckedTensor:
        """Return a tensor of the same real numbers in another dtype."""
        if x.known is not None:
            raise NoRule
        return self._call.made(dtype, x.shape, lambda: x.terms)

    def spread(self, x: CheckedTensor, strides: Sequence[int]) -> CheckedTensor:
        """Return [n, channels, *sizes] with zeros between the elements along the sizes."""
        sizes = [(size - 1) * step + 1 for size, step in zip(x.shape[2:], strides, strict=True)]
        shape = (*x.shape[:2], *sizes)

        def make() -> Array:
            zero = self._call.domain.constant(np.zeros(()))
            made = np.broadcast_to(zero, shape).copy()
            places = [slice(None), slice(None), *(slice(None, None, step) for step in strides)]
            made[tuple(places)] = x.terms
            return made

        return self._call.made(x.dtype, shape, make)

    def scalar(self, number: float, like: CheckedTensor) -> CheckedTensor:
        """Return a number as a tensor of the dtype of another one."""
        return self._call.constant(np.asarray(number, np.float64), like.dtype)


def optional(call: EvaluatedCall, index: int) -> CheckedTensor | None:
    return call.operand(index) if call.has(index) else None
