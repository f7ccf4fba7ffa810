"""Nodes of two graphs, paired: by what they compute, their neighbours, weights and names."""

import pytest

from tiered import Model
from tiered.extensions.differences.node_matching import Matching, _ports
from tiered.graph import Node
from tiered.testing import parse


def matching(first: str, second: str) -> Matching:
    one, two = (Model.from_proto(parse(text)).main for text in (first, second))
    return Matching(one, two).match()


def pairs(first: str, second: str) -> dict[str, str]:
    """Return the pairs by the names of their first outputs."""
    found = matching(first, second)
    assert {two: one for one, two in found.partners[0].items()} == found.partners[1]
    return {one.output.name: two.output.name for one, two in found.partners[0].items()}


BASE = "(float[4] x) => (float[4] y) { a = Relu(x)  b = Neg(a)  c = Abs(b)  y = Sin(c) }"


def test_what_computes_the_same_is_paired_whatever_its_name() -> None:
    other = "(float[4] x) => (float[4] y) { p = Relu(x)  q = Neg(p)  r = Abs(q)  y = Sin(r) }"
    assert pairs(BASE, other) == {"a": "p", "b": "q", "c": "r", "y": "y"}


def test_equal_nodes_are_paired_by_their_labels() -> None:
    text = "(float[4] x) => (float[4] y) { [%s] a = Relu(x)  [%s] b = Relu(x)  y = Sub(a, b) }"
    assert pairs(text % ("n", "m"), text % ("m", "n"))["a"] in {"a", "b"}
    found = matching(text % ("n", "m"), text % ("m", "n"))
    labels = {one.label: two.label for one, two in found.partners[0].items()}
    assert labels["n"] == "n"
    assert labels["m"] == "m"


def test_an_inserted_node_has_no_partner_and_its_neighbours_have() -> None:
    other = BASE.replace("c = Abs(b)", "z = Exp(b)  c = Abs(z)")
    found = matching(BASE, other)
    assert pairs(BASE, other) == {"a": "a", "b": "b", "c": "c", "y": "y"}
    assert [node.output.name for node in found.free(1)] == ["z"]
    assert [*found.free(0)] == []


def test_attributes_may_differ() -> None:
    text = "(float[2,2] x) => (float[2,2] y) { a = Softmax<axis=%d>(x)  y = Neg(a) }"
    assert pairs(text % 0, text % 1) == {"a": "a", "y": "y"}


def test_another_operator_is_no_partner() -> None:
    other = BASE.replace("b = Neg(a)", "b = Exp(a)")
    assert pairs(BASE, other) == {"a": "a", "c": "c", "y": "y"}


def test_operands_of_a_sum_may_be_exchanged_and_others_not() -> None:
    text = """(float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}> {
        a = Relu(x)  b = %s  c = Exp(b)  y = Neg(c) }"""
    sums = matching(text % "Add(a, w)", text % "Add(w, a)")
    (add,) = [node for node in sums.nodes[0] if node.op_type == "Add"]
    other = sums.partners[0][add]
    assert sums.ids_of(0, add) == sums.ids_of(1, other)
    differences = matching(text % "Sub(a, w)", text % "Sub(w, a)")
    (sub,) = [node for node in differences.nodes[0] if node.op_type == "Sub"]
    other = differences.partners[0][sub]
    assert differences.ids_of(0, sub) != differences.ids_of(1, other)


WEIGHTS = ",".join(map(str, range(16)))
LAYERS = """(float[4,4] x) => (float[4,4] y) <float[4,4] v = {%s}, float[4,4] w = {%s}> {
    %s }"""


def test_nodes_that_read_the_same_weights_are_one_layer() -> None:
    other = ",".join(map(str, range(1, 17)))
    one = LAYERS % (WEIGHTS, other, "a = MatMul(x, v)  b = Relu(a)  c = MatMul(b, w)  y = Neg(c)")
    # The layers are exchanged, with other names and operators around.
    two = LAYERS % (WEIGHTS, other, "p = MatMul(x, w)  q = Exp(p)  r = MatMul(q, v)  y = Neg(r)")
    found = pairs(one, two)
    assert (found["a"], found["c"]) == ("r", "p")


