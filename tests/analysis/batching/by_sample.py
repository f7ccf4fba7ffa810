"""Each sample of a model for another batch, beside a run of its own of the model before."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from tiered import Model, get_pass
from tiered.runtime import Session
from tiered.testing import parse


def changed(
    text: str | onnx.ModelProto, size: int | str, axes: Mapping[str, int] | None = None
) -> tuple[onnx.ModelProto, dict[str, Any], dict[str, int], int]:
    """Return the model for another batch, where its outputs and inputs have samples, and the size
    of the former batch."""
    model = Model.from_proto(parse(text) if isinstance(text, str) else text)
    stamp = model.journal.stamp()
    get_pass("change_batch", size=size, axes=axes).apply(model)
    batch = model.interface_since(stamp).batch
    assert batch is not None
    return model.to_proto(), dict(batch.outputs), dict(batch.inputs), batch.old


def assert_each_by_itself(
    text: str | onnx.ModelProto,
    size: int | str,
    axes: Mapping[str, int] | None = None,
    *,
    label: str = "",
    rtol: float = 1e-5,
) -> onnx.ModelProto:
    """Assert that each part of the new batch is what the model before computes of it alone."""
    before = parse(text) if isinstance(text, str) else text
    made, outputs, inputs, old = changed(before, size, axes)
    onnx.checker.check_model(made, full_check=True)
    number = size if isinstance(size, int) else 3 * old
    feeds = {
        info.name: _drawn(info, inputs.get(info.name), number, seed)
        for seed, info in enumerate(before.graph.input)
    }
    after, alone = Session(made), Session(before)
    found = after.run(feeds)
    for start in range(0, number, old):
        samples = [(start + at) % number for at in range(old)]
        part = {
            name: array.take(samples, axis=inputs[name]) if name in inputs else array
            for name, array in feeds.items()
        }
        for name, expected in alone.run(part).items():
            actual = _taken(found[name], outputs[name], samples, number)
            np.testing.assert_allclose(
                actual,
                expected,
                rtol=rtol,
                atol=rtol,
                err_msg=f"{label} {name} of samples {samples}",
            )
    return made


def _drawn(info: onnx.ValueInfoProto, axis: int | None, size: int, seed: int) -> Any:
    shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
    if axis is not None:
        shape[axis] = size
    random = np.random.default_rng(seed)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
    if dtype == np.bool_:
        return np.array(random.integers(0, 2, shape), np.bool_)
    if dtype.kind in "iu":
        return np.array(random.integers(0, 3, shape), dtype)
    return np.array(random.standard_normal(shape), dtype)


def _taken(array: Any, place: tuple[int, int, int] | None, samples: list[int], size: int) -> Any:
    """Return the part of an output that belongs to samples; of a sequence, of each tensor."""
    if place is None:
        return array
    if isinstance(array, list):
        return [_taken(each, place, samples, size) for each in array]
    axis, outer, inner = place
    shape = array.shape
    split = array.reshape((*shape[:axis], outer, size, inner, *shape[axis + 1 :]))
    part = split.take(samples, axis=axis + 1)
    return part.reshape((*shape[:axis], outer * len(samples) * inner, *shape[axis + 1 :]))
