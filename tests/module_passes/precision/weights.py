"""What the tests of weights in few bits share."""

from typing import Any

import numpy as np
import onnx

from tiered import Model, PassContext, get_pass
from tiered.runtime import run
from tiered.testing import parse


def with_weight(
    text: str, shape: tuple[int, ...], *, opset: int = 21, dtype: type = np.float32
) -> onnx.ModelProto:
    """Return a model that has a random weight of the name w."""
    inputs, _, rest = text.partition("=>")
    outputs, _, nodes = rest.partition("{")
    kind = "float16" if dtype is np.float16 else "float"
    dims = ",".join(map(str, shape))
    zeros = ",".join("0" * int(np.prod(shape)))
    declared = f"{inputs} => {outputs} <{kind}[{dims}] w = {{{zeros}}}> {{ {nodes}"
    proto = parse(declared, opset=opset)
    numbers: np.ndarray[Any, Any] = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    proto.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(numbers, "w"))
    return proto


def apply(
    name: str, proto: onnx.ModelProto, options: dict[str, object] | None = None
) -> tuple[Model, list[str]]:
    """Return the model after a pass, valid and at rest, and the findings."""
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    lower = get_pass(name).with_options(**(options or {}))
    lower.apply(model, ctx)
    model.check_view(types=True)
    made = model.to_proto()
    onnx.checker.check_model(made, full_check=True)
    again = Model.from_proto(made)
    lower.apply(again)
    assert again.to_proto() == made
    return model, [str(remark) for remark in ctx.remarks]


def noise_of(proto: onnx.ModelProto, model: Model) -> float:
    """Return the relative error of the outputs, on onnxruntime."""
    drawn = np.random.default_rng(1)
    feeds = {}
    for info in proto.graph.input:
        kind = info.type.tensor_type
        shape = [dim.dim_value or 4 for dim in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        is_index = dtype.kind == "i"
        made = drawn.integers(0, 16, shape) if is_index else drawn.standard_normal(shape)
        feeds[info.name] = made.astype(dtype)
    before, after = run(proto, feeds), run(model.to_proto(), feeds)
    errors = []
    for name, array in before.items():
        assert after[name].dtype == array.dtype
        exact = array.astype(np.float64)
        errors.append(np.linalg.norm(after[name] - exact) / np.linalg.norm(exact))
    return float(max(errors))