def test_names_join_what_is_left_if_both_sides_use_the_same() -> None:
    one = """(float[4] x) => (float[4] y) { a = Relu(x)  b = Neg(a)  c = Abs(b)  d = Exp(c)
        e = Sin(d)  y = Cos(e) }"""
    other = one.replace("e = Sin(d)", "z = Tanh(d)  w = Sqrt(z)  e = Sin(w)")
    assert pairs(one, other)["e"] == "e"


@pytest.mark.parametrize(
    ("one", "two"),
    [("float[4] x", "float[4] x"), ("float[4] x, float[4] z", "float[4] z, float[4] x")],
)
def test_inputs_are_those_of_one_name(one: str, two: str) -> None:
    body = "=> (float[4] y) { y = Neg(x) }"
    found = matching(f"({one}) {body}", f"({two}) {body}")
    assert all(mine is not None and theirs is not None and mine.name == theirs.name
               for mine, theirs in found.input_pairs)  # fmt: skip


def test_renamed_inputs_of_equal_types_are_paired_in_order() -> None:
    one = "(float[4] a, int64[4] b, float[4] c) => (float[4] y) { y = Neg(a) }"
    two = "(float[4] p, int64[4] q, float[4] c) => (float[4] y) { y = Neg(p) }"
    found = [(mine.name if mine else "", other.name if other else "")
             for mine, other in matching(one, two).input_pairs]  # fmt: skip
    assert found == [("a", "p"), ("b", "q"), ("c", "c")]
    three = "(float[9] p, float[4] c) => (float[4] y) { y = Neg(c) }"
    found = [(mine.name if mine else "", other.name if other else "")
             for mine, other in matching(one, three).input_pairs]  # fmt: skip
    assert found == [("a", ""), ("b", ""), ("c", "c"), ("", "p")]


def test_inputs_of_bodies_are_paired_by_their_place() -> None:
    text = """(float[4] x, int64 n, bool t) => (float[4] y) {
        y = Loop(n, t, x) <body = b (int64 %s, bool c, float[4] h) => (bool d, float[4] z) {
            d = Identity(c)  z = Neg(h) }> }"""
    one, two = (Model.from_proto(parse(text % name)).main for name in ("i", "j"))
    outer = Matching(one, two).match()
    first, second = one.nodes[0].bodies[0], two.nodes[0].bodies[0]
    inner = Matching(first, second, "body", outer).match()
    assert [(a.name, b.name) for a, b in inner.input_pairs if a and b] == [
        ("i", "j"), ("c", "c"), ("h", "h")
    ]  # fmt: skip
    assert len(inner.partners[0]) == 2


def test_ids_are_equal_for_the_same_value_of_both_sides_alone() -> None:
    found = matching(BASE, BASE.replace("c = Abs(b)", "z = Exp(b)  c = Abs(z)"))
    one, two = found.graphs
    assert found.id_of(0, one.values["a"]) == found.id_of(1, two.values["a"])
    assert found.id_of(0, one.values["a"]) != found.id_of(0, one.values["b"])
    assert found.id_of(0, None) == ""
    assert found.is_shared(0, one.values["x"])
    assert not found.is_shared(1, two.values["z"])


def test_constant_nodes_are_no_nodes_here() -> None:
    text = "(float[1] x) => (float[1] y) { k = Constant<value_float=1.0>()  y = Add(x, k) }"
    found = matching(text, text)
    assert [[node.op_type for node in side] for side in found.nodes] == [["Add"], ["Add"]]
    assert len(found.constants) == 1


