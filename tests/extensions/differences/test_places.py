"""Which nodes of two models are one place, in which order, and what is said of them."""

import onnx
import pytest

import tiered
from tests.extensions.differences.test_node_matching import whole
from tiered.extensions.differences.places import DifferingPlace, _dtype, _shown, operators_of
from tiered.graph import Model
from tiered.testing import parse

CHAIN = """(float[2,4] x) => (float[2,4] y) {
    [one] a = Relu(x)  [two] b = Neg(a)  [three] c = Abs(b)  [four] d = Exp(c)
    [five] y = Tanh(d) }"""


def places(before: str, after: str) -> tuple[DifferingPlace, ...]:
    return tuple(tiered.diff(parse(before), parse(after)).places)


def test_places_come_in_the_order_of_the_first_model() -> None:
    after = CHAIN.replace("d = Exp(c)", "d = Sqrt(c)").replace(
        "[one] a = Relu(x)", "[new] a = Sin(x)"
    )
    found = places(CHAIN, after)
    assert [place.kind[:2] for place in found] == [("Relu", "Sin"), ("Exp", "Sqrt")]


def test_a_new_node_stands_where_its_inputs_are() -> None:
    after = CHAIN.replace("[five] y = Tanh(d)", "[more] e = Sin(d)  [five] y = Tanh(e)").replace(
        "[two] b = Neg(a)", "[less] b = Cos(a)"
    )
    found = places(CHAIN, after)
    assert [place.kind[1].split(", ")[0] for place in found] == ["Cos", "Sin"]
    first = CHAIN.replace("[one] a = Relu(x)", "[zero] z = Sin(x)  [one] a = Relu(z)")
    changed = first.replace("[five] y = Tanh(d)", "[five] y = Cos(d)")
    assert [place.kind[1] for place in places(CHAIN, changed)][-1] == "Cos"


def test_a_place_grows_along_new_values_and_ends_at_those_of_both() -> None:
    after = CHAIN.replace(
        "[two] b = Neg(a)  [three] c = Abs(b)", "[n] m = Sin(a)  [o] b = Cos(m)  [p] c = Tan(b)"
    )
    found = places(CHAIN, after)
    assert [place.kind[:2] for place in found] == [("Neg", "Sin, Cos"), ("Abs", "Tan")]
    assert [place.at for place in found] == ["two", "three"]


@pytest.mark.parametrize(
    ("was", "has", "note"),
    [
        ("Softmax<axis=1>(x)", "Softmax<axis=0>(x)", "attribute axis: 1 -> 0"),
        ("Sub(x, z)", "Sub(z, x)", "input 0: x -> z"),
        ("Sub(x, z)", "Sub(x, x)", "input 1: z -> x"),
        ("Clip(x, low)", "Clip(x, , low)", "input 1: low -> absent"),
    ],
)
def test_what_of_a_node_differs_is_said(was: str, has: str, note: str) -> None:
    text = "(float[2,4] x, float[2,4] z) => (float[2,4] y) <float low = {{0}}> {{ [n] y = {} }}"
    (found,) = places(text.format(was), text.format(has))
    assert note in [each for change in found.changes for each in change.notes]
    assert found.kind[2] == ", ".join(
        sorted({each.partition(":")[0] for change in found.changes for each in change.notes})
    )


def test_operators_are_counted() -> None:
    graph = tiered.Model.from_proto(parse(CHAIN.replace("Abs(b)", "Neg(b)"))).main
    assert operators_of(graph.nodes) == "Relu, 2 Neg, Exp, Tanh"
    assert operators_of(()) == "nothing"


