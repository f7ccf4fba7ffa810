"""A node with tensors for its operands, as the rules of the checker see it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from tiered.certify.domains.bits import RULES, Bits
from tiered.certify.domains.terms import Array
from tiered.certify.evaluation.call import Domain, EvaluatedCall, constant
from tiered.certify.evaluation.evaluate import NameScope, ProofSetting
from tiered.certify.evaluation.values import CheckedTensor

FLOAT = int(onnx.TensorProto.FLOAT)
INT64 = int(onnx.TensorProto.INT64)


def call(
    op: str,
    *inputs: CheckedTensor | None,
    outputs: Sequence[str] = ("y",),
    opset: int = 21,
    trusts: bool = True,
    unrolls: bool = False,
    domain: Domain | None = None,
    **attributes: Any,
) -> EvaluatedCall:
    """Return a node; "domain::Name" is one of another domain."""
    space, _, name = op.rpartition("::")
    node = onnx.helper.make_node(
        name, ["x"] * len(inputs), list(outputs), domain=space, **attributes
    )
    field = Bits() if domain is None else domain
    opsets = {"": opset, space: 1} if space else {"": opset}
    scope = NameScope(
        ProofSetting(field, RULES, opsets, {}, trusts_runtime=trusts, unrolls=unrolls)
    )
    return EvaluatedCall(node, inputs, opsets[space], field, scope)


def free(name: str, *shape: int, dtype: int = FLOAT, domain: Domain | None = None) -> CheckedTensor:
    """Return a tensor of unknowns."""
    field = Bits() if domain is None else domain
    return CheckedTensor(dtype, shape, lambda: field.free((name,), shape), key=(dtype, shape, name))


def known(numbers: Any, kind: Any = np.int64, domain: Domain | None = None) -> CheckedTensor:
    """Return a tensor of numbers."""
    array: Array = np.asarray(numbers, kind)
    dtype = int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))
    return constant(Bits() if domain is None else domain, array, dtype)


def only(results: Sequence[CheckedTensor | None]) -> CheckedTensor:
    """Return the one result of a rule."""
    (made,) = results
    assert made is not None
    return made