def test_a_value_captured_by_a_body_is_known_by_the_graph_around() -> None:
    text = """(float[4] x, bool c) => (float[4] y) { a = Relu(x)
        y = If(c) <then_branch = t () => (float[4] p) { p = Neg(a) },
                   else_branch = e () => (float[4] q) { q = Abs(x) }> }"""
    one, two = (Model.from_proto(parse(text.replace("a = Relu", name).replace(
        "(a)", f"({name[0]})"))).main for name in ("a = Relu", "z = Relu"))  # fmt: skip
    outer = Matching(one, two).match()
    first, second = (graph.nodes_of("If")[0].bodies[0] for graph in (one, two))
    inner = Matching(first, second, "then", outer).match()
    assert len(inner.partners[0]) == 1


G = "(float[4] x) => (float[4] y)"
NUMBERS = ",".join(map(str, range(15)))
W = {"G ": f"{G} ", "W0": f"{{{NUMBERS},15}}", "W1": f"{{{NUMBERS},99}}"}


def whole(text: str) -> str:
    for short, long in W.items():
        text = text.replace(short, long)
    return text


def test_the_pairs_of_two_graphs() -> None:
    for before, after, expected in (
        ("G { a = Relu(x)  b = Exp(a)  y = Neg(b) }",
         "(float[4] x) => (float[4] z) { a = Relu(x)  b = Sin(a)  z = Neg(b) }",
         "a:a y:z"),
        ("(float[4] x) => (float[4] y, float[4] z) { y = Relu(x)  z = Relu(x) }",
         "(float[4] x) => (float[4] y, float[4] z) { z = Relu(x)  y = Relu(x) }",
         "y:y z:z"),
        ("(float[4] x) => (float[4] y, float[4] z) { y = Relu(x)  z = Exp(x) }",
         "(float[4] x) => (float[4] y, float[4] z) { y = Exp(x)  z = Relu(x) }",
         "y:z z:y"),
        ("G { a = Exp(x)  b = Neg(a)  y = Relu(b) }",
         "G { a = Sin(x)  b = Neg(a)  y = Relu(b) }",
         "b:b y:y"),
        ("G { a = Exp(x)  b = Neg(a)  c = Neg(b) y = Relu(c) }",
         "G { a = Sin(x)  b = Neg(a)  y = Relu(b) }",
         "b:b y:y"),
        ("G { a = Exp(x)  b = Neg(a)  c = Abs(b) d = Exp(c) e = Tanh(d) y = Relu(e) }",
         "G { a = Sin(x)  b = Neg(a)  c = Abs(b) d = Cos(c) e = Tanh(d) y = Relu(e) }",
         "b:b c:c e:e y:y"),
        ("G { a = Exp(x)  b = Neg(a)  c = Abs(b) d = Exp(c) e = Tanh(d) y = Relu(e) }",
         "G { a1 = Sin(x)  b1 = Neg(a1)  c1 = Abs(b1) d1 = Cos(c1) e1 = Tanh(d1) y = Relu(e1) }",
         "e:e1 y:y"),
        ("G { [n1] a = Exp(x)  [n2] b = Neg(a)  [n3] c = Neg(b) [n4] d = Abs(c) y = Relu(d) }",
         "G { [n1] p = Sin(x)  [n3] q = Neg(p) [n4] r = Abs(q) y = Relu(r) }",
         "c:q d:r y:y"),
        ("G { a = Relu(x)  b = Relu(x)  c = Sub(a, b)  y = Exp(c) }",
         "G { a = Relu(x)  b = Relu(x)  c = Sub(b, a)  y = Exp(c) }",
         "a:a b:b c:c y:y"),
        ("G { a = Exp(x)  b = Sin(x)  c = Sub(a, b)  y = Exp(c) }",
         "G { a = Exp(x)  b = Sin(x)  c = Sub(b, a)  y = Exp(c) }",
         "a:a b:b c:c y:y"),
        ("G { a = Exp(x)  b = Sin(x)  c = Add(a, b)  y = Exp(c) }",
         "G { a = Exp(x)  b = Sin(x)  c = Add(b, a)  y = Exp(c) }",
         "a:a b:b c:c y:y"),
        ("G { a = Exp(x)  b = Sin(x)  c = own.Add(a, b)  y = Exp(c) }",
         "G { a = Exp(x)  b = Sin(x)  c = own.Add(b, a)  y = Exp(c) }",
         "a:a b:b c:c y:y"),
        ("(float[4,4] x) => (float[4,4] y) <float[4,4] w = W0> { a = MatMul(x, w)  y = Relu(a) }",
         "(float[4,4] x) => (float[4,4] y) <float[4,4] v = W0> { b = MatMul(x, v)  y = Relu(b) }",
         "a:b y:y"),
        ("(float[4,4] x) => (float[4,4] y) <float[4,4] w = W0> { a = MatMul(x, w)  y = Relu(a) }",
         "(float[4,4] x) => (float[4,4] y) <float[4,4] w = W1> { a = MatMul(x, w)  y = Relu(a) }",
         "a:a y:y"),
        ("(float[4,4] x) => (float[4,4] y) <float[4,4] w = W0> { e = Exp(x) a = MatMul(e, w) b "
         "= Add(a, w)  y = Relu(b) }",
         "(float[4,4] x) => (float[4,4] y) <float[4,4] w = W0> { e = Sin(x) p = MatMul(e, w) q "
         "= Add(p, w)  y = Relu(q) }",
         "a:p b:q y:y"),
        ("(float[4,4] x) => (float[4,4] y) <float[4,4] w = W0> { e = Exp(x) a = MatMul(e, w) b "
         "= Sin(a)  y = Relu(b) }",
         "(float[4,4] x) => (float[4,4] y) <float[4,4] w = W0> { e = Sin(x) p = MatMul(e, w) q "
         "= Exp(p)  y = Relu(q) }",
         "a:p y:y"),
        ("(float[2,4] x) => (float[2,4] y) { a, b = Split<axis=0, num_outputs=2>(x)  c = "
         "Concat<axis=0>(b, a)  y = Exp(c) }",
         "(float[2,4] x) => (float[2,4] y) { a, b = Split<axis=0, num_outputs=2>(x)  c = "
         "Concat<axis=0>(a, b)  y = Exp(c) }",
         "a:a c:c y:y"),
        ("(float[2,4] x) => (float[2,4] y) { y, m = Dropout(x) }",
         "(float[2,4] x) => (float[2,4] y) { y = Dropout(x) }",
         "y:y"),
        ("(float[2,4] x) => (y) { a = Cast<to=1>(x)  y = Neg(a) }",
         "(float[2,4] x) => (y) { a = Cast<to=10>(x)  y = Neg(a) }",
         "a:a y:y"),
        ("(float[4] x, bool c) => (float[4] y) { a = Relu(x)  y = If(c) <then_branch = t () => "
         "(float[4] p) { p = Neg(a) }, else_branch = e () => (float[4] q) { q = Abs(x) }> }",
         "(float[4] x, bool c) => (float[4] y) { a = Sin(x)  y = If(c) <then_branch = t () => "
         "(float[4] p) { p = Neg(a) }, else_branch = e () => (float[4] q) { q = Abs(x) }> }",
         "y:y"),
        ("G <float[4] k = {1,2,3,4}> { a = Add(x, k)  y = Neg(a) }",
         "G <float[4] k = {1,2,3,5}> { a = Add(x, k)  y = Neg(a) }",
         "a:a y:y"),
        ("G <float[4] k = {1,2,3,4}> { a = Add(x, k)  y = Neg(a) }",
         "G { k = Constant<value_floats=[1.0,2.0,3.0,4.0]>() a = Add(x, k)  y = Neg(a) }",
         "a:a y:y"),
        ("(float[4] x, float[4] k) => (float[4] y) { a = Add(x, k)  y = Neg(a) }",
         "G <float[4] k = {1,2,3,5}> { a = Add(x, k)  y = Neg(a) }",
         "a:a y:y"),
        ("G { a = Relu(x) b = Relu(a) c = Relu(b) y = Relu(c) }",
         "G { a = Relu(x) b = Relu(a) y = Relu(b) }",
         "a:a b:b c:y"),
        ("G { r = own.F(x)  y = own.G(r) }",
         "G { r = own.F2(x)  y = own.G(r) }",
         "y:y"),
        ("G { a = Exp(x) b = Sin(a) c = Cos(a) y = Add(b, c) }",
         "G { z = Tan(x) b = Sin(z) c = Cos(z) y = Add(c, b) }",
         "b:b c:c y:y"),
        ("G { a = Exp(x) b = Sin(a) c = Sin(a) d = Mul(b, x) y = Sub(d, c) }",
         "G { a = Tan(x) b = Sin(a) c = Sin(a) d = Mul(b, x) y = Sub(d, c) }",
         "b:b c:c d:d y:y"),
    ):  # fmt: skip
        found = pairs(whole(before), whole(after))
        assert " ".join(sorted(map(":".join, found.items()))) == expected, (before, after)