def test_the_places_of_two_graphs_and_what_differs_there() -> None:
    for before, after, expected in (
        ("(float[1,1,4] x) => (float[1,1,3] y) { y = MaxPool<kernel_shape=[2]>(x) }",
         "(float[1,1,4] x) => (float[1,1,2] y) { y = MaxPool<kernel_shape=[3], dilations=[1]>(x) }",
         [("MaxPool", "MaxPool", "y",
           ["attribute dilations: absent -> [1]", "attribute kernel_shape: [2] -> [3]"])]),
        ("G { y = Gelu(x) }",
         'G { y = Gelu<approximate="tanh">(x) }',
         [("Gelu", "Gelu", "y", ["attribute approximate: none -> tanh"])]),
        # One place, as nodes of both sides have one name.
        ("G { [n] a = Exp(x)  b = Neg(a)  c = Abs(x)  [m] d = Tanh(c)  y = Sub(b, d) }",
         "G { [m] a = Sin(x)  b = Neg(a)  c = Abs(x)  [n] d = Cos(c)  y = Sub(b, d) }",
         [("Exp, Tanh", "Sin, Cos", "m", [])]),
        ("G { y = Relu(x) }",
         "G { a = Neg(x)  y = Relu(x) }",
         [("nothing", "Neg", "a", [])]),
        ("(float[4] x) => (y) { a = own.F(x)  y = own.G(a) }",
         "(float[4] x) => (y) { a = own.F<k=1>(x)  y = own.G(a) }",
         [("own::F", "own::F", "a", ["attribute k: absent -> 1"])]),
        ("(int64[1] s) => (float[N] y) { y = ConstantOfShape<value = float[1] {2}>(s) }",
         "(int64[1] s) => (float[N] y) { y = ConstantOfShape<value = float[1] {3}>(s) }",
         [("ConstantOfShape", "ConstantOfShape", "y", ["attribute value: another tensor[1]"])]),
        ("G { a = Relu(x)  b = Exp(a)  y = Neg(b) }",
         "(float[4] x) => (float[4] z) { a = Relu(x)  b = Sin(a)  z = Neg(b) }",
         [("Exp", "Sin", "b", [])]),
        ("(float[4] x) => (float[4] y, float[4] z) { y = Relu(x)  z = Relu(x) }",
         "(float[4] x) => (float[4] y, float[4] z) { z = Relu(x)  y = Relu(x) }",
         []),
        ("(float[4] x) => (float[4] y, float[4] z) { y = Relu(x)  z = Exp(x) }",
         "(float[4] x) => (float[4] y, float[4] z) { y = Exp(x)  z = Relu(x) }",
         []),
        ("G { a = Exp(x)  b = Neg(a)  y = Relu(b) }",
         "G { a = Sin(x)  b = Neg(a)  y = Relu(b) }",
         [("Exp", "Sin", "a", [])]),
        ("G { a = Exp(x)  b = Neg(a)  c = Neg(b) y = Relu(c) }",
         "G { a = Sin(x)  b = Neg(a)  y = Relu(b) }",
         [("Exp", "Sin", "a", []),
          ("Neg, Relu", "Relu", "y", ["input 0: c of Neg -> b of Neg"])]),
        ("G { a = Exp(x)  b = Neg(a)  c = Abs(b) d = Exp(c) e = Tanh(d) y = Relu(e) }",
         "G { a = Sin(x)  b = Neg(a)  c = Abs(b) d = Cos(c) e = Tanh(d) y = Relu(e) }",
         [("Exp", "Sin", "a", []),
          ("Exp", "Cos", "d", [])]),
        ("G { a = Exp(x)  b = Neg(a)  c = Abs(b) d = Exp(c) e = Tanh(d) y = Relu(e) }",
         "G { a1 = Sin(x)  b1 = Neg(a1)  c1 = Abs(b1) d1 = Cos(c1) e1 = Tanh(d1) y = Relu(e1) }",
         [("2 Exp, Neg, Abs, Tanh", "Sin, Neg, Abs, Cos, Tanh", "e",
          ["input 0: d of Exp -> d1 of Cos"])]),
        ("G { [n1] a = Exp(x)  [n2] b = Neg(a)  [n3] c = Neg(b) [n4] d = Abs(c) y = Relu(d) }",
         "G { [n1] p = Sin(x)  [n3] q = Neg(p) [n4] r = Abs(q) y = Relu(r) }",
         [("Exp, 2 Neg", "Sin, Neg", "n3", ["input 0: b of Neg -> p of Sin"])]),
        ("G { a = Relu(x)  b = Relu(x)  c = Sub(a, b)  y = Exp(c) }",
         "G { a = Relu(x)  b = Relu(x)  c = Sub(b, a)  y = Exp(c) }",
         [("Sub", "Sub", "c", ["input 0: a of Relu -> b of Relu",
          "input 1: b of Relu -> a of Relu"])]),
        ("G { a = Exp(x)  b = Sin(x)  c = Sub(a, b)  y = Exp(c) }",
         "G { a = Exp(x)  b = Sin(x)  c = Sub(b, a)  y = Exp(c) }",
         [("Sub", "Sub", "c", ["input 0: a of Exp -> b of Sin", "input 1: b of Sin -> a of Exp"])]),
        ("G { a = Exp(x)  b = Sin(x)  c = Add(a, b)  y = Exp(c) }",
         "G { a = Exp(x)  b = Sin(x)  c = Add(b, a)  y = Exp(c) }",
         [("Add", "Add", "c", ["inputs exchanged"])]),
        ("G { a = Exp(x)  b = Sin(x)  c = own.Add(a, b)  y = Exp(c) }",
         "G { a = Exp(x)  b = Sin(x)  c = own.Add(b, a)  y = Exp(c) }",
         [("own::Add", "own::Add", "c", ["input 0: a of Exp -> b of Sin",
          "input 1: b of Sin -> a of Exp"])]),
        ("(float[4,4] x) => (float[4,4] y) <float[4,4] w = W0> { a = MatMul(x, w)  y = Relu(a) }",
         "(float[4,4] x) => (float[4,4] y) <float[4,4] v = W0> { b = MatMul(x, v)  y = Relu(b) }",
         []),
        ("(float[4,4] x) => (float[4,4] y) <float[4,4] w = W0> { a = MatMul(x, w)  y = Relu(a) }",
         "(float[4,4] x) => (float[4,4] y) <float[4,4] w = W1> { a = MatMul(x, w)  y = Relu(a) }",
         []),
        ("(float[4,4] x) => (float[4,4] y) <float[4,4] w = W0> { e = Exp(x) a = MatMul(e, w) b "
         "= Add(a, w)  y = Relu(b) }",
         "(float[4,4] x) => (float[4,4] y) <float[4,4] w = W0> { e = Sin(x) p = MatMul(e, w) q "
         "= Add(p, w)  y = Relu(q) }",
         [("Exp", "Sin", "e", [])]),
        ("(float[4,4] x) => (float[4,4] y) <float[4,4] w = W0> { e = Exp(x) a = MatMul(e, w) b "
         "= Sin(a)  y = Relu(b) }",
         "(float[4,4] x) => (float[4,4] y) <float[4,4] w = W0> { e = Sin(x) p = MatMul(e, w) q "
         "= Exp(p)  y = Relu(q) }",
         [("Exp", "Sin", "e", []),
          ("Sin, Relu", "Exp, Relu", "y", ["input 0: b of Sin -> q of Exp"])]),
        ("(float[2,4] x) => (float[2,4] y) { a, b = Split<axis=0, num_outputs=2>(x)  c = "
         "Concat<axis=0>(b, a)  y = Exp(c) }",
         "(float[2,4] x) => (float[2,4] y) { a, b = Split<axis=0, num_outputs=2>(x)  c = "
         "Concat<axis=0>(a, b)  y = Exp(c) }",
         [("Concat", "Concat", "c", ["input 0: b of Split -> a of Split",
          "input 1: a of Split -> b of Split"])]),
        ("(float[2,4] x) => (float[2,4] y) { y, m = Dropout(x) }",
         "(float[2,4] x) => (float[2,4] y) { y = Dropout(x) }",
         [("Dropout", "Dropout", "y", ["outputs: 2 -> 1"])]),
        ("(float[2,4] x) => (y) { a = Cast<to=1>(x)  y = Neg(a) }",
         "(float[2,4] x) => (y) { a = Cast<to=10>(x)  y = Neg(a) }",
         [("Cast", "Cast", "a", ["attribute to: 1 -> 10", "computes float -> float16"]),
          ("Neg", "Neg", "y", ["computes float -> float16"])]),
        ("(float[4] x, bool c) => (float[4] y) { a = Relu(x)  y = If(c) <then_branch = t () => "
         "(float[4] p) { p = Neg(a) }, else_branch = e () => (float[4] q) { q = Abs(x) }> }",
         "(float[4] x, bool c) => (float[4] y) { a = Sin(x)  y = If(c) <then_branch = t () => "
         "(float[4] p) { p = Neg(a) }, else_branch = e () => (float[4] q) { q = Abs(x) }> }",
         [("Relu", "Sin", "a", [])]),
        ("G <float[4] k = {1,2,3,4}> { a = Add(x, k)  y = Neg(a) }",
         "G <float[4] k = {1,2,3,5}> { a = Add(x, k)  y = Neg(a) }",
         []),
        ("G <float[4] k = {1,2,3,4}> { a = Add(x, k)  y = Neg(a) }",
         "G { k = Constant<value_floats=[1.0,2.0,3.0,4.0]>() a = Add(x, k)  y = Neg(a) }",
         []),
        ("(float[4] x, float[4] k) => (float[4] y) { a = Add(x, k)  y = Neg(a) }",
         "G <float[4] k = {1,2,3,5}> { a = Add(x, k)  y = Neg(a) }",
         [("Add", "Add", "a", ["input 1: another k"])]),
        ("G { a = Relu(x) b = Relu(a) c = Relu(b) y = Relu(c) }",
         "G { a = Relu(x) b = Relu(a) y = Relu(b) }",
         [("Relu", "nothing", "y", [])]),
        ("G { r = own.F(x)  y = own.G(r) }",
         "G { r = own.F2(x)  y = own.G(r) }",
         [("own::F", "own::F2", "r", [])]),
        ("G { a = Exp(x) b = Sin(a) c = Cos(a) y = Add(b, c) }",
         "G { z = Tan(x) b = Sin(z) c = Cos(z) y = Add(c, b) }",
         [("Exp, Sin, Cos", "Tan, Sin, Cos", "c", ["input 0: a of Exp -> z of Tan",
          "input 0: a of Exp -> z of Tan"]),
          ("Add", "Add", "y", ["inputs exchanged"])]),
        ("G { a = Exp(x) b = Sin(a) c = Sin(a) d = Mul(b, x) y = Sub(d, c) }",
         "G { a = Tan(x) b = Sin(a) c = Sin(a) d = Mul(b, x) y = Sub(d, c) }",
         [("Exp", "Tan", "a", [])]),
    ):  # fmt: skip
        found = places(whole(before), whole(after))
        assert [
            (*place.kind[:2], place.at, [note for each in place.changes for note in each.notes])
            for place in found
        ] == expected, (before, after)


def test_how_attributes_and_dtypes_are_shown() -> None:
    for raw, expected in (
        (None, "absent"), (b"ab\xff", "ab\ufffd"),
        ((1, 2.5, "a", b"b", None), "[1, 2.5, a, b, absent]"),
        (onnx.TypeProto(), "TypeProto"), ((), "[]"), (True, "True"), ("x" * 60, "x" * 60),
        ("x" * 100, f"{'x' * 60}… (100 characters)"),
        (b"y" * 100, f"{'y' * 60}… (100 characters)"),
        ((7,) * 50, f"[{'7, ' * 19}7,… (150 characters)"),
    ):  # fmt: skip
        assert _shown(raw) == expected
    of = Model.from_proto(parse(
        '(float[2] x) => (float[2] y, bool[2] z) { a, "", b = own.F(x)  "", c = own.G(x)'
        "  y = Neg(x)  z = IsNaN(x) }"
    ))  # fmt: skip
    assert [_dtype(node) for node in of.main.nodes] == [None, None, "float", "bool"]
