"""Operators of com.microsoft over the reals, each by its definition in standard operators."""

from __future__ import annotations

from typing import Final

from tiered.certify.definitions.attention_definition import ATTENTION
from tiered.certify.definitions.composed import RULES, Composed, Rule, optional
from tiered.certify.definitions.contrib_functions import CONTRIB_ON_BITS
from tiered.certify.definitions.quantized_definitions import QUANTIZED_REALS
from tiered.certify.definitions.standard_definitions import DEFINITIONS
from tiered.certify.evaluation.call import EvaluatedCall, NoRule, Results
from tiered.certify.evaluation.values import CheckedTensor
from tiered.certify.reals.lifting import lifted, or_else
from tiered.certify.reals.real_meanings import REALS


def bias_gelu(call: EvaluatedCall) -> Results:
    make, bias = Composed(call), optional(call, 1)
    x = call.operand(0) if bias is None else make("Add", call.operand(0), bias)
    approximate = "tanh" if call.op == "FastGelu" else "none"
    return [make("Gelu", x, approximate=approximate)]


def quick_gelu(call: EvaluatedCall) -> Results:
    make, x = Composed(call), call.operand(0)
    alpha = make.scalar(call.get("alpha", 1.702), x)
    return [make("Mul", x, make("Sigmoid", make("Mul", x, alpha)))]


def fused_matmul(call: EvaluatedCall) -> Results:
    make, inputs = Composed(call), [call.operand(0), call.operand(1)]
    for at, name in enumerate(("transA", "transB")):
        rank = inputs[at].rank
        if call.get(name.replace("trans", "transBatch"), 0) and rank > 2:
            # [m, *batch, k] is [*batch, m, k].
            inputs[at] = make("Transpose", inputs[at], perm=[*range(1, rank - 1), 0, rank - 1])
        if call.get(name, 0) and rank > 1:
            perm = [*range(rank - 2), rank - 1, rank - 2]
            inputs[at] = make("Transpose", inputs[at], perm=perm)
    product = make("MatMul", *inputs)
    return [make("Mul", product, make.scalar(call.get("alpha", 1.0), product))]


def activated(
    call: EvaluatedCall, make: Composed, x: CheckedTensor, name: str, params: list[float]
) -> CheckedTensor:
    """Return the activation of FusedConv and FusedGemm."""
    keys = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta")}
    if name == "Clip":
        return make("Clip", x, *(make.scalar(number, x) for number in params))
    if name not in ("", "Relu", "Sigmoid", "Tanh", *keys):
        raise NoRule
    held = dict(zip(keys.get(name, ()), params, strict=False))
    return make(name, x, **held) if name else x


def fused_conv(call: EvaluatedCall) -> Results:
    make = Composed(call)
    own = {k: v for k, v in call.attributes.items() if not k.startswith("activation")}
    made = make("Conv", call.operand(0), call.operand(1), optional(call, 2), **own)
    other = optional(call, 3)
    made = made if other is None else make("Add", made, other)
    params = list(call.get("activation_params") or [])
    return [activated(call, make, made, call.get("activation", ""), params)]


def fused_gemm(call: EvaluatedCall) -> Results:
    make = Composed(call)
    own = {k: v for k, v in call.attributes.items() if not k.startswith("activation")}
    made = make("Gemm", call.operand(0), call.operand(1), optional(call, 2), **own)
    params = [call.attributes[k] for k in ("activation_alpha", "activation_beta")
              if k in call.attributes]  # fmt: skip
    return [activated(call, make, made, call.get("activation", ""), params)]


def skip_normalization(call: EvaluatedCall) -> Results:
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
    # The mean and the deviation have no terms: nothing may read them.
    return [made, None, None, x][: len(names)]


def simplified_normalization(call: EvaluatedCall) -> Results:
    if len([name for name in call.node.output if name]) > 1:
        raise NoRule
    make = Composed(call)
    held = {"axis": call.get("axis", -1), "epsilon": float(call.get("epsilon", 1e-5))}
    return [make("RMSNormalization", call.operand(0), call.operand(1), **held)]


def swish(call: EvaluatedCall) -> Results:
    """Swish and HardSwish as products."""
    make, x = Composed(call), call.operand(0)
    if x.known is not None:
        raise NoRule
    alpha = make.scalar(call.get("alpha", 1.0), x)
    return [make("Mul", x, make("Sigmoid", make("Mul", x, alpha)))]


OWN: Final[dict[str, Rule]] = {
    **ATTENTION,
    **QUANTIZED_REALS,
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


_PLAIN: Final[dict[str, Rule]] = {
    **{name: lifted(rule) for name, rule in CONTRIB_ON_BITS.items()},
    **REALS,
}
REALS_AND_CONTRIB: Final[dict[str, Rule]] = {
    **_PLAIN,
    **{name: or_else(rule, _PLAIN.get(name)) for name, rule in OWN.items()},
}
"""Fused operators by their definitions; those of the standard as functions."""
BY_DEFINITION: Final[dict[str, Rule]] = {
    **REALS_AND_CONTRIB,
    **{name: or_else(rule, _PLAIN.get(name)) for name, rule in DEFINITIONS.items()},
}
"""Operators of the standard by their definitions, too."""
RULES.update(BY_DEFINITION)