# --- one step at a time ---------------------------------------------------------------------------

FIRST = "(float[4] x) => (float[4] y) { a = Relu(x)  b = Neg(a)  c = Add(a, b)  y = Sin(c) }"
OTHER = (
    "(float[4] x) => (float[4] y) { z = Exp(x)  a = Relu(z)  b = Neg(a)  c = Add(b, a) y = Sin(c) }"
)


def bare(first: str = FIRST, second: str = OTHER) -> Matching:
    """Return a matching before any node is paired."""
    one, two = (Model.from_proto(parse(whole(text))).main for text in (first, second))
    return Matching(one, two)


def made(of: Matching, side: int, name: str) -> Node:
    """Return the node that computes a value."""
    producer = of.graphs[side].values[name].producer
    assert producer is not None
    return producer


def test_what_identifies_a_value() -> None:
    of = bare()
    a, b = (of.graphs[0].values[name] for name in "ab")
    other, z = (of.graphs[1].values[name] for name in "az")
    assert of.id_of(0, a) == f"only 0 {a.id}"
    assert of.id_of(1, other) == f"only 1 {other.id}"
    of._named[0][b] = z
    assert of.id_of(0, b) == "name b"
    of._pair(made(of, 0, "a"), made(of, 1, "a"))
    assert of.id_of(0, a) == of.id_of(1, other) == f"node {made(of, 0, 'a').id} 0"
    assert made(of, 0, "a").id != made(of, 1, "a").id
    assert of.id_of(0, of.graphs[0].values["x"]) == "input  0"
    of.partners[1][made(of, 1, "z")] = made(of, 0, "y")
    assert of.id_of(0, b) == f"only 0 {b.id}"


