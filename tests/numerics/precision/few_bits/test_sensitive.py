"""A kernel in 8 bits does not decide the error of a model in four bits."""

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from tiered import Model, get_pass
from tiered.graph import DataType
from tiered.runtime import run
from tiered.testing import parse

NODES = """a = Conv<kernel_shape=[1,1]>(x, k) s = Reshape(a, shape)
    b = MatMul(s, w) c = MatMul(b, v) d = Mul(c, gain) e = Add(s, d) f = MatMul(e, u)"""
WITH_SIZES = f"{NODES} n = Shape(x) m = ReduceProd<keepdims=0>(n) g = Cast<to=1>(m) y = Mul(f, g)"


def model_of(gain: float, nodes: str = f"{NODES} y = Identity(f)", channels: int = 64) -> Model:
    """Return a Conv, and a branch of products that a factor makes small, before a last product."""
    proto = parse(f"(float[1,4,8,8] x) => (float[{channels},8] y) {{ {nodes} }}", opset=21)
    random = np.random.default_rng(0)
    arrays: dict[str, Any] = {
        "k": random.standard_normal((channels, 4, 1, 1)).astype(np.float32),
        "w": (random.standard_normal((64, 256)) / 8).astype(np.float32),
        "v": (random.standard_normal((256, 64)) / 16).astype(np.float32),
        "u": (random.standard_normal((64, 8)) / 8).astype(np.float32),
        "shape": np.array([channels, 64], np.int64),
        "gain": np.array(gain, np.float32),
    }
    proto.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in arrays.items()
    )
    return Model.from_proto(proto)


def kernel_is_float(model: Model) -> bool:
    get_pass("weights_to_int4").with_options(min_elements=128).apply(model)
    (conv,) = model.main.nodes_of("Conv")
    kernel = conv.input(1)
    assert kernel is not None
    dequantized = model.main.nodes_of("DequantizeLinear")
    assert any(node.inputs[0] is not None and node.inputs[0].dtype == DataType.UINT4
               for node in dequantized)  # fmt: skip
    return kernel.is_constant


@pytest.mark.parametrize("nodes", [f"{NODES} y = Identity(f)", WITH_SIZES])
@pytest.mark.parametrize(("gain", "is_float"), [(1e-4, True), (1.0, False)])
def test_a_kernel_stays_float_if_its_rounding_would_decide(
    nodes: str, gain: float, is_float: bool
) -> None:
    model = model_of(gain, nodes)
    proto = model.to_proto()
    assert kernel_is_float(model) == is_float
    x = np.random.default_rng(1).standard_normal((1, 4, 8, 8)).astype(np.float32)
    exact, found = (run(each, {"x": x})["y"] for each in (proto, model.to_proto()))
    ratio = 20 * np.log10(np.linalg.norm(exact) / np.linalg.norm(exact - found))
    assert ratio > (40 if is_float else 15)


def test_a_kernel_that_another_path_bypasses_has_8_bits() -> None:
    around = "p = ReduceMean<keepdims=0>(x) o = Add(e, p) f = MatMul(o, u) y = Identity(f)"
    assert not kernel_is_float(model_of(1e-4, NODES.replace("f = MatMul(e, u)", around)))


def test_kernels_that_are_much_of_the_model_have_8_bits() -> None:
    assert not kernel_is_float(model_of(1e-4, channels=2048))


def test_a_kernel_in_a_model_without_inputs_is_quantized() -> None:
    nodes = "x = RandomNormal<shape=[1,2,8,8]>() y = Conv(x, k)"
    proto = parse(f"() => (float[1,2,6,6] y) {{ {nodes} }}", opset=21)
    kernel = np.random.default_rng(0).standard_normal((2, 2, 3, 3)).astype(np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(kernel, "k"))
    model = Model.from_proto(proto)
    get_pass("weights_to_int4").with_options(min_elements=16).apply(model)
    assert model.main.nodes_of("DequantizeLinear")
