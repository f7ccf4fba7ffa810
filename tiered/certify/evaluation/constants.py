"""What has constant operands alone: onnxruntime computes it, as it did when a pass folded it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import onnx

from tiered.certify.domains.terms import Array
from tiered.certify.evaluation.call import EvaluatedCall
from tiered.certify.evaluation.values import MOST_ELEMENTS, CheckedTensor, Unproved
from tiered.graph.core.types import tensor_type, write_type

_RESULTS: Final[OrderedDict[tuple[object, ...], list[Array]]] = OrderedDict()
_KEPT: Final = 256
_KEPT_BYTES: Final = 1 << 16


def run_node(call: EvaluatedCall) -> list[CheckedTensor | None]:
    """Return the results of a node whose operands are all known.

    Raises:
        Unproved: onnxruntime does not run it.
    """
    inputs = [x for x in call.inputs if x is not None]
    if sum(x.size for x in inputs) > MOST_ELEMENTS:
        raise Unproved(f"constants of more than {MOST_ELEMENTS:,} elements are computed")
    bare = onnx.NodeProto()
    bare.CopyFrom(call.node)
    bare.name = ""
    names = iter(f"x{at}" for at in range(len(inputs)))
    bare.input[:] = ["" if x is None else next(names) for x in call.inputs]
    kept = [f"y{at}" if name else "" for at, name in enumerate(call.node.output)]
    bare.output[:] = kept
    key = (bare.SerializeToString(deterministic=True), call.opset, *(x.key for x in inputs))
    found = _RESULTS.get(key)
    if found is None:
        found = _run(bare, call.opset, inputs)
        if sum(array.nbytes for array in found) <= _KEPT_BYTES:
            _RESULTS[key] = found
            if len(_RESULTS) > _KEPT:
                _RESULTS.popitem(last=False)
    call.axioms.add("constants-by-runtime")
    results = iter(found)
    made = [next(results) if name else None for name in kept]
    return [None if array is None else call.constant(array, _dtype(array)) for array in made]


def _dtype(array: Array) -> int:
    return int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))


def _run(node: onnx.NodeProto, opset: int, inputs: Sequence[CheckedTensor]) -> list[Array]:
    from tiered.runtime.session import run
    from tiered.support.errors import TieredError

    infos = [
        onnx.ValueInfoProto(name=f"x{at}", type=write_type(tensor_type(x.dtype, x.shape)))
        for at, x in enumerate(inputs)
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    graph = onnx.helper.make_graph([node], "node", infos, outputs)
    imports = [onnx.helper.make_opsetid(node.domain, opset)]
    if node.domain:
        imports.append(onnx.helper.make_opsetid("", 21))
    model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=10)
    feeds = {f"x{at}": x.known for at, x in enumerate(inputs)}
    try:
        made: list[Any] = list(run(model, feeds).values())
    except TieredError as error:
        raise Unproved(f"onnxruntime does not compute a constant {node.op_type}") from error
    if not all(isinstance(array, np.ndarray) for array in made):
        raise Unproved(f"a constant {node.op_type} is no tensor")
    return made