def test_pairs_agree_if_half_of_them_have_one_name() -> None:
    of = bare()
    rows = (("ab", "ab", True), ("abcy", "abyc", True), ("abcy", "azyc", False),
            ("abc", "zyb", True))  # fmt: skip
    for first, second, expected in rows:
        of.partners = ({}, {})
        for one, two in zip(first, second, strict=True):
            of._pair(made(of, 0, one), made(of, 1, two))
        assert of._agree(lambda node: node.output.name) == expected, (first, second)
    of._pair(made(of, 0, "y"), made(of, 1, "y"))
    assert of._agree(lambda node: node.name), "nodes without names count for nothing"


def test_a_pair_conflicts_with_values_of_one_name() -> None:
    of = bare()
    a, c, y = (made(of, 0, name) for name in "acy")
    one, other, last = (made(of, 1, name) for name in "acy")
    assert not of._conflicts(a, other, strict=True)
    of._named[0][a.output], of._named[1][one.output] = one.output, a.output
    assert not of._conflicts(a, one, strict=True)
    assert of._conflicts(a, other, strict=True)
    assert of._conflicts(c, one, strict=True), "the second side has a named value as well"
    assert not of._conflicts(a, other, strict=False)
    of._pair(made(of, 0, "b"), made(of, 1, "b"))
    assert of._conflicts(a, other, strict=False), "consumers of the named values are paired"
    of._named[0][y.output] = last.output
    assert of._conflicts(y, one, strict=False), "both are outputs of the graphs"


