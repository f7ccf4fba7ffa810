"""What a target lost: kernels of onnxruntime, weights in integers."""

import numpy as np
from onnx import numpy_helper

from tests.small import made_by, parsed
from tiered import Model, get_backend
from tiered.targets.backend import Backend
from tiered.targets.lost_kernels import note_float_weights, noting_lost_kernels
from tiered.testing import parse


def test_operators_that_lost_their_kernel_are_noted_with_their_number() -> None:
    text = """(float[2] x, double[2] z) => (float[2] y) { a = Relu(x)  y = Relu(a)  b = Erf(x)
        c = Erf(z) }"""
    model = parsed(text)
    graph = model.main
    with noting_lost_kernels(model):
        assert model.notes == []
        for name in "ayb":
            graph.set_operator(made_by(model, name), "NoSuch", "")
        graph.set_operator(made_by(model, "b"), "Other", "")
    lost = "onnxruntime has no kernel for {} now ({}, as {!r}): the target has no such operator"
    a, b = made_by(model, "a").label, made_by(model, "b").label
    assert model.notes == [
        lost.format("NoSuch", "2 nodes", a),
        lost.format("Other", "1 node", b),
    ]


def test_weights_in_integers_that_became_floats_are_noted() -> None:
    portable = get_backend("portable")
    npu = Backend(name="npu")
    for halves, dtypes, backend, is_noted in (
        (0, (np.int8, np.uint8), npu, True),
        (1, (np.int8, np.uint8), npu, False),
        (0, (np.int8, np.uint8), portable, False),
        (0, (np.int16, np.float32), npu, False),
    ):
        proto = parse("(float[2] x) => (float[2] y) { y = Neg(x) }")
        for name, dtype in zip("pq", dtypes, strict=True):
            array = np.ones((2, 3), dtype)
            proto.graph.initializer.append(numpy_helper.from_array(array, name))
        model = Model.from_proto(proto)
        for value in model.main.initializers[halves:]:
            model.main.remove_constant(value)
        note_float_weights(model, backend)
        expected = (
            "12 weights of 8 bits are floats now, in four times the bytes: npu has no "
            "DequantizeLinear; `--disable lower_quantized_constant` and `--disable legalize` keep "
            "them"
        )
        assert model.notes == ([expected] if is_noted else []), (halves, dtypes, backend)
