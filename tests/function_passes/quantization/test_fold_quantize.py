import numpy as np
import pytest
from onnx import numpy_helper

from tiered import Model, get_pass
from tiered.runtime import run
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "fold_quantize"


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_integers_are_those_of_the_kernel(dtype: str, axis: int | None) -> None:
    random = np.random.default_rng(0)
    x = (random.standard_normal((6, 5)) * 1000).astype(np.float32)
    x[0] = [0.25, 0.75, -0.25, 1e38, -1e38]  # ties, and numbers beyond the dtype
    scale = np.array(
        0.5 if axis is None else [0.5, 3, 1e-3, 7, 0.1, 1][: x.shape[axis]], np.float32
    )
    zero = np.full(scale.shape, 3, dtype)
    name = "" if axis is None else f"<axis={axis}>"
    text = f"() => ({dtype}[6,5] y) {{ q = QuantizeLinear{name}(x, s, z) y = Identity(q) }}"
    proto = parse(text, opset=21)
    for array, value in ((x, "x"), (scale, "s"), (zero, "z")):
        proto.graph.initializer.append(numpy_helper.from_array(array, value))
    expected = run(proto, {})["y"]
    model = Model.from_proto(proto)
    get_pass(PASS).apply(model)
    assert not model.main.nodes_of("QuantizeLinear")
    made = model.to_proto()
    found = {each.name: numpy_helper.to_array(each) for each in made.graph.initializer}
    np.testing.assert_array_equal(next(iter(found.values())), expected)
    get_pass(PASS).apply(model)
    assert model.to_proto() == made


def test_an_absent_zero_point_is_zero() -> None:
    proto = parse(
        "(float[2] x) => (float[2] y) <float s = {0.5}, float[2] c = {1,300}> "
        "{ q = QuantizeLinear(c, s) d = DequantizeLinear(q, s) y = Add(x, d) }"
    )
    model = Model.from_proto(proto)
    get_pass(PASS).apply(model)
    operators = [node.op_type for node in model.main.topological_order()]
    assert operators == ["DequantizeLinear", "Add"]
    feeds = {"x": np.zeros(2, np.float32)}
    assert run(model.to_proto(), feeds)["y"].tolist() == run(proto, feeds)["y"].tolist()


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            "() => (uint4[2] y) <float s = {1}, uint4 z = {1}, float[2] c = {1,2}> "
            "{ y = QuantizeLinear(c, s, z) }",
            "the integers are neither 8 nor 16 bits",
        ),
        (
            "() => (uint8[2] y) <float16 s = {1}, uint8 z = {1}, float16[2] c = {1,2}> "
            "{ y = QuantizeLinear(c, s, z) }",
            "numbers or scales are not float32",
        ),
        (
            "() => (uint8[1,2] y) <float[1,1] s = {1}, uint8[1,1] z = {1}, float[1,2] c = {1,2}> "
            "{ y = QuantizeLinear<axis=1, block_size=2>(c, s, z) }",
            "blocks, or another precision",
        ),
        (
            "(uint8 z) => (uint8[2] y) <float s = {1}, float[2] c = {1,2}> "
            "{ y = QuantizeLinear(c, s, z) }",
            "the zero point is not a constant",
        ),
        (
            "() => (uint8[2] y) <float s = {1}, uint8 z = {1}, float[2] c = {1,inf}> "
            "{ y = QuantizeLinear(c, s, z) }",
            "a number is not finite, or a scale not positive",
        ),
        (
            "() => (uint8[2] y) <float[2] s = {1,2}, uint8[2] z = {1,2}, float[2] c = {1,2}> "
            "{ y = QuantizeLinear(c, s, z) }",
            "the scales are not one for each index of the axis",
        ),
    ],
)
def test_what_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because, opset=21)


def test_operators_of_onnxruntime_with_16_bits() -> None:
    unit = "com.microsoft.DequantizeLinear"
    header = "(float[2] x) => (float[2] y) <float s = {0.5}, uint16 z = {3}"
    assert_rewrites(
        PASS,
        f"{header}, float[2] c = {{1,30000}}> {{ q = com.microsoft.QuantizeLinear(c, s, z)"
        f" d = {unit}(q, s, z) y = Add(x, d) }}",
        f"{header}, uint16[2] q = {{5,60003}}> {{ d = {unit}(q, s, z) y = Add(x, d) }}",
        opset=17,
    )
