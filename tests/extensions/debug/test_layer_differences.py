from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

from tiered import PassContext, optimize
from tiered.extensions.debug import layer_precision_compare, layers_svg
from tiered.extensions.debug.layer_differences import (
    _layer,
    _Pair,
    _pairs,
    _Scope,
    _search,
    _spread,
    _wider,
)
from tiered.graph.core.provenance import ORIGINS
from tiered.support.errors import RuntimeFailure
from tiered.support.numerics import Numerics
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


# --- the search, without models -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "count", "expected"),
    [
        (-1, 5, 8, [0, 1, 2, 3, 4]), (-1, 5, 5, [0, 1, 2, 3, 4]), (-1, 5, 2, [1, 3]),
        (-1, 100, 8, [10, 21, 33, 44, 55, 66, 78, 89]), (0, 2, 8, [1]), (3, 9, 2, [5, 7]),
        (0, 10, 3, [2, 5, 8]), (-1, 1, 8, [0]),
    ],
)  # fmt: skip
def test_places_between_two_are_even(low: int, high: int, count: int, expected: list[int]) -> None:
    assert _spread(low, high, count) == expected


@pytest.mark.parametrize(
    ("count", "wrong", "size", "expected"),
    [
        (0, [], 4, []), (1, [0], 4, [[0]]), (1, [], 4, [[0]]), (10, [], 4, [[1, 3, 6, 8, 9]]),
        (10, range(10), 4, [[1, 3, 6, 8, 9], [0]]), (10, [9], 4, [[1, 3, 6, 8, 9]]),
        (10, range(4, 10), 3, [[2, 5, 7, 9], [3, 4]]),
        (20, range(13, 20), 2, [[6, 13, 19], [8, 11], [12]]),
        (20, [5, 19], 4, [[3, 7, 12, 16, 19], [17, 18]]), (20, [0], 4, [[3, 7, 12, 16, 19]]),
    ],
)  # fmt: skip
def test_which_layers_are_looked_at(
    count: int, wrong: Sequence[int], size: int, expected: list[list[int]]
) -> None:
    looks: list[list[int]] = []

    class Scope:
        pairs, looked = [None] * count, dict[int, Any]()

        def look(self, places: Sequence[int]) -> None:
            looks.append([place for place in places if place not in self.looked])
            for place in places:
                self.looked[place] = SimpleNamespace(ok=place not in wrong)

    _search(Scope(), size)  # type: ignore[arg-type]  # a fake
    assert looks == expected


def test_tensors_are_paired_by_their_names_or_by_what_their_nodes_came_from() -> None:
    first = parse("""(float[4] x) => (float[2] y) {
        [s] a, b = Split<num_outputs=2>(x)  c = Add(a, b)  k = Constant<value_float=1.0>()
        [last] y = Add(c, k) }""")
    second = parse("""(float[4] x) => (float[2] z) {
        [one] p, q = Split<num_outputs=2>(x)  [none] "", w = own.Parts(x)
        [two] r, t = own.Other(p)  c = Add(p, q)
        k = Constant<value_float=1.0>()  [three] z = Add(c, k)  u = Neg(z) }""")
    names = {"one": "gone; s", "none": "s", "two": "last", "three": "c; last"}
    for node in second.graph.node:
        if node.name in names:
            node.metadata_props.add(key="other", value="x")
            node.metadata_props.add(key=ORIGINS, value=names[node.name])
    found = [(each.place, each.node, each.op_type, each.first, each.second)
             for each in _pairs(first, second)]  # fmt: skip
    assert found == [
        (0, "one", "Split", "a", "p"), (0, "one", "Split", "b", "q"),
        (1, "none", "Parts", "b", "w"), (2, "two", "Other", "y", "r"), (3, "c", "Add", "c", "c"),
        (5, "three", "Add", "y", "z"),
    ]  # fmt: skip


