import numpy as np
import onnx
import pytest

from tiered import PassContext, optimize
from tiered.extensions.debug import layer_precision_compare, layers_svg
from tiered.support.errors import RuntimeFailure
from tiered.testing import parse


def chain(length: int, wrong_at: int | None = None) -> onnx.ModelProto:
    """Return a chain of Adds, one of which is a Sub."""
    nodes = [
        f"[n{i}] v{i + 1} = {'Sub' if i == wrong_at else 'Add'}(v{i}, w)" for i in range(length)
    ]
    body = " ".join(nodes)
    return parse(f"(float[4] v0) => (float[4] v{length}) <float[4] w = {{1,2,3,4}}> {{ {body} }}")


@pytest.mark.parametrize("wrong_at", [0, 1, 37, 98, 99])
def test_the_first_wrong_layer_is_found_in_few_slices(wrong_at: int) -> None:
    found = layer_precision_compare(chain(100), chain(100, wrong_at))
    assert found.first_wrong is not None
    assert found.first_wrong.node == f"n{wrong_at}"
    assert found.pairs == 100
    assert found.runs <= 4
    assert len(found.layers) < 40


def test_models_that_agree_take_one_slice() -> None:
    found = layer_precision_compare(chain(100), chain(100), numerics="exact")
    assert (found.first_wrong, found.runs) == (None, 1)


def test_every_layer_can_be_looked_at_slice_by_slice() -> None:
    found = layer_precision_compare(chain(20), chain(20, 7), every=True, slice_size=6)
    assert len(found.layers) == 20
    assert found.runs == 4
    assert [layer.ok for layer in found.layers] == [True] * 7 + [False] * 13


def test_tensors_answer_to_each_other_by_where_their_nodes_came_from() -> None:
    source = parse("""(float[2,3,4] x) => (float[a,b,c] y) {
        [a] u = Transpose <perm = [1, 2, 0]> (x)  [b] w = Transpose <perm = [0, 2, 1]> (u)
        [c] y = Neg(w) }""")
    with PassContext(config={"provenance.metadata": True}):
        made = optimize(source, opt_level=2)
    renamed = {"w": "elsewhere"}
    for node in made.graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
        node.output[:] = [renamed.get(name, name) for name in node.output]
    found = layer_precision_compare(source, made, numerics="exact", every=True)
    assert found.first_wrong is None
    assert ("w", "elsewhere") in [(layer.first, layer.second) for layer in found.layers]


def test_layers_of_two_precisions_are_compared_in_the_wider_one() -> None:
    wide = parse("(float[2] x) => (float[2] y) { a = Mul(x, x)  b = Neg(a)  y = Abs(b) }")
    half = parse("""(float[2] x) => (float[2] y) { h = Cast <to = 10> (x)
        a = Mul(h, h)  b = Neg(a)  c = Abs(b)  y = Cast <to = 1> (c) }""")
    feeds = [{"x": np.array([300, 2], np.float32)}]
    found = layer_precision_compare(wide, half, inputs=feeds, numerics="lossy", every=True)
    assert found.first_wrong is not None
    assert found.first_wrong.second == "a"
    assert found.first_wrong.row.difference.max_abs == np.inf
    assert found.referee.runtime == "onnx.reference"
    feeds = [{"x": np.array([1.1, 2], np.float32)}]
    found = layer_precision_compare(wide, half, inputs=feeds)
    assert found.first_wrong is not None
    assert found.first_wrong.second == "a", "and not the final Cast"


def test_the_final_cast_of_halves_has_the_limits_of_halves() -> None:
    text = """(float16[64] x) => (float[64] y) <float16[1] k = {16384}, float16[1] m = {15360}> {
        a = Div(x, k)  b = Mul(a, TAIL)  y = Cast <to = 1> (b) }"""
    one, two = (parse(text.replace("TAIL", tail)) for tail in ("m", "near"))
    near = onnx.numpy_helper.from_array(np.array([1.001], np.float16), "near")
    two.graph.initializer.append(near)
    feeds = [{"x": np.linspace(0.1, 2, 64).astype(np.float16)}]
    found = layer_precision_compare(one, two, inputs=feeds, every=True)
    assert any(layer.row.difference.max_abs > 0 for layer in found.layers)
    assert found.first_wrong is None


def test_another_precision_is_compared_within_the_class() -> None:
    wide = parse("(float[4] x) => (float[4] y) { a = Neg(x)  y = Abs(a) }")
    narrow = parse("""(float[4] x) => (float[4] y) {
        h = Cast <to = 10> (x)  a = Neg(h)  k = Abs(a)  y = Cast <to = 1> (k) }""")
    found = layer_precision_compare(wide, narrow, numerics="lossy", every=True)
    assert [layer.second for layer in found.layers] == ["a", "y"]
    assert found.first_wrong is None


def test_a_layer_that_does_not_run_is_wrong() -> None:
    broken = chain(6)
    broken.graph.node[3].op_type = "Concat"
    attribute = broken.graph.node[3].attribute.add(name="axis", i=0)
    attribute.type = onnx.AttributeProto.INT
    found = layer_precision_compare(chain(6), broken, every=True)
    assert found.first_wrong is not None
    assert found.first_wrong.node == "n3"
    bad = chain(2)
    bad.graph.node[0].domain = "nowhere"
    with pytest.raises(RuntimeFailure, match="nowhere"):
        layer_precision_compare(bad, chain(2), inputs=[{"v0": np.zeros(4, np.float32)}])


def test_the_picture_shows_the_first_wrong_layer() -> None:
    found = layer_precision_compare(chain(10), chain(10, 4))
    picture = layers_svg(found, "a < b")
    assert picture.startswith("<svg ")
    assert picture.count("<circle") == len(found.layers)
    assert ">n4</text>" in picture
    assert "a &lt; b" in picture


def test_layers_of_an_interface_in_halves() -> None:
    wide = parse("(float[2] x) => (float[2] y) { a = Mul(x, x)  y = Neg(a) }")
    half = parse("(float16[2] x) => (float16[2] y) { a = Mul(x, x)  y = Neg(a) }")
    feeds = [{"x": np.array([300, 2], np.float32)}]
    found = layer_precision_compare(wide, half, inputs=feeds, numerics="lossy")
    assert found.first_wrong is not None
    assert found.first_wrong.second == "a"
