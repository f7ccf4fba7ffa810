import numpy as np
import onnx
import pytest

from tiered import PassContext, optimize
from tiered.debug import layer_precision_compare, layers_svg
from tiered.errors import RuntimeFailure
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


def test_another_precision_is_compared_in_that_precision() -> None:
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
