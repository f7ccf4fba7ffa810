"""The pipeline `streamline`: its name, and that integer networks compute the same numbers."""

import itertools
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import ArrayLike

from tests.qonnx import floats, operators, parsed
from tiered import PassContext, Sequential, optimize_model, parse_pipeline
from tiered.compat import onnx_passes
from tiered.runtime import run

Arrays = dict[str, np.ndarray[Any, Any]]


def streamlined(proto: onnx.ModelProto) -> onnx.ModelProto:
    made = optimize_model(proto, passes="streamline").model.to_proto()
    again = optimize_model(made, passes="streamline")
    assert again.model.to_proto() == made
    return made


def outputs(proto: onnx.ModelProto, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    defined = optimize_model(proto, passes=["import_qonnx"]).model.to_proto()
    found: np.ndarray[Any, Any] = run(defined, {"x": x})["y"]
    return found


def every_row(width: int, bits: int) -> np.ndarray[Any, Any]:
    """Return all rows of signed integers of so many bits."""
    integers = range(-(1 << bits - 1), 1 << bits - 1)
    return floats(list(itertools.product(integers, repeat=width)))


def test_the_name_is_a_pipeline_wherever_passes_have_names() -> None:
    proto = parsed("(float[N] x) => (float[N] y) { s = Mul(x, c) y = Relu(s) }", c=floats(2))
    assert operators(streamlined(proto)) == ["Relu", "Mul"]
    with PassContext(opt_level=4):
        assert operators(Sequential(["streamline"])(proto)) == ["Relu", "Mul"]
    pipeline = parse_pipeline("streamline")
    assert parse_pipeline(pipeline.text) == pipeline
    assert parse_pipeline("Streamline") == pipeline
    assert onnx_passes.collect(["Streamline"]) == list(pipeline)
    assert operators(onnx_passes.Streamline()(proto)) == ["Relu", "Mul"]


LINEAR: Arrays = {
    "w": floats([[1, -2, 3], [0, 2, -1]]),
    "v": floats([[1, 1], [-2, 0], [1, -1]]),
    "c": floats(0.25),
    "rows": floats([0.5, 4, 0.125]),
    "k": floats([0.5, -0.75, 1]),
    "t": floats(np.linspace(-4, 4, 15)[None] * [[1], [0.5], [2]]),
    "u": floats(np.linspace(-3, 3, 7)[None]),
}


@pytest.mark.parametrize("bits", [2, 3, 4])
@pytest.mark.parametrize(
    "nodes",
    [
        "a = Mul(x, c) b = MatMul(a, w) d = Mul(b, rows) e = Add(d, k) f = q.MultiThreshold(e, t)"
        " g = Mul(f, c) h = MatMul(g, v) y = q.MultiThreshold(h, u)",
        "a = Mul(x, c) b = Relu(a) d = Transpose(b) e = Transpose(d) f = MatMul(e, w)"
        " y = q.MultiThreshold(f, t)",
        "a = Add(x, c) b = MatMul(a, w) d = Mul(b, rows) y = q.MultiThreshold(d, t)",
        "a = Mul(x, c) b = MatMul(a, w) d = Neg(x) e = Mul(d, c) f = MatMul(e, w)"
        " g = Add(b, f) y = q.MultiThreshold(g, t)",
        "a = Mul(x, c) b = Concat<axis=1>(a, a) y = q.MultiThreshold(b, u)",
    ],
)
def test_all_integers_of_linear_layers(nodes: str, bits: int) -> None:
    used = {name: array for name, array in LINEAR.items() if f" {name})" in nodes}
    before = parsed(f"(float[N,2] x) => (float[N,M] y) {{ {nodes} }}", 17, **used)
    after = streamlined(before)
    sums = ["Add"] if "Add(b, f)" in nodes else []
    assert [kind for kind in operators(after) if kind in ("Add", "Mul")] == sums
    x = every_row(2, bits)
    assert (outputs(before, x) == outputs(after, x)).all()


def test_all_integers_of_convolutions() -> None:
    nodes = (
        "a = Mul(x, c) b = Conv<kernel_shape=[2,2]>(a, w) d = BatchNormalization(b, s, h, m, v)"
        " e = q.MultiThreshold(d, t) f = Mul(e, c) g = MaxPool<kernel_shape=[1,1]>(f)"
        " y = q.MultiThreshold(g, t)"
    )
    random = np.random.default_rng(0)
    weights: Arrays = {
        "c": floats(0.5),
        "w": floats(random.integers(-3, 4, (2, 1, 2, 2))),
        "s": floats([0.5, 2]),
        "h": floats([1, -0.5]),
        "m": floats([0.25, 0]),
        "v": floats([1, 4]) - np.float32(1e-5),
        "t": floats(np.linspace(-3, 3.3, 7)[None] * [[1], [0.7]]),
    }
    before = parsed(f"(float[N,1,2,2] x) => (float[N,2,1,1] y) {{ {nodes} }}", 17, **weights)
    after = streamlined(before)
    assert sorted(operators(after)) == ["Conv", "MaxPool", "MultiThreshold", "MultiThreshold"]
    x = every_row(4, 3).reshape(-1, 1, 2, 2)
    assert (outputs(before, x) == outputs(after, x)).all()


def test_nothing_moves_past_what_reads_it_twice_or_pads() -> None:
    nodes = (
        "a = Mul(x, c) b = Relu(a) d = Sigmoid(a) e = Add(b, d)"
        " f = Add(e, c) y = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(f, w)"
    )
    before = parsed(
        f"(float[1,1,4,4] x) => (float[1,1,4,4] y) {{ {nodes} }}",
        c=floats(0.3),
        w=floats(np.ones((1, 1, 3, 3))),
    )
    assert operators(streamlined(before)) == operators(before)


def test_rules_that_are_wrong_for_some_numbers_are_not_members() -> None:
    nodes = "a = Mul(x, z) b = Div(x, x) d = Sub(x, x) e = Add(a, b) f = Add(e, d) y = Mul(f, c)"
    before = parsed(f"(float[3] x) => (float[3] y) {{ {nodes} }}", z=floats(0), c=floats(2))
    after = streamlined(before)
    x = floats([0, np.inf, np.nan])
    assert np.isnan(outputs(after, x)).all()
    assert operators(after) == operators(before)


def a_network(random: np.random.Generator) -> tuple[str, Arrays]:
    """Return the nodes and constants of a network on rows of two numbers, all of them dyadic.

    Its sums and products are exact in float32, so that results are equal in any order.
    """
    nodes: list[str] = []
    weights: Arrays = {}
    x = "x"

    def constant(array: ArrayLike) -> str:
        name = f"c{len(weights)}"
        weights[name] = floats(array)
        return name

    for at in range(int(random.integers(4, 10))):
        y, kind = (
            f"y{at}",
            random.choice(
                ["scale", "offset", "product", "relu", "transpose", "split", "fork", "threshold"]
            ),
        )
        shape = [(), (1,), (2,), (1, 2)][random.integers(4)]
        powers = 2.0 ** random.integers(-2, 3, shape)
        match kind:
            case "scale":
                sign = random.choice([-1, 1])
                text = f"{y} = {random.choice(['Mul', 'Div'])}({x}, {constant(sign * powers)})"
            case "offset":
                offset = constant(random.integers(-8, 9, shape) / 4)
                text = f"{y} = {random.choice(['Add', 'Sub'])}({x}, {offset})"
            case "product":
                text = f"{y} = MatMul({x}, {constant(random.integers(-2, 3, (2, 2)))})"
            case "relu":
                text = f"{y} = Relu({x})"
            case "transpose":
                scale = constant(2.0 ** random.integers(-2, 3))
                text = f"a{y} = Transpose({x}) b{y} = Mul(a{y}, {scale}) {y} = Transpose(b{y})"
            case "split":
                weights["halves"] = np.array([1, 1], np.int64)
                text = f"a{y}, b{y} = Split<axis=1>({x}, halves) {y} = Concat<axis=1>(b{y}, a{y})"
            case "fork":
                scale = constant(2.0 ** random.integers(-2, 3))
                text = (
                    f"a{y} = Relu({x}) b{y} = Mul(a{y}, {scale}) d{y} = Mul({x}, {scale})"
                    f" {y} = Sub(b{y}, d{y})"
                )
            case _:
                t = constant(np.sort(random.integers(-20, 21, (2, 5)) / 4, axis=1))
                text = f"{y} = q.MultiThreshold({x}, {t})"
        nodes.append(text)
        x = y
    t = constant(np.sort(random.integers(-40, 41, (2, 7)) / 8, axis=1))
    return " ".join([*nodes, f"y = q.MultiThreshold({x}, {t})"]), weights


@pytest.mark.parametrize("seed", range(40))
def test_all_integers_of_random_networks(seed: int) -> None:
    nodes, weights = a_network(np.random.default_rng(seed))
    before = parsed(f"(float[N,2] x) => (float[N,2] y) {{ {nodes} }}", 17, **weights)
    after = streamlined(before)
    x = every_row(2, 4)
    assert (outputs(before, x) == outputs(after, x)).all()
    steps = {"Add", "Div", "Mul", "Sub"}
    kept = [sum(kind in steps for kind in operators(proto)) for proto in (before, after)]
    assert kept[1] <= kept[0]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("middle", ["Identity", "Transpose<perm=[0,1]>"])
def test_chains_of_steps_keep_every_count_at_ties(seed: int, middle: str) -> None:
    random = np.random.default_rng(seed)
    x = np.arange(-128, 128, dtype=np.int8).reshape(-1, 1)
    numbers, text, constants = x.astype(np.float32), "a0 = Cast<to=1>(x)", dict[str, Any]()
    computed = {"Add": np.add, "Div": np.divide, "Mul": np.multiply, "Sub": np.subtract}
    for at in range(5):
        name = str(random.choice(list(computed)))
        choice = [0.1, 0.37, 0.7, 3] if name in ("Div", "Mul") else [0.1, 0.37, 3, 7, -1, 0.7]
        constants[f"c{at}"] = constant = floats(random.choice(choice))
        numbers = computed[name](numbers, constant).astype(np.float32)
        moved = middle if at == 2 else "Identity"
        text += f" s{at} = {name}(a{at}, c{at}) a{at + 1} = {moved}(s{at})"
    # Thresholds that are met exactly: a step that is merged with another one may miss them.
    met = np.sort(random.choice(numbers.ravel(), 8, replace=False)).reshape(1, -1)
    text = f"(int8[N,1] x) => (float[N,1] y) {{ {text} y = q.MultiThreshold(a5, t) }}"
    proto = parsed(text, t=met, **constants)
    made = streamlined(proto)
    assert operators(made)[-1] == "MultiThreshold"
    assert (outputs(made, x) == outputs(proto, x)).all()
