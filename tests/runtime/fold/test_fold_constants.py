"""Folding a whole model: what is computed, what stays and why, and how much it may grow."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from tests.small import named, parsed
from tiered import Model, Node
from tiered.graph.core.types import tensor_type
from tiered.rewriter.skip import Skip
from tiered.runtime.fold import fold_constants as folding
from tiered.runtime.fold.compute_cost import needs_of
from tiered.runtime.fold.fold_constants import admissible_growth, fold_constants
from tiered.runtime.fold.foldable_nodes import outputs_of

FLOATS = "(float[n] x) => (float[m] y)"
BIG = f"{FLOATS} <int64[1] k = {{2000}}> {{ a = ConstantOfShape(k)  y = Add(x, a) }}"  # 8,000 bytes


def folded(
    text: str | Model, growth: Any = "1%", **bounds: Any
) -> tuple[list[str], dict[str, str]]:
    """Fold; return the operators that are left, and the reasons for the nodes that are not."""
    model = parsed(text) if isinstance(text, str) else text
    said: dict[str, str] = {}

    def on_skip(node: Node, reason: Skip) -> None:
        assert node.output.name not in said
        said[node.output.name] = str(reason)

    fold_constants(model, growth, on_skip, **bounds)
    model.check_view()
    return [node.op_type for node in model.main.nodes], said


def test_inner_values_with_other_readers_become_constants_too() -> None:
    model = parsed(
        f"""{FLOATS} <float[2] w = {{1,2}}> {{
            a = Neg(w)  b = Abs(a)  c = Add(x, a)  y = Add(c, b) }}"""
    )
    assert folded(model)[0] == ["Add", "Add"]
    assert named(model, "a").const is not None
    assert named(model, "b").const is not None


def test_a_new_constant_may_decide_the_size_of_its_readers() -> None:
    text = f"""{FLOATS} <float[4] w = {{0,1,0,1}}> {{
        i = NonZero(w)  s = Shape(i)  r = ConstantOfShape(s)  y = Add(x, r) }}"""
    assert folded(text) == (["Add"], {})


def test_constants_of_bodies_are_computed_too() -> None:
    text = """(float[2] x, bool c) => (float[2] y) <float[2] w = {1,2}> {
        y = If(c)<then_branch = t () => (float[2] p) { a = Neg(w)  p = Add(x, a) },
                  else_branch = e () => (float[2] q) { q = Identity(x) }> }"""
    model = parsed(text)
    assert folded(model) == (["If"], {})
    assert [node.op_type for node in model.main.nodes[0].bodies[0].nodes] == ["Add"]


def test_constants_may_grow_together_by_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"""{FLOATS} <int64[1] k = {{70}}, int64[1] l = {{71}}> {{
        a = ConstantOfShape(k)  b = ConstantOfShape(l)  c = Add(x, a)
        y = Concat<axis = 0>(c, b) }}"""
    model = parsed(text)
    nodes = [named(model, name).producer for name in "ab"]
    growth = 4 * 70 + 4 * 71 - 16 - sum(node.proto.ByteSize() for node in nodes if node)
    for limit, operators in ((growth, ["Add", "Concat"]), (growth - 1, ["ConstantOfShape"] * 2)):
        monkeypatch.setattr(folding, "_LEAST_GROWTH", limit)
        assert folded(text, "0")[0][:2] == operators


def test_what_is_not_computed_has_one_reason() -> None:
    text = f"""{FLOATS} <float[2] w = {{1,2}}, uint8[2] q = {{1,2}}, float s = {{1}}> {{
        a = RandomUniformLike(w)  b = DequantizeLinear(q, s)  c = Add(a, b)  y = Add(x, c) }}"""
    assert folded(text) == (
        ["RandomUniformLike", "DequantizeLinear", "Add", "Add"],
        {
            "a": "it is random, or nothing is known of it",
            "b": "quantised constants stay quantised",
        },
    )


@pytest.mark.parametrize(
    ("dtype", "shape", "fits"),
    [
        (TensorProto.FLOAT, (2, 3), True), (TensorProto.FLOAT, (2, "n"), True),
        (TensorProto.FLOAT, (None, 3), True), (TensorProto.FLOAT, None, True),
        (TensorProto.FLOAT, (2, 4), False), (TensorProto.FLOAT, (2,), False),
        (TensorProto.FLOAT, (2, 3, 1), False), (TensorProto.DOUBLE, (2, 3), False),
    ],
)  # fmt: skip
def test_a_result_has_the_declared_dtype_and_sizes(dtype: int, shape: Any, fits: bool) -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 21, "own": 1]>
        g (float x) => (float y) { z = own.Made(x)  y = Neg(x) }"""
    )
    model = Model.from_proto(proto)
    value = named(model, "z")
    model.main.set_type(value, tensor_type(dtype, shape))
    assert folding._is_as_declared(value, np.zeros((2, 3), np.float32)) is fits


