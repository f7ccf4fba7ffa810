"""Operators of com.microsoft over the reals, each by its definition in standard operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import onnx

from tiered.certify.call import Call, NoRule, Results
from tiered.certify.reals import REALS
from tiered.certify.values import Tensor

Rule = Callable[[Call], Results]
_OPSET: Final = 21


class Composed:
    """Makes the results of standard operators for the definition of another one."""

    def __init__(self, call: Call) -> None:
        self._call = call
        call.axioms.add("definition")

    def __call__(self, op: str, *inputs: Tensor | None, **attributes: Any) -> Tensor:
        """Return the first result of an operator."""
        names = ["" if x is None else f"x{at}" for at, x in enumerate(inputs)]
        node = onnx.helper.make_node(op, names, ["y"], **attributes)
        call = Call(node, inputs, _OPSET, self._call.domain, self._call.scope)
        call.axioms = self._call.axioms
        result = REALS[op](call)[0]
        assert result is not None
        return result

    def scalar(self, number: float, like: Tensor) -> Tensor:
        """Return a number as a tensor of the dtype of another one."""
        return self._call.constant(np.asarray(number, np.float64), like.dtype)


def optional(call: Call, index: int) -> Tensor | None:
    return call.operand(index) if call.has(index) else None


def bias_gelu(call: Call) -> Results:
    make, bias = Composed(call), optional(call, 1)
    x = call.operand(0) if bias is None else make("Add", call.operand(0), bias)
    approximate = "tanh" if call.op == "FastGelu" else "none"
    return [make("Gelu", x, approximate=approximate)]


def quick_gelu(call: Call) -> Results:
    make, x = Composed(call), call.operand(0)
    alpha = make.scalar(call.get("alpha", 1.702), x)
    return [make("Mul", x, make("Sigmoid", make("Mul", x, alpha)))]


def fused_matmul(call: Call) -> Results:
    make, inputs = Composed(call), [call.operand(0), call.operand(1)]
    if call.get("transBatchA", 0) or call.get("transBatchB", 0):
        raise NoRule
    for at, name in enumerate(("transA", "transB")):
        rank = inputs[at].rank
        if call.get(name, 0) and rank > 1:
            perm = [*range(rank - 2), rank - 1, rank - 2]
            inputs[at] = make("Transpose", inputs[at], perm=perm)
    product = make("MatMul", *inputs)
    return [make("Mul", product, make.scalar(call.get("alpha", 1.0), product))]


def activated(call: Call, make: Composed, x: Tensor, name: str, params: list[float]) -> Tensor:
    """Return the activation of FusedConv and FusedGemm."""
    keys = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta")}
    if name == "Clip":
        return make("Clip", x, *(make.scalar(number, x) for number in params))
    if name not in ("", "Relu", "Sigmoid", "Tanh", *keys):
        raise NoRule
    held = dict(zip(keys.get(name, ()), params, strict=False))
    return make(name, x, **held) if name else x


def fused_conv(call: Call) -> Results:
    make = Composed(call)
    own = {k: v for k, v in call.attributes.items() if not k.startswith("activation")}
    made = make("Conv", call.operand(0), call.operand(1), optional(call, 2), **own)
    other = optional(call, 3)
    made = made if other is None else make("Add", made, other)
    params = list(call.get("activation_params") or [])
    return [activated(call, make, made, call.get("activation", ""), params)]


def fused_gemm(call: Call) -> Results:
    make = Composed(call)
    own = {k: v for k, v in call.attributes.items() if not k.startswith("activation")}
    made = make("Gemm", call.operand(0), call.operand(1), optional(call, 2), **own)
    params = [call.attributes[k] for k in ("activation_alpha", "activation_beta")
              if k in call.attributes]  # fmt: skip
    return [activated(call, make, made, call.get("activation", ""), params)]


def skip_normalization(call: Call) -> Results:
    """SkipLayerNormalization and its simplified form: a normalization of a sum."""
    make = Composed(call)
    is_simple = call.op.startswith("SkipSimplified")
    x = make("Add", call.operand(0), call.operand(1))
    bias = optional(call, 3 if is_simple else 4)
    x = x if bias is None else make("Add", x, bias)
    epsilon = {"axis": -1, "epsilon": float(call.get("epsilon", 1e-12 if not is_simple else 1e-5))}
    if is_simple:
        made = make("RMSNormalization", x, call.operand(2), **epsilon)
    else:
        made = make("LayerNormalization", x, call.operand(2), optional(call, 3), **epsilon)
    names = call.node.output
    if any(names[1:3]):
        raise NoRule
    return [made, None, None, x][: len(names)]


def simplified_normalization(call: Call) -> Results:
    if len([name for name in call.node.output if name]) > 1:
        raise NoRule
    make = Composed(call)
    held = {"axis": call.get("axis", -1), "epsilon": float(call.get("epsilon", 1e-5))}
    return [make("RMSNormalization", call.operand(0), call.operand(1), **held)]


def swish(call: Call) -> Results:
    """Swish and HardSwish as products."""
    make, x = Composed(call), call.operand(0)
    if x.known is not None:
        raise NoRule
    alpha = make.scalar(call.get("alpha", 1.0), x)
    return [make("Mul", x, make("Sigmoid", make("Mul", x, alpha)))]


REALS_AND_CONTRIB: Final[dict[str, Rule]] = {
    **REALS,
    "SimplifiedLayerNormalization": simplified_normalization,
    "Swish": swish,
    "com.microsoft::BiasGelu": bias_gelu,
    "com.microsoft::FastGelu": bias_gelu,
    "com.microsoft::FusedConv": fused_conv,
    "com.microsoft::FusedGemm": fused_gemm,
    "com.microsoft::FusedMatMul": fused_matmul,
    "com.microsoft::Gelu": bias_gelu,
    "com.microsoft::QuickGelu": quick_gelu,
    "com.microsoft::SkipLayerNormalization": skip_normalization,
    "com.microsoft::SkipSimplifiedLayerNormalization": skip_normalization,
}