def test_a_layer_in_words() -> None:
    pair = _Pair(3, "n", "Neg", "a", "b")
    exact = (Numerics.EXACT, None, None, None)
    one = np.array([1, 2], np.float32)
    for first, second, more, ok, text in (
        (one, one, {}, True, "max abs 0, 1 - cosine 0"),
        (one, one + 1, {}, False, "max abs 1, 1 - cosine 0.00772"),
        (one, one[:1], {}, False, "shape [2] became [1]"),
        (one, one.astype(np.float64), {}, True, "max abs 0, 1 - cosine 0"),
        (one.astype(np.float16), one.astype(ml_dtypes.bfloat16), {}, True,
         "max abs 0, 1 - cosine 0"),
        (one, one + 1, {"is_random": True}, True, "max abs 0"),
        (one.astype(np.int32), one.astype(np.int64), {}, False,
         "dtype int32 became int64"),
        ([one], [one], {}, True, "max abs 0, 1 - cosine 0"),
    ):  # fmt: skip
        layer = _layer(pair, {"a": first}, {"b": second}, exact, **more)
        assert (layer.place, layer.node, layer.first, layer.second) == (3, "n", "a", "b")
        assert (layer.ok, str(layer)) == (ok, text), (first, second)
    lost = _layer(pair, {"a": one}, "no kernel", exact)
    assert (lost.ok, str(lost)) == (False, "does not run: no kernel")


def test_a_dtype_that_has_the_numbers_of_two() -> None:
    half, brain, single, double = map(
        np.dtype, (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
    )
    assert [_wider(half, brain), _wider(half, single), _wider(double, brain)] == [
        single, single, double
    ]  # fmt: skip


class Looking(_Scope):
    """Layers whose values are numbers, or reasons, by name; the last run of a side is kept."""

    asked: list[tuple[int, Sequence[str]]]

    def _values(self, side: int, names: Sequence[str]) -> Any:
        self.asked.append((side, names))
        wrong = [name for name in names if name.startswith("bad")]
        if wrong:
            return f"{side} lacks {wrong[0]}"
        return {name: np.float32(int(name[1:])) for name in names}


def looking(*pairs: tuple[str, str], random: tuple[str, str] = ("", "")) -> Looking:
    made = [_Pair(at, f"n{at}", "Op", one, two) for at, (one, two) in enumerate(pairs)]
    exact: Any = (Numerics.EXACT, None, None, None)
    nothing: Any = None
    of_random = tuple(frozenset([each]) for each in random)
    scope = Looking(made, nothing, ("", ""), {}, exact, nothing, of_random)
    scope.asked = []
    return scope


def test_layers_are_looked_at_once_and_alone_where_the_second_model_fails() -> None:
    scope = looking(("a1", "b1"), ("a2", "b3"), ("a4", "b4"))
    scope.look([0, 1])
    scope.look([1, 0])
    scope.look([])
    scope.look([1, 2])
    assert scope.asked == [(0, ["a1", "a2"]), (1, ["b1", "b3"]), (0, ["a4"]), (1, ["b4"])]
    assert scope.runs == 2
    assert [scope.looked[at].ok for at in range(3)] == [True, False, True]
    scope = looking(("a1", "b1"), ("a2", "bad"))
    scope.look([0, 1])
    assert scope.runs == 3
    assert [str(scope.looked[at]) for at in (0, 1)] == [
        "max abs 0, 1 - cosine 0", "does not run: 1 lacks bad"
    ]  # fmt: skip
    with pytest.raises(RuntimeFailure, match="the first model does not run: 0 lacks bad"):
        looking(("bad", "b1")).look([0])


def test_a_layer_that_is_random_in_either_model_differs_for_no_reason() -> None:
    for random, ok in (
        (("", ""), False), (("a1", ""), True), (("", "b2"), True), (("b2", "a1"), False)
    ):  # fmt: skip
        scope = looking(("a1", "b2"), random=random)
        scope.look([0])
        assert scope.looked[0].ok == ok, random