def test_a_result_of_another_type_than_declared_is_not_taken() -> None:
    model = parsed(f"{FLOATS} <float[2] w = {{1,2}}> {{ a = Neg(w)  y = Add(x, a) }}")
    model.refresh_types()
    model.main.set_type(named(model, "a"), tensor_type(TensorProto.FLOAT, (1,)))
    assert folded(model) == (
        ["Neg", "Add"], {"a": "the result has another type than declared"}
    )  # fmt: skip


# --- growth ---------------------------------------------------------------------------------------


def test_a_constant_of_the_bytes_that_it_frees_does_not_grow_the_model() -> None:
    model = parsed(BIG)
    a = named(model, "a")
    assert a.producer is not None
    freed = 8 + a.producer.proto.ByteSize()
    assert folding._by_growth({a.producer}, {a: freed}) == ([a], [])
    assert folding._by_growth({a.producer}, {a: freed + 1}) == ([], [a])


@pytest.mark.parametrize(
    ("growth", "operators"),
    [
        ("1%", ["ConstantOfShape", "Add"]), ("0", ["ConstantOfShape", "Add"]),
        ("7000", ["ConstantOfShape", "Add"]), ("8000", ["Add"]),
    ],
)  # fmt: skip
def test_a_constant_may_grow_the_model_by_so_much(growth: Any, operators: list[str]) -> None:
    reasons = {"a": "the constant exceeds max_growth"} if len(operators) == 2 else {}
    assert folded(BIG, growth) == (operators, reasons)


def test_a_model_may_always_grow_by_4_kib() -> None:
    small = BIG.replace("2000", "1024")
    assert folded(small, "0")[0] == ["Add"]
    larger = BIG.replace("2000", "1100")
    assert folded(larger, "0")[0] == ["ConstantOfShape", "Add"]


def test_growth_counts_together() -> None:
    text = f"""{FLOATS} <int64[1] k = {{700}}, int64[1] l = {{701}}> {{
        a = ConstantOfShape(k)  b = ConstantOfShape(l)  c = Add(x, a)  d = Concat<axis = 0>(c, b)
        y = Neg(d) }}"""
    operators, said = folded(text, "0")
    assert operators == ["ConstantOfShape", "ConstantOfShape", "Add", "Concat", "Neg"]
    assert said == dict.fromkeys("ab", "the constants together exceed max_growth")
    assert folded(text, "10000")[0] == ["Add", "Concat", "Neg"]


def test_bounds_of_memory_and_of_the_largest_constant() -> None:
    assert folded(BIG, "100%", max_tensor_size=7999)[1] == {
        "a": "the constant exceeds max_tensor_size"
    }
    assert folded(BIG, "10000", max_tensor_size=8000) == (["Add"], {})
    assert folded(BIG, "10000", max_memory=16_000)[1] == {"a": "computing it takes too much memory"}
    assert folded(BIG, "10000", max_memory=16_100) == (["Add"], {})


