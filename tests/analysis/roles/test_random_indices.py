"""Indices, sizes and shapes by random arithmetic on floats are exact after every pass."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tiered import Model, PassContext, get_pass
from tiered.runtime import run, run_reference
from tiered.testing import parse

Array = np.ndarray[Any, Any]

PASSES: dict[str, dict[str, object]] = {
    "float_to_half": {"measure": True},
    "float_to_bfloat16": {},
    "float_to_mixed": {},
    "float_to_fp8": {},
    "weights_to_int8": {"min_elements": 1},
    "quantize": {"samples": 1},
    "quantize_dynamic": {},
}
"""Each with options that let it do the most."""

ENDS = {
    "Gather": "y = Gather(x, i)",
    "GatherND": "u = Unsqueeze(i, last) y = GatherND(x, u)",
    "ScatterND": "u = Unsqueeze(i, last) r = Gather(x, i) q = ScatterND(x, u, r) y = Neg(q)",
    "Slice": "m = ReduceMin<keepdims = 1>(i) y = Slice(x, m, end, axis)",
    "TopK": "m = ReduceMin<keepdims = 1>(i) y, n = TopK<axis = 0>(x, m)",
    "Tile": "m = ReduceMax<keepdims = 1>(i) d = Div(m, thousand) r = Concat<axis = 0>(d, last) "
    "y = Tile(x, r)",
    "Expand": "m = ReduceMax<keepdims = 1>(i) s = Concat<axis = 0>(m, two) "
    "h = Slice(x, axis, last) y = Expand(h, s)",
    "Reshape": "m = ReduceMax<keepdims = 1>(i) d = Div(m, m) s = Concat<axis = 0>(d, rest) "
    "y = Reshape(x, s)",
    "Pad": "m = ReduceMax<keepdims = 1>(i) e = Concat<axis = 0>(m, axis, axis, axis) y = Pad(x, e)",
    "OneHot": "k = ReduceMax<keepdims = 0>(i) d = Add(k, one) h = OneHot<axis = 0>(i, d, values) "
    "y = Neg(h)",
    "Range": "k = ReduceMax<keepdims = 0>(i) n = Range(zero, k, one) y = Gather(x, n)",
}
STEPS: dict[str, Callable[[Array, Any], Array]] = {
    "Add({}, c)": lambda a, c: a + c,
    "Sub({}, c)": lambda a, c: a - c,
    "Mul({}, c)": lambda a, c: a * c,
    "Div({}, c)": lambda a, c: a / c,
    "Floor({})": lambda a, c: np.floor(a),
    "Abs({})": lambda a, c: np.abs(a),
    "Max({}, c)": np.maximum,
    "Neg({})": lambda a, c: -a,
}
ROWS = 5000


def model_of(source: np.random.Generator, end: str, places: Array) -> onnx.ModelProto:
    """Return a model whose index is about the given one, by steps that are undone at the end."""
    c = np.float32(source.choice([1, 2, 3, 0.5]))
    value, numbers, steps = "f", places.astype(np.float32), list[str]()
    for at in range(int(source.integers(1, 5))):
        step = str(source.choice(list(STEPS)))
        steps.append(f"v{at} = {step.format(value)}")
        numbers, value = STEPS[step](numbers, c).astype(np.float32), f"v{at}"
    # The last step leads to a place in the table, whatever the others made of it.
    shift = np.float32(places.mean() - numbers.mean())
    text = (
        f"(int64[N] p, float[{ROWS},2] x) => (float[A,B] y) "
        f"{{ f = Cast<to = 1>(p) {' '.join(steps)} t = Add({value}, shift) g = Max(t, few) "
        f"l = Min(g, most) i = Cast<to = 7>(l) {ENDS[end]} }}"
    )
    proto = parse(text, opset=19)
    constants: dict[str, Any] = {
        "c": c,
        "shift": shift,
        "few": np.float32(1),
        "most": np.float32(ROWS - 1),
        "last": np.array([1]),
        "axis": np.array([0]),
        "end": np.array([ROWS]),
        "two": np.array([2]),
        "rest": np.array([-1]),
        "thousand": np.array([1000]),
        "one": np.array(1),
        "zero": np.array(0),
        "values": np.array([0, 1], np.float32),
    }
    used = {name for node in proto.graph.node for name in node.input}
    proto.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(array), name)
        for name, array in constants.items()
        if name in used
    )
    return proto


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("end", ENDS)
def test_random_indices_are_exact(end: str, name: str) -> None:
    for seed in range(3):
        source = np.random.default_rng([seed, *end.encode()])
        places = source.integers(2049, ROWS, 3)
        proto = model_of(source, end, places)
        feeds = {"p": places, "x": source.standard_normal((ROWS, 2)).astype(np.float32)}
        expected = run(proto, feeds)["y"]
        model = Model.from_proto(proto)
        get_pass(name).with_options(**PASSES[name]).apply(model, PassContext.isolated())
        made = model.to_proto()
        onnx.checker.check_model(made, full_check=True)
        for runtime in (run_reference,) if name == "float_to_bfloat16" else (run, run_reference):
            found = runtime(made, feeds)["y"]
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=0.1, atol=0.02)
