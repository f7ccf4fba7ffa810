"""A kernel in 8 bits does not decide the error of a model in four bits."""

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from tests.small import made_by, parsed
from tiered import Model, get_pass
from tiered.graph import DataType
from tiered.numerics.precision.few_bits import sensitive
from tiered.numerics.precision.few_bits.sensitive import (
    chooser_of,
    last_products,
    undiluted_kernels,
)
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


# --- without a run --------------------------------------------------------------------------------


def test_kernels_tables_and_last_products_are_sensitive() -> None:
    model = parsed(
        """(float[2,2] x, int64[1] i) => (float[A,B] y) <float[2,2] w = {1,2,3,4}> {
        a = MatMul(x, w)  g = Gather(w, i)  c = Conv(x, w)  y = MatMul(a, w) }"""
    )
    last = [made_by(model, "y")]
    for names, is_sensitive in (("a", False), ("y", True), ("g", True), ("c", True), ("ac", True)):
        nodes = [made_by(model, name) for name in names]
        for asked in (True, False):
            choose = chooser_of(is_sensitive=asked, last=last)
            assert choose(nodes) == (asked == is_sensitive), names


def test_the_last_products_are_those_that_no_other_layer_reads() -> None:
    for nodes, least, names in (
        ("y = MatMul(x, w)", 1, ""),  # the only one
        ("a = MatMul(x, w)  y = MatMul(a, w)", 4, "y"),
        ("a = MatMul(x, w)  y = MatMul(a, w)", 5, ""),
        ("a = MatMul(x, w)  y = MatMul(a, w)  z = MatMul(a, w)", 1, "yz"),
        ("y = MatMul(x, w)  z = MatMul(x, w)", 1, ""),  # all are last
        ("a = MatMul(x, w)  r = Relu(a)  b = MatMul(r, w)  s = Neg(b)  y = Neg(s)", 1, "b"),
        ("a = MatMul(x, w)  b = MatMul(a, w)  y = MatMul(b, small)", 4, "b"),
        ("a = MatMul(x, w)  r = Relu(a)  y = MatMul(r, r)", 4, "y"),  # of data
        ("g = Gather(w, i)  y = MatMul(g, w)", 1, ""),
        ("a = own.MatMul(x, w)  y = MatMul(a, w)", 1, ""),
        ("a = MatMul(x, w)  b = Clip(a, , lost)  y = MatMul(b, w)", 1, "y"),
    ):
        model = parsed(
            f"""(float[2,2] x, int64[2] i, float lost) => (float[A,B] y)
            <float[2,2] w = {{1,2,3,4}}, float[2,1] small = {{1,2}}> {{ {nodes} }}"""
        )
        found = last_products(model, least)
        assert found == {made_by(model, name) for name in names}, nodes


NINE = "{1,2,3,4,5,6,7,8,9}"
WEIGHTS = f"""float[9,1,1,1] k = {NINE}, float[1,9] w = {NINE}, float[1,1] u = {{1}},
    float[9,8] v = {{{",".join("1" * 72)}}}"""
LAYERS = "a = Conv(x, k)  b = MatMul(a, w)  y = MatMul(b, v)"
"""A kernel of less than a tenth of the model; a product, and the last."""


def test_a_kernel_stays_float_for_its_effect_size_and_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = list[int]()
    for nodes, weights, least, effects, samples, names in (
        (LAYERS, WEIGHTS, 9, {"a": 16.01, "b": 1, "y": 5}, 2, "a"),
        (LAYERS, WEIGHTS, 9, {"a": 16.0, "b": 1}, 2, ""),
        (LAYERS, WEIGHTS, 10, {"a": 17, "b": 1}, 2, ""),  # the kernel is small
        (LAYERS, WEIGHTS.replace("9,8", "9,6").replace(",1" * 18 + "}", "}"), 9, {"a": 17}, 2, ""),
        (LAYERS, WEIGHTS, 9, {"a": 17, "b": 1}, 0, ""),  # no sample
        (LAYERS, WEIGHTS, 9, None, 2, ""),  # no effect is known
        (LAYERS, WEIGHTS.replace("float[1,1] u = {1},", ""), 9, {"a": 17, "b": 1}, 2, "a"),
        (LAYERS.replace("b, v", "s, v").replace("y =", "s = MatMul(b, u)  y ="), WEIGHTS, 9,
         {"a": 16.01, "b": 1, "s": 9}, 2, "a"),  # a small weight does not count
        (LAYERS.replace("Conv", "own.Conv"), WEIGHTS, 9, {"a": 17, "b": 1}, 2, ""),
        (LAYERS.replace("x, k", "x, x"), WEIGHTS, 9, {"a": 17, "b": 1}, 2, ""),
        ("y = Conv(x, k)  z = MatMul(w, v)", WEIGHTS, 9, {"y": 17}, 2, ""),  # nothing else
        ("a = Neg(x)  b = Conv(a, k)  y = MatMul(a, w)", WEIGHTS, 9, {"b": 17}, 2, ""),
    ):  # fmt: skip
        model = parsed(f"(float[1,1,2,1] x) => (float[A,B,C,D] y) <{weights}> {{ {nodes} }}")

        def effects_of(_: Any, of: Model, them: Any, feeds: Any, known: Any = effects) -> Any:
            assert len(feeds) == 1
            return known and {made_by(of, name): known[name] for name in known}

        def feeds(count: int = samples) -> list[Any]:
            asked.append(count)
            return [{}] * count

        monkeypatch.setattr(sensitive, "effects_for", effects_of)
        found = undiluted_kernels(model, least, feeds)
        assert found == {made_by(model, name) for name in names}, (nodes, effects)
    assert asked == [2, 2, 0, 2, 2, 2]


def test_all_data_passes_the_nodes_that_are_on_every_path() -> None:
    for nodes, outputs, names in (
        ("a = Neg(x)  b = Abs(a)  y = Exp(b)", "", "yba"),
        ("a = Neg(x)  b = Abs(a)  y = Add(a, b)", "", "ya"),
        ("a = Neg(x)  b = Abs(a)  y = Add(x, b)", "", "y"),
        ("a = Neg(x)  b = Abs(a)  y = Exp(b)  z = Exp(b)", ", float[A] z", "ba"),
        ("a = Neg(x)  b = Abs(a)  y = Exp(b)  c = Neg(x)  z = Exp(c)", ", float[A] z", ""),
        ("a = Neg(x)  n = Shape(x)  y = Reshape(a, n)", "", "ya"),
        ("a = Neg(x)  n = Size(x)  y = Expand(a, n)", "", "ya"),
        ("a = Neg(x)  c = Neg(w)  y = Add(a, c)", "", "ya"),
        ("a = Neg(x)  y = Neg(w)", "", ""),
        ('y, "" = Dropout(x)', "", "y"),
        ("a = Neg(x)  , y = Split<num_outputs = 2>(a)", "", "ya"),
    ):
        model = parsed(
            f"(float[2] x) => (float[A] y{outputs}) <float[2] w = {{1,2}}> {{ {nodes} }}"
        )
        found = sensitive._on_every_path(model)
        assert found == [made_by(model, name) for name in names], nodes