def test_the_work_of_a_model_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spent work counts for the next run, too."""
    text = f"{FLOATS} <float[2] w = {{1,2}}> {{ a = Neg(w)  y = Add(x, a) }}"
    model = parsed(text)
    model.note_folded_work(5)
    monkeypatch.setattr(folding, "_MOST_WORK_OF_ALL", 5)
    assert folded(model)[0] == ["Add"]
    assert model.folded_work == 7
    model = parsed(text)
    model.note_folded_work(6)
    assert folded(model) == (["Neg", "Add"], {"a": "computing it takes too long"})
    assert model.folded_work == 6


# --- which constants are admissible ---------------------------------------------------------------


def admitted(text: str, limit: int) -> tuple[dict[str, int], dict[str, str]]:
    """Return by how much constants grow the model, and the reasons of the others."""
    model = parsed(text)
    sizes: dict[Any, int] = {}
    nodes = {node for node in model.main.nodes if node.op_type != "Add"}
    for node in model.main.topological_order():
        if node in nodes:
            needs = needs_of(node, sizes, 1 << 30, ahead=True)
            assert isinstance(needs, dict)
            sizes.update(needs)
    refused: dict[Node, Skip] = {}
    found = admissible_growth(nodes, sizes, limit, refused)
    assert set(found) <= set(outputs_of(nodes))
    return (
        {value.name: size for value, size in found.items()},
        {node.output.name: str(reason) for node, reason in refused.items()},
    )


def test_growth_is_what_a_constant_takes_less_what_it_frees() -> None:
    text = f"{FLOATS} <int64[1] k = {{100}}> {{ a = ConstantOfShape(k)  y = Add(x, a) }}"
    model = parsed(text)
    node = named(model, "a").producer
    assert node is not None
    growth = 400 - 8 - node.proto.ByteSize()
    assert admitted(text, growth) == ({"a": growth}, {})
    assert admitted(text, growth - 1) == ({}, {"a": "the constant exceeds max_growth"})
    tiny = text.replace("100", "1")
    assert admitted(tiny, 0) == ({"a": 0}, {})


def test_no_constant_makes_room_for_a_larger_one() -> None:
    """Both read k: without it one of them would fit in a second run."""
    text = f"""{FLOATS} <int64[1] k = {{100}}> {{
        a = ConstantOfShape(k)  b = Neg(a)  c = Add(x, a)  y = Add(c, b) }}"""
    found, refused = admitted(text, 1000)
    assert set(found) == {"a", "b"}
    assert refused == {}
    found, refused = admitted(text, 370)
    assert found == {}
    assert set(refused.values()) <= {
        "the constant exceeds max_growth", "it would make room for a larger constant"
    }  # fmt: skip
    assert len(refused) == 2


def sized(text: str, names: str) -> tuple[dict[str, Node], dict[Any, int]]:
    """Return nodes by the names of their outputs, and the bytes of what they read and make."""
    model = parsed(text)
    sizes: dict[Any, int] = {}
    nodes = {node.output.name: node for node in model.main.nodes if node.output.name in names}
    for node in nodes.values():
        needs = needs_of(node, sizes, 1 << 30, ahead=True)
        assert isinstance(needs, dict)
        sizes.update(needs)
    return nodes, sizes


def test_what_decides_a_size_and_what_was_refused_is_not_admitted() -> None:
    text = f"{FLOATS} <int64[1] k = {{9}}> {{ a = ConstantOfShape(k)  c = Neg(a)  y = Add(x, c) }}"
    for refused, reason, found in (
        ("", "its consumer has a data-dependent shape", []),
        ("a", "before", []),
        ("c", None, ["a"]),
    ):
        nodes, sizes = sized(text, "ac")
        reasons = {nodes[name]: Skip("before") for name in refused}
        admitted = admissible_growth({nodes["a"]}, sizes, 1000, reasons)
        assert [value.name for value in admitted] == found
        assert str(reasons.get(nodes["a"])) == str(reason)


GROWING = f"""{FLOATS} <int64[1] k = {{100}}, int64[1] t = {{10}}> {{
    a = ConstantOfShape(k)  b = Tile(a, t)  y = Add(x, b) }}"""


def test_what_a_constant_depends_on_may_be_admitted_where_that_cannot_be() -> None:
    absent = GROWING.replace("int64[1] t", "float[1] t").replace("Tile(a, t)", "Resize(a, , t)")
    for text, read in ((GROWING, 16), (absent, 12)):
        nodes, _ = sized(text, "ab")
        freed = read + sum(node.proto.ByteSize() for node in nodes.values())
        beyond = 4000 - freed
        growth = 400 - 8 - nodes["a"].proto.ByteSize()
        nothing = {"b": "the constant exceeds max_growth"}
        assert admitted(text, beyond // 2 - 1) == ({"a": growth}, nothing)
        assert admitted(text, -(-beyond // 2)) == ({}, nothing)


def test_the_nodes_that_are_close_to_a_constant() -> None:
    text = f"""{FLOATS} <float[100] w = {{{",".join("1" * 100)}}}, float[2] v = {{1,2}}> {{
        a = Neg(w)  b = Concat<axis = 0>(a, a, a, a)  c = Abs(w)  d = Exp(c)  e = Sin(v)
        g = Add(x, b)  h = Add(g, d)  y = Add(h, e) }}"""
    nodes, sizes = sized(text, "abcde")
    value = nodes["b"].output
    least = 1600 - 400 - sum(nodes[name].proto.ByteSize() for name in "ab")
    for limit, expected in (
        (least, "abcd"), (least - 1, "ab"), (-(-least // 2), "ab"), ((least - 1) // 2, ""),
    ):  # fmt: skip
        found = folding._close_to(value, set(nodes.values()), sizes, limit)
        assert sorted(node.output.name for node in found) == list(expected), limit