def test_values_of_one_name_may_be_the_same_if_nothing_else_is_known() -> None:
    of = bare()
    of._pair(made(of, 0, "a"), made(of, 1, "a"))
    of._name_values(everything=False)
    assert [(one.name, two.name) for one, two in of._named[0].items()] == [("y", "y")]
    of._name_values(everything=True)
    assert sorted(one.name for one in of._named[0]) == ["b", "c", "y"]
    assert {two: one for one, two in of._named[0].items()} == of._named[1]
    shaped = "(float[4] x) => (%s y) { a = ReduceSum<keepdims=%d>(x)  y = Neg(a) }"
    of = bare(shaped % ("float", 0), shaped % ("float[1]", 1))
    of._name_values(everything=True)
    assert of._named == ({}, {})
    unknown = "(x) => (y) { a = own.F(x)  y = Neg(a) }"
    of = bare(FIRST, unknown)
    of._name_values(everything=True)
    assert [one.name for one in of._named[0]] == ["a", "y"]


def test_the_key_of_what_a_node_reads_and_of_what_reads_it() -> None:
    of = bare()
    relu = made(of, 0, "a")
    assert of._forward(0, relu) == (relu.callee, "input  0")
    assert of._forward(0, made(of, 0, "b")) is None
    assert of._backward(0, made(of, 0, "b")) is None
    sine = of._backward(0, made(of, 0, "y"))
    assert sine == of._backward(1, made(of, 1, "y")) is not None
    of._pair(made(of, 0, "y"), made(of, 1, "y"))
    of._pair(made(of, 0, "c"), made(of, 1, "c"))
    assert of._backward(0, made(of, 0, "b")) == of._backward(1, made(of, 1, "b")) is not None
    assert of._backward(0, made(of, 0, "a")) is None, "one of its readers is not paired"
    of._pair(made(of, 0, "b"), made(of, 1, "b"))
    first, second = (of._forward(side, made(of, side, "c")) for side in (0, 1))
    assert first is None
    of._pair(relu, made(of, 1, "a"))
    first, second = (of._forward(side, made(of, side, "c")) for side in (0, 1))
    assert first == second is not None
    subtracting = bare(FIRST.replace("Add", "Sub"), OTHER.replace("Add", "Sub"))
    for name in "cy":
        subtracting._pair(made(subtracting, 0, name), made(subtracting, 1, name))
    keys = [subtracting._backward(side, made(subtracting, side, "b")) for side in (0, 1)]
    assert keys[0] != keys[1], "they are other operands of the difference"


def test_weights_that_one_node_reads_name_it() -> None:
    text = """(float[4,4] x) => (float[4,4] y)
        <float[4,4] v = W0, float[4,4] w = W1, float k = {1}> {
        a = MatMul(x, v)  b = MatMul(a, w)  c = Mul(b, w)  d = Mul(c, k)  y = Clip(d, , k) }"""
    of = bare(text, text)
    keys = [of._weights(0, made(of, 0, name)) for name in "abcdy"]
    assert [key is None for key in keys] == [False, True, True, True, True]
    assert keys[0] == of._weights(1, made(of, 1, "a"))
    assert of._weights(0, made(of, 0, "a")) != (*made(of, 0, "a").callee,)


def test_ports_by_name_and_by_place() -> None:
    one, two = (
        Model.from_proto(parse(f"({inputs}) => (float[4] y) {{ y = Neg(a) }}")).main.inputs
        for inputs in ("float[4] a, float[4] b, int64 c", "float[4] d, float[4] a")
    )

    def ports(*, by_name: bool) -> str:
        found = _ports(one, two, by_name=by_name)
        return " ".join(f"{a.name if a else '-'}:{b.name if b else '-'}" for a, b in found)

    assert ports(by_name=True) == "a:a b:d c:-"
    assert ports(by_name=False) == "a:d b:a c:-"
    assert [(a, b and b.name) for a, b in _ports((), two, by_name=True)] == [
        (None, "d"), (None, "a")
    ]  # fmt: skip
