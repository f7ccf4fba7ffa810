from typing import Any

import numpy as np
import pytest

from tests.qonnx import SPECIAL, applied, defining, floats, operators, parsed, same_bits
from tiered import optimize_model
from tiered.runtime import run

PASS = "fuse_affine_into_threshold"
MULTI = "y = q.MultiThreshold<{}>(s, t)"
PLAIN = "y = q.MultiThreshold(s, t)"


def graph(nodes: str, x: str = "float[2,3] x") -> str:
    shape = x.partition("[")[2].rstrip(" x").rstrip("]")
    return f"({x}) => (float[{shape}] y) {{ {nodes} }}"


def same(before: Any, after: Any, x: Any) -> bool:
    """Return whether two models compute the same, once the operators have a definition."""
    made = [
        optimize_model(each, passes=["import_qonnx"]).model.to_proto() for each in (before, after)
    ]
    results = [run(each, {"x": x})["y"] for each in made]
    return same_bits(results[0], results[1])


@pytest.mark.parametrize("step", ["Add", "Div", "Mul", "Sub"])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("layout", "shape", "channels"),
    [
        ("NCHW", "2,3,4,5", (3, 1, 1)),
        ("NHWC", "2,4,5,3", (3,)),
        ("NCHW", "7,3", (3,)),
        ("NCHW", "2,3,4,5", ()),
        ("NCHW", "N,3", (1,)),
    ],
)
def test_all_counts_are_equal(
    step: str, sign: int, layout: str, shape: str, channels: tuple[int, ...]
) -> None:
    random = np.random.default_rng(0)
    c = floats(sign * random.uniform(0.1, 3, channels))
    t = floats(np.sort(random.normal(size=(3, 15)), axis=1))
    nodes = f"s = {step}(x, c) {MULTI}".format(f'data_layout="{layout}", out_scale=0.5')
    before = parsed(graph(nodes, f"float[{shape}] x"), c=c, t=t)
    after, _ = applied(PASS, before)
    negated = sign < 0 and step in ("Div", "Mul")
    assert operators(after) == [*(["Neg"] if negated else []), "MultiThreshold"]
    dims = [2 if dim == "N" else int(dim) for dim in shape.split(",")]
    x = floats(random.normal(size=dims))
    x.reshape(-1)[: min(len(SPECIAL), x.size)] = SPECIAL[: x.size]
    assert same(before, after, x)


def test_all_integers_and_every_threshold() -> None:
    integers = floats(np.arange(-128, 128)).reshape(-1, 1)
    for scale, offset in ((0.1, 0.0), (0.3, 0.7), (1 / 3, -1.1), (7.3, 100.0)):
        steps = "s0 = Mul(x, c) s = Add(s0, b) " + PLAIN
        t = floats(integers.T[:, ::3] * np.float32(scale) + np.float32(offset))
        before = parsed(graph(steps, "float[256,1] x"), c=floats(scale), b=floats(offset), t=t)
        after, _ = applied(PASS, before)
        assert operators(after) == ["MultiThreshold"]
        assert same(before, after, integers)


@pytest.mark.parametrize(
    ("nodes", "x", "because"),
    [
        ("s = Mul(x, zero) " + PLAIN, "float[2,3] x", "the step does not keep the order of numbers"),
        ("s = Mul(x, both) " + PLAIN, "float[2,3] x", "the factors have both signs"),
        ("s = Mul(x, rows) " + PLAIN, "float[2,3] x", "the constant does not vary along the channels"),
        (
            "s = Mul(x, all) " + PLAIN, "float[2,3] x",
            "the constant does not vary along one axis alone",
        ),
        (
            "s = Mul(x, rank3) " + PLAIN, "float[2,3] x",
            "the constant adds dims, or the rank is not known",
        ),
        (
            "s = Mul(x, c) y = q.MultiThreshold(s, x)", "float[2,3] x",
            "the thresholds are not constant",
        ),
        (
            "s = Mul(x, c) y = q.MultiThreshold<data_layout=\"CHW\">(s, t)", "float[2,3] x",
            "the data layout 'CHW' is not known",
        ),
    ],
)  # fmt: skip
def test_what_stays(nodes: str, x: str, because: str) -> None:
    weights = {
        "zero": floats(0), "both": floats([1, -1, 1]), "rows": floats([[1], [2]]), "c": floats(2),
        "all": floats([[1, 2, 3], [4, 5, 6]]), "t": floats([[0, 1]]), "rank3": floats([[[2]]]),
    }  # fmt: skip
    text = nodes
    used = {name: array for name, array in weights.items() if f" {name})" in text}
    made, missed = applied(PASS, parsed(graph(text, x), 17, **used))
    assert operators(made) == ["Mul", "MultiThreshold"]
    assert missed == [because]


def test_a_model_with_its_own_definition() -> None:
    proto = parsed(graph("s = Mul(x, c) " + PLAIN), c=floats(2), t=floats([[0, 1]]))
    model = defining(proto)
    model.functions[0].name = "MultiThreshold"
    model.functions[0].ClearField("input")
    model.functions[0].input.extend(["x", "t"])
    model.functions[0].ClearField("attribute")
    _, missed = applied(PASS, model)
    assert missed == ["the model defines MultiThreshold"]
