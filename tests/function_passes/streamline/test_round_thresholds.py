import numpy as np
import onnx
import pytest

from tests.qonnx import applied, defining, floats, operators, parsed
from tiered import Model, optimize_model
from tiered.runtime import run

PASS = "round_thresholds"
X = "(int8[N,1] x) => (float[N,1] y) { a = Cast<to=1>(x) y = q.MultiThreshold(a, t) }"


def thresholds_of(proto: onnx.ModelProto) -> list[float]:
    model = Model.from_proto(proto)
    (node,) = [node for node in model.main.nodes if node.op_type == "MultiThreshold"]
    value = node.input(1)
    assert value is not None
    assert value.const is not None
    return [float(number) for number in value.const.ravel()]


def test_thresholds_become_integers_within_one_step_of_the_range() -> None:
    t = floats([[-1e9, -128.5, -127.5, -0.5, 0.25, 3, 126.5, 127.5, 400, np.inf]])
    before = parsed(X, t=t)
    after, _ = applied(PASS, before)
    assert thresholds_of(after) == [-128, -128, -127, 0, 1, 3, 127, 128, 128, 128]
    x = np.arange(-128, 128, dtype=np.int8).reshape(-1, 1)
    counts = []
    for each in (before, after):
        defined = optimize_model(each, passes=["import_qonnx"]).model.to_proto()
        counts.append(run(defined, {"x": x})["y"])
    assert (counts[0] == counts[1]).all()


def test_streamline_rounds_what_the_steps_leave() -> None:
    nodes = "a = Cast<to=1>(x) b = Mul(a, c) d = Add(b, k) y = q.MultiThreshold(d, t)"
    text = f"(int8[N,1] x) => (float[N,1] y) {{ {nodes} }}"
    before = parsed(text, c=floats(0.3), k=floats(0.7), t=floats([[-1, 0, 1.1]]))
    after = optimize_model(before, passes="streamline").model.to_proto()
    assert operators(after) == ["Cast", "MultiThreshold"]
    assert thresholds_of(after) == [-5, -2, 2]


@pytest.mark.parametrize("middle", ["", "Identity", "Reshape"])
def test_multiples_of_a_half_reach_a_quarter_at_a_half(middle: str) -> None:
    quantized = {
        "Quant": "a = q.Quant<signed=1, narrow=0>(x, s, z, b)",
        "DequantizeLinear": "i = QuantizeLinear(x, s, k) a = DequantizeLinear(i, s, k)",
        "MultiThreshold": "a = q.MultiThreshold<out_scale=0.5>(x, u)",
    }
    moved = {"": "", "Identity": "c = Identity(a)", "Reshape": "c = Reshape(a, d)"}[middle]
    x = np.array([[-1], [0], [0.5], [1]], np.float32)
    for text in quantized.values():
        before = parsed(
            f"(float[N,1] x) => (float[N,1] y) <int8 k = {{0}}, int64[2] d = {{-1,1}}> "
            f"{{ {text} {moved} y = q.MultiThreshold({'c' if middle else 'a'}, t) }}",
            s=floats(0.5), z=floats(0), b=floats(3), t=floats([[0.25]]), u=floats([[0.5, 1]]),
        )  # fmt: skip
        for passes in (PASS, "streamline"):
            after = optimize_model(before, passes=passes).model.to_proto()
            defined = optimize_model(after, passes=["import_qonnx"]).model.to_proto()
            assert run(defined, {"x": x})["y"].ravel().tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("text", "t", "because"),
    [
        (
            "(float[N,1] x) => (float[N,1] y) { y = q.MultiThreshold(x, t) }",
            [[0.5]], "x is not known to be of integers",
        ),
        (
            "(int8[N,1] x) => (float[N,1] y) <float s = {0.5}> "
            "{ a = DequantizeLinear(x, s) y = q.MultiThreshold(a, t) }",
            [[0.25]], "x is of multiples of a scale, not of integers",
        ),
        (X, [[-5, 2, 128]], "the thresholds are integers already"),
        (X, [[np.nan]], "thresholds are not constant numbers of float32"),
        (X.replace("int8", "int32"), [[0.5]], "the integers are not all float32"),
    ],
)  # fmt: skip
def test_what_stays(text: str, t: list[list[float]], because: str) -> None:
    _, missed = applied(PASS, parsed(text, t=floats(t)))
    assert missed == [because]


def test_a_model_with_its_own_definition() -> None:
    proto = defining(parsed(X, t=floats([[0.5]])))
    proto.functions[0].name = "MultiThreshold"
    proto.functions[0].ClearField("attribute")
    proto.functions[0].ClearField("input")
    proto.functions[0].input.extend(["x", "t"])
    _, missed = applied(PASS, proto)
    assert missed == ["the model defines the operator"]
