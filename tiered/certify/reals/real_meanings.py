"""The meaning of operators over the reals, on elements scale * atom + offset.

What has no rule here is an unknown function of its operands: the rule on bits is used, on the terms
of the operands.
"""

from __future__ import annotations

from typing import Final

from tiered.certify.domains.bits import RULES as ON_BITS
from tiered.certify.evaluation.call import EvaluatedCall, Results
from tiered.certify.evaluation.values import Unproved
from tiered.certify.reals.lifting import Rule, function, lifted, or_else
from tiered.certify.reals.means import gelu, global_average, layer_normalization, reduce
from tiered.certify.reals.pools import POOLS
from tiered.certify.reals.real_arithmetic import (
    add,
    batch_normalization,
    cast,
    div,
    mul,
    neg,
    power,
    reciprocal,
    sub,
)
from tiered.certify.reals.real_extrema import BETWEEN
from tiered.certify.reals.real_products import conv, gemm, matmul
from tiered.certify.reals.softmax import without_shifts
from tiered.certify.rules.bit_elementwise import PLAIN
from tiered.certify.rules.flow import FLOW
from tiered.certify.rules.moves import MOVES
from tiered.certify.rules.resizing import resize

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
    "MatMul": or_else(matmul, lifted(ON_BITS["MatMul"])),
    "Mul": mul,
    "Neg": neg,
    "Pow": power,
    "RMSNormalization": layer_normalization,
    "ReduceMean": reduce,
    "ReduceSum": reduce,
    "Reciprocal": reciprocal,
    "Resize": lifted(resize),
    "Softmax": without_shifts(lifted(ON_BITS["Softmax"])),
    "Sub": sub,
    "Sum": add,
    "Upsample": lifted(resize),
}


def _gather(call: EvaluatedCall) -> Results:
    is_known = call.operand(1).known is not None
    return MOVES["Gather"](call) if is_known else lifted(MOVES["Gather"])(call)


def _if(call: EvaluatedCall) -> Results:
    if call.operand(0).known is None:
        raise Unproved("an If of an unknown condition has no rule over the reals")
    return FLOW["If"](call)


REALS.update({"Gather": _gather, "If": _if})
REALS.update({name: or_else(rule, REALS[name]) for name, rule in {**BETWEEN, **POOLS}.items()})
