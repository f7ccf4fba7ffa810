"""convert_qonnx_to_qdq: equal numbers, round trips on the whole grid, and why a Quant stays."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from tests import qonnx
from tiered import optimize_model
from tiered.runtime import run, run_reference

TO_QDQ, TO_QONNX = "convert_qonnx_to_qdq", "convert_qdq_to_qonnx"


def numbers_of(scale: qonnx.Array) -> qonnx.Array:
    """Return halves and quarters of steps, the limits and infinities; neither NaN nor -0.0."""
    steps = qonnx.floats([*np.arange(-1200, 1201) / 4, 0.49999997, 1.4999999, 1e30, 1e-42, np.inf])
    steps = np.concatenate([steps, -steps[steps != 0]])
    return np.broadcast_to(steps, (2, 3, steps.size)) * scale


GRID = [
    (bits, signed, narrow)
    for bits, signed, narrow in product(range(1, 9), (0, 1), (0, 1))
    if bits > 1 or not (signed or narrow)
]
SCALES = [(), (1,), (1, 1, 1), (3, 1), (1, 3, 1)]


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize(("shape", "opset"), [*product(SCALES, [17]), *product([(3, 1)], [13, 21])])
def test_round_trips_on_the_whole_grid(shape: tuple[int, ...], opset: int) -> None:
    scale = np.linspace(0.1, 3, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    x = numbers_of(scale)
    for bits, signed, narrow in GRID:
        text = (
            "(float[2,3,L] x) => (float[2,3,L] y) "
            f"{{ y = q.Quant<signed = {signed}, narrow = {narrow}>(x, s, z, b) }}"
        )
        weights = {"s": scale, "z": qonnx.floats(0), "b": qonnx.floats(bits)}
        expected = qonnx.quant(x, scale, np.float32(0), bits, signed, narrow)
        qdq, left = qonnx.applied(TO_QDQ, qonnx.parsed(text, opset, **weights))
        assert left == []
        clip = [] if bits == 8 and not narrow else ["Clip"]
        assert qonnx.operators(qdq) == ["QuantizeLinear", *clip, "DequantizeLinear"]
        back, left = qonnx.applied(TO_QONNX, qdq)
        assert (qonnx.operators(back), left) == (["Quant"], [])
        again, _ = qonnx.applied(TO_QDQ, back)
        assert qonnx.operators(again) == qonnx.operators(qdq)
        runnable = optimize_model(back, passes=["import_qonnx"]).model.to_proto()
        for runtime in (run, run_reference):
            found = runtime(qdq, {"x": x})["y"]
            # onnx.reference makes int32 of the steps before they saturate.
            fits = np.abs(x / scale) < (2.0**31 if runtime is run_reference else np.inf)
            assert qonnx.equal(found[fits], expected[fits]), (bits, signed, narrow)
            assert qonnx.same_bits(runtime(again, {"x": x})["y"], found)
            assert qonnx.equal(runtime(runnable, {"x": x})["y"], expected)


@pytest.mark.parametrize(("bits", "signed", "narrow"), [g for g in GRID if g[0] in (2, 3, 5, 8)])
@pytest.mark.parametrize(
    ("s", "z"), [((), ()), ((3, 1), ()), ((), (3, 1)), ((1, 3, 1), (3, 1)), ((1,), (1, 1))]
)
def test_constants_with_a_zero_point_are_stored_as_integers(
    bits: int, signed: int, narrow: int, s: tuple[int, ...], z: tuple[int, ...]
) -> None:
    random = np.random.default_rng(bits)
    scale = np.linspace(0.1, 3, int(np.prod(s)), dtype=np.float32).reshape(s)
    zero = qonnx.floats(random.integers(1, 3, z))
    w = np.asarray(numbers_of(np.ones((1, 3, 1), np.float32)) * np.float32(0.3), np.float32)
    text = (
        "(float x) => (float[2,3,L] y) "
        f"{{ q = q.Quant<signed = {signed}, narrow = {narrow}>(w, s, z, b) y = Add(x, q) }}"
    )
    proto = qonnx.parsed(text, w=w, s=scale, z=zero, b=qonnx.floats(bits))
    made, left = qonnx.applied(TO_QDQ, proto)
    assert (qonnx.operators(made), left) == (["DequantizeLinear", "Add"], [])
    expected = qonnx.quant(w, scale, zero, bits, signed, narrow)
    assert qonnx.equal(run(made, {"x": np.float32(0)})["y"], expected)


def test_a_zero_point_moves_ties_and_sums() -> None:
    # 0.5 + 3 is rounded to 4, and not to 3; 1.4999999 + 128 is a tie of float32.
    for x, zero in ((0.5, 3), (1.4999999, 128)):
        ours = qonnx.quant(qonnx.floats([x]), np.float32(1), np.float32(zero), 8, 0, 0)
        assert ours != np.rint(np.float32(x))


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize("signed", [0, 1])
@pytest.mark.parametrize("shape", [(), (3, 1)])
def test_16_bits_from_opset_21_on(signed: int, shape: tuple[int, ...]) -> None:
    scale = np.linspace(0.1, 3, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    steps = np.arange(-140000, 140000) / 2
    steps = np.concatenate([steps[steps != 0], [0.0, 1e30, -1e30, np.inf, -np.inf]])
    x = np.asarray(np.broadcast_to(steps, (2, 3, steps.size)) * scale, np.float32)
    text = (
        "(float[2,3,L] x) => (float[2,3,L] y) "
        f"{{ y = q.Quant<signed = {signed}, narrow = 0>(x, s, z, b) }}"
    )
    weights = {"s": scale, "z": qonnx.floats(0), "b": qonnx.floats(16)}
    expected = qonnx.quant(x, scale, np.float32(0), 16, signed, 0)
    made, left = qonnx.applied(TO_QDQ, qonnx.parsed(text, 21, **weights))
    assert (qonnx.operators(made), left) == (["QuantizeLinear", "DequantizeLinear"], [])
    assert qonnx.equal(run(made, {"x": x})["y"], expected)
    back, left = qonnx.applied(TO_QONNX, made)
    assert (qonnx.operators(back), left) == (["Quant"], [])
    _, left = qonnx.applied(TO_QDQ, qonnx.parsed(text, 17, **weights))
    assert left == ["integers of 16 bits need opset 21"]


def test_a_constant_beyond_32_bits_stays() -> None:
    text = "(float x) => (float[2] y) { q = q.Quant<narrow = 0>(w, s, z, b) y = Add(x, q) }"
    weights = {name: qonnx.floats(each) for name, each in (("s", 1.0), ("z", 0.0), ("b", 32.0))}
    proto = qonnx.parsed(text, 17, w=qonnx.floats([3e9, 1]), **weights)
    made, left = qonnx.applied(TO_QDQ, proto)
    assert (qonnx.operators(made), left) == (["Quant", "Add"], ["a number is beyond 32 bits"])


def test_many_pairs_go_and_come_back() -> None:
    count = 443
    lines, x = [], "x"
    for at in range(count):
        lines.append(
            f"q{at} = QuantizeLinear<axis=1>({x}, s, z) d{at} = DequantizeLinear<axis=1>(q{at}, s, z)"
            f" r{at} = Relu(d{at})"
        )
        x = f"r{at}"
    text = f"(float[N,3] x) => (float[N,3] {x}) {{ {' '.join(lines)} }}"
    weights: dict[str, np.ndarray[Any, Any]] = {
        "s": qonnx.floats([0.1, 0.2, 0.3]), "z": np.zeros(3, np.int8),
    }  # fmt: skip
    before = qonnx.parsed(text, 17, **weights)
    there, left = qonnx.applied(TO_QONNX, before)
    assert (qonnx.operators(there), left) == (["Quant", "Relu"] * count, [])
    back, left = qonnx.applied(TO_QDQ, there)
    assert (qonnx.operators(back), left) == (qonnx.operators(before), [])


def test_the_older_domain() -> None:
    text = "(float[N] x) => (float[N] y) <float s = {1}, float b = {8}> { y = q.Quant(x, s, z, b) }"
    proto = qonnx.parsed(text, z=qonnx.floats(0))
    proto.graph.node[0].domain = proto.opset_import[1].domain = "onnx.brevitas"
    made, _ = qonnx.applied(TO_QDQ, proto)
    assert qonnx.operators(made) == ["QuantizeLinear", "Clip", "DequantizeLinear"]


WEIGHTS = (
    "<float s = {0.5}, float z = {0}, float three = {3}, float b = {8}, float nine = {9}, "
    "float one = {1}, float[1,1] deep = {1}, float[3] triple = {1, 2, 3}, "
    "float[2,3] table = {1, 2, 3, 4, 5, 6}>"
)


@pytest.mark.parametrize(
    ("x", "node", "reason"),
    [
        ("float[N]", 'q.Quant<rounding_mode = "FLOOR">(x, s, z, b)', "it rounds by FLOOR"),
        ("float[N]", "q.Quant(x, s, z, nine)", "the integers have more than 8 bits"),
        ("float[N]", "q.Quant(x, s, z, one)", "the integers have one bit"),
        ("float[N]", "q.Quant(x, s, three, b)", "the zero point is not zero"),
        ("float[N]", "q.Quant(x, z, z, b)", "a scale is not positive and finite"),
        ("float[N]", "q.Quant(x, deep, z, b)", "the scale may have more dims than x"),
        ("float[N]", "q.Quant(x, triple, z, b)", "the size of the axis is not known"),
        ("float[2,3]", "q.Quant(x, table, z, b)", "the scale is along two axes"),
        ("float[N]", "q.Quant(x, x, z, b)", "a scale, zero point or width is not constant"),
    ],
)
def test_why_a_quant_stays(x: str, node: str, reason: str) -> None:
    proto = qonnx.parsed(f"({x} x) => ({x} y) {WEIGHTS} {{ y = {node} }}")
    made, left = qonnx.applied(TO_QDQ, proto)
    assert (qonnx.operators(made), left) == (["Quant"], [reason])


@pytest.mark.parametrize(
    ("z", "w", "reason"),
    [
        (0.5, 1.0, "the zero point is no integer of the dtype"),
        (200.0, 1.0, "the zero point is no integer of the dtype"),
        (3.0, np.nan, "a number is NaN"),
    ],
)
def test_why_a_quant_of_a_constant_stays(z: float, w: float, reason: str) -> None:
    text = "(float x) => (float[2] y) { q = q.Quant(w, s, z, b) y = Add(x, q) }"
    numbers = {"s": [1.0], "z": [z], "b": [8.0], "w": [w, 2.0]}
    weights = {name: qonnx.floats(each) for name, each in numbers.items()}
    made, left = qonnx.applied(TO_QDQ, qonnx.parsed(text, 17, **weights))
    assert (qonnx.operators(made), left) == (["Quant", "Add"], [reason])


def test_a_quant_of_an_early_opset_stays() -> None:
    proto = qonnx.parsed(
        f"(float[N] x) => (float[N] y) {WEIGHTS} {{ y = q.Quant(x, s, z, b) }}", 12
    )
    assert qonnx.applied(TO_QDQ, proto)[1] == ["the opset is below 13"]


def test_a_quant_with_another_definition_stays() -> None:
    text = "{ y = q.Quant<narrow = 0>(x, s, z, b) }"
    proto = qonnx.defining(qonnx.parsed(f"(float[N] x) => (float[N] y) {WEIGHTS} {text}"))
    made, left = qonnx.applied(TO_QDQ, proto)
    assert (qonnx.operators(made), left) == (["Quant"], ["the model defines Quant"])
