"""What could still go in a model."""

import numpy as np
import pytest

from tests.extensions.discovery.making import Maker
from tests.written import Writer
from tiered.extensions.discovery.applying import _replace, apply_findings, check_same
from tiered.extensions.discovery.expressions import ExpressionTable
from tiered.extensions.discovery.mining import (
    Finding,
    Mined,
    _GraphSearch,
    _has_key,
    _has_own_sizes,
    _SubgraphReader,
    border_values,
    cuts,
    has_new_constants,
    mine,
)
from tiered.graph import Model
from tiered.runtime import Session
from tiered.support.errors import TargetError
from tiered.testing import parse

FOUND = (
    "(float[4,6] x, float[N,6] z) => (float[6] y, float[N,6] w)"
    " <int64[2] s = {2,1}, int64 i = {0}>"
    " { a = Exp(x)  p = Tile(a, s)  y = Gather(p, i)  h = Round(z)  w = Floor(h) }"
)


def _mined(text: str = FOUND) -> tuple[Model, Mined]:
    model = Model.from_proto(parse(text))
    return model, mine(model)


def test_subgraphs_have_no_other_consumers() -> None:
    model, _ = _mined(
        "(float[2] x) => (float[2] y, float[2] z)"
        " { a = Exp(x)  b = Neg(a)  y = Relu(b)  c = Neg(x)  d = Abs(c)  z = Add(d, a) }"
    )
    root = model.main.outputs[1].producer
    assert root is not None
    found = {"".join(sorted(node.op_type for node in cut.nodes)) for cut in cuts(root, 3)}
    assert found == {"Add", "AbsAdd", "AbsAddNeg"}


def test_a_cheaper_graph_is_found_and_counted() -> None:
    _, mined = _mined()
    laws = [(each.law, each.domain, each.nodes, len(each.places)) for each in mined.findings]
    assert laws == [
        ("Gather(Tile(x0))  =>  Gather(x0)", "bits", 1, 1),
        ("Floor(Round(x0))  =>  Round(x0)", "bits", 1, 1),
    ]


def test_equal_subgraphs_are_one_finding() -> None:
    _, mined = _mined(
        "(float[4] x, float[4] z) => (float[4] y, float[4] w)"
        " { a = Round(x)  y = Floor(a)  b = Round(z)  w = Floor(b) }"
    )
    (found,) = mined.findings
    assert len(found.places) == 2
    assert found.gain[0] == 2


def test_subgraphs_of_other_sizes_are_one_kind() -> None:
    _, mined = _mined(
        "(float[40,50] x, float[N,70] z) => (float[40,50] y, float[N,70] w)"
        " { a = Round(x)  y = Floor(a)  b = Round(z)  w = Floor(b) }"
    )
    (found,) = mined.findings
    assert (mined.kinds, len(found.places)) == (3, 2)


def test_small_dims_and_those_that_stand_for_others_differ() -> None:
    # 5 is a size of its own here, so the 40 is another one: the product is of (5, 7) and (7, 5).
    _, mined = _mined(
        "(float[5,40] x, float[40,5] z) => (float[5,5] y)"
        " { a = MatMul(x, z)  b = Round(a)  y = Floor(b) }"
    )
    (found,) = mined.findings
    shapes = {each.shape for each in found.source.walk() if not each.is_operator}
    assert shapes == {(5, 5)}


def test_the_most_frequent_kinds_are_searched_first() -> None:
    text = (
        "(float[4] x, float[4] z) => (float[4] y, float[4] w, float[4] v)"
        " { a = Ceil(x)  y = Floor(a)  b = Round(z)  w = Floor(b)  c = Round(x)  v = Floor(c) }"
    )
    reached: list[tuple[int, int]] = []
    model = Model.from_proto(parse(text))
    mined = mine(model, most_kinds=3, reached=lambda at, count: reached.append((at, count)))
    assert [each.law for each in mined.findings] == ["Floor(Round(x0))  =>  Round(x0)"]
    assert (mined.kinds, mined.left, reached) == (5, 2, [(0, 3), (1, 3), (2, 3)])


def test_large_dims_are_tried_as_small_ones() -> None:
    _, mined = _mined("(float[400,600] x) => (float[400,600] y) { a = Round(x)  y = Ceil(a) }")
    assert [each.law for each in mined.findings] == ["Ceil(Round(x0))  =>  Round(x0)"]


def test_a_cheaper_graph_with_new_constants_needs_the_sizes_of_the_model() -> None:
    text = (
        "(float[2,{0}] x) => (float[{0}] y)"
        " <int64[1] b = {{0}}, int64[1] e = {{1}}, int64[1] s = {{{0}}}>"
        " {{ h = Slice(x, b, e)  y = Reshape(h, s) }}"
    )
    laws = [[each.law for each in _mined(text.format(size))[1].findings] for size in (3, 30)]
    assert laws == [["Reshape(Slice(x0))  =>  Gather(x0)"], []]


def test_attributes_may_be_tensors() -> None:
    _, mined = _mined(
        "(int64[1] s) => (float[N] y)"
        " { a = ConstantOfShape<value = float[1] {2}>(s)  b = Round(a)  y = Floor(b) }"
    )
    assert [each.law for each in mined.findings] == ["Floor(Round(x0))  =>  Round(x0)"]


def test_what_is_found_is_applied_and_proved() -> None:
    model, mined = _mined()
    assert apply_findings(model, mined.findings) == 2
    assert sorted(node.op_type for node in model.main.nodes) == ["Exp", "Gather", "Round"]
    feeds = {
        "x": np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6),
        "z": np.linspace(-9, 9, 18, dtype=np.float32).reshape(3, 6),
    }
    first, second = (Session(each).run(feeds) for each in (parse(FOUND), model.to_proto()))
    for name, value in first.items():
        assert np.array_equal(value, second[name])


def test_what_is_not_proved_is_an_error() -> None:
    one, other = (
        Model.from_proto(parse(f"(float[2] x) => (float[2] y) {{ y = {op}(x) }}"))
        for op in ("Exp", "Neg")
    )
    with pytest.raises(TargetError, match="not certified"):
        check_same(one, other)


def test_what_saves_how_much_at_how_many_places() -> None:
    for text, findings, counts in (
        ("(float[4] x) => (float[4] y) { a = Round(x)  y = Floor(a) }",
         [("Floor(Round(x0))  =>  Round(x0)", "bits", 1, 32, 1)], (3, 3, 0)),
        ("(float[4] x) => (float[4] y) { a = Neg(x)  y = Neg(a) }",
         [("Neg(Neg(x0))  =>  x0", "bits", 2, 64, 1)], (3, 2, 0)),
        ("(float[4] x) => (float[4] y) { a = Neg(x)  b = Abs(a) c = Abs(b) y = Relu(c) }",
         [("Abs(Neg(x0))  =>  Abs(x0)", "bits", 1, 32, 1)], (10, 9, 0)),
        ("(float[4] x) => (float[4] y) <float two = {2}> { a = Mul(x, two)  y = Div(a, two) }",
         [("Div(Mul(x0, c))  =>  x0", "reals", 2, 64, 1)], (3, 3, 0)),
        ("(float[4] x) => (float[4] y) { a = own.Any(x)  y = Floor(a) }",
         [], (3, 0, 0)),
        ("(float[4] x) => (float[4] y) { a = own.Any(x)  b = Round(a)  y = Floor(b) }",
         [], (6, 0, 0)),
        ("(float[4] x) => (float[4] y) { a, b = Split<axis=0, num_outputs=2>(x)  c = Round(a)  "
         "d = Floor(c)  y = Concat<axis=0>(d, b) }",
         [("Floor(Round(x0))  =>  Round(x0)", "bits", 1, 16, 1)], (6, 6, 0)),
        ("(float[4] x, bool c) => (float[4] y) { a = Round(x)  y = If(c) <then_branch = t () => "
         "(float[4] p) { p = Floor(a) }, else_branch = e () => (float[4] q) { q = Floor(a) }> }",
         [], (1, 1, 0)),
        ("(float[70,70] x) => (float[70,70] y) { a = Round(x)  y = Floor(a) }",
         [("Floor(Round(x0))  =>  Round(x0)", "bits", 1, 200, 1)], (3, 3, 0)),
        ("(float[2,3,4,5,6,7] x) => (float[2,3,4,5,6,7] y) { a = Round(x)  y = Floor(a) }",
         [], (3, 3, 3)),
        ("(float[2,3,4,5,6,6] x) => (y) { a = Round(x)  y = Floor(a) }",
         [], (3, 3, 3)),
        ("(float[8,8,8,8] x) => (float[8,8,8,8] y) { a = Round(x)  y = Floor(a) }",
         [("Floor(Round(x0))  =>  Round(x0)", "bits", 1, 32768, 1)], (3, 3, 0)),
        ("(float[8,8,8,8,2] x) => (float[8,8,8,8,2] y) { a = Round(x)  y = Floor(a) }",
         [], (3, 3, 3)),
        ("(float[N] x) => (float[N] y) { a = Round(x)  y = Floor(a) }",
         [("Floor(Round(x0))  =>  Round(x0)", "bits", 1, 40, 1)], (3, 3, 0)),
        ("(float[N,8,9] x) => (float[N,8,9] y) { a = Round(x)  y = Floor(a) }",
         [("Floor(Round(x0))  =>  Round(x0)", "bits", 1, 2240, 1)], (3, 3, 0)),
        ("(float[2,3] x) => (float[3,2] y) { a = Transpose(x)  b = Transpose(a)  y = "
         "Transpose(b) }",
         [("Transpose(Transpose(x0))  =>  x0", "bits", 2, 96, 1)], (6, 5, 0)),
        ("(float[2,3] x) => (float[2,3] y) <int64[2] s = {2,3}, int64[1] t = {6}> { a = "
         "Reshape(x, t)  y = Reshape(a, s) }",
         [("Reshape(Reshape(x0))  =>  x0", "bits", 2, 0, 1)], (3, 3, 0)),
        ("(float[20,30] x) => (float[20,30] y) <int64[2] s = {20,30}, int64[1] t = {600}> { a = "
         "Reshape(x, t)  y = Reshape(a, s) }",
         [], (3, 3, 3)),
        ("(float[4] x) => (float[4] y) <float[4] k = {1,2,3,4}> { a = Round(x) b = Floor(a) y = "
         "Add(b, k) }",
         [("Floor(Round(x0))  =>  Round(x0)", "bits", 1, 32, 1)], (6, 6, 0)),
        ("(bool[4] x) => (bool[4] y) { a = Not(x)  y = Not(a) }",
         [("Not(Not(x0))  =>  x0", "bits", 2, 16, 1)], (3, 2, 0)),
        ("(float[2] x) => (float[2] y) { a = Dropout(x) b = Round(a) y = Floor(b) }",
         [("Dropout(x0)  =>  x0", "bits", 1, 16, 1), ("Floor(Round(x0))  =>  Round(x0)", "bits", 1,
          16, 1)], (6, 6, 0)),
        ("(float[4] x) => (float[4] y) { a = Relu(x)  y = Relu(a) }",
         [("Relu(Relu(x0))  =>  Relu(x0)", "bits", 1, 32, 1)], (3, 2, 0)),
    ):  # fmt: skip
        _, mined = _mined(text)
        assert [
            (each.law, each.domain, each.nodes, each.moved, len(each.places))
            for each in mined.findings
        ] == findings, text
        assert (mined.subgraphs, mined.kinds, mined.skipped) == counts, text


def test_a_value_that_an_annotation_names_stays() -> None:
    proto = parse("(float[4] x) => (float[4] y) { a = Round(x)  y = Floor(a) }")
    annotation = proto.graph.quantization_annotation.add(tensor_name="x")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="a")
    mined = mine(Model.from_proto(proto))
    assert (mined.findings, mined.subgraphs) == ([], 2)


def test_the_shape_of_a_part_follows_from_its_operands() -> None:
    text = """(float[40] x) => (float[30] y) <int64[1] b = {0}, int64[1] e = {30}> {
        a = Round(x)  h = Slice(a, b, e)  y = Floor(h) }"""
    _, mined = _mined(text)
    assert (mined.findings, mined.kinds, mined.skipped) == ([], 6, 4)


def test_operators_are_tried_on_parts_of_few_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """(float[2,3] x) => (float[3] y) <int64[1] b = {0}, int64[1] e = {1}, int64[1] s = {3}>
        { h = Slice(x, b, e)  y = Reshape(h, s) }"""
    for most, laws in ((1, []), (2, ["Reshape(Slice(x0))  =>  Gather(x0)"])):
        monkeypatch.setattr("tiered.extensions.discovery.mining._MOST_STEPS", most)
        assert [each.law for each in _mined(text)[1].findings] == laws


def test_an_expression_without_a_value_equals_nothing() -> None:
    make = Maker()
    lost = make.meaning.table.apply("Relu", [make.x], kind=(1, (2, 3)), output=1)
    wanted = make.meaning.key(make.x)
    assert not _has_key(make.meaning, lost, wanted)
    assert not _has_key(make.meaning, make("Neg", make.x), wanted)
    assert _has_key(make.meaning, make.x, wanted)


def test_what_takes_the_place_of_a_subgraph() -> None:
    make = Maker()
    table = make.meaning.table
    x = table.border("x0", 1, (2, 3))
    two = table.constant(np.array(2, np.float32))
    (clip,) = make.meaning.applied("Clip", [x, None, two], ())
    source = make("Abs", make("Neg", x))
    for target, expected in (
        (make("Abs", x), "Abs(x)"),
        (clip, "Clip(x, -, 2.0)"),
        (make("Neg", clip), "Neg(Clip(x, -, 2.0))"),
        (make("Transpose", make("Transpose", x, perm=[1, 0]), perm=[1, 0]),
         "Transpose<perm=(1,0)>(Transpose<perm=(1,0)>(x))"),
        (x, "x"), (two, "2.0"), (make("Exp", make("Neg", x)), "Exp(Neg(x))"),
        (make("Reshape", x, [3, 2]), "Reshape(x, [3,2])"),
    ):  # fmt: skip
        model = Model.from_proto(
            parse("(float[2,3] x) => (r) { a = Neg(x)  y = Abs(a)  r = Exp(y) }")
        )
        root = model.main.values["y"].producer
        assert root is not None
        cut = [*cuts(root, 2)][-1]
        with model.main.rewrite("a law", root):
            _replace(model.main, cut, Finding(source, target, "bits"))
        (operand,) = model.main.outputs[0].producer.inputs  # type: ignore[union-attr]  # it is Exp
        assert Writer()(operand) == expected


def read(text: str, most: int) -> str:
    """Return each subgraph with its borders, as an expression with the shapes of its leaves."""
    model = Model.from_proto(parse(text))
    reader = _SubgraphReader(ExpressionTable(), model)
    lines = []
    for cut in (each for node in model.main.nodes for each in cuts(node, most)):
        expr = reader.expression(cut)
        borders = " ".join(value.name for value in cut.borders)
        if expr is None:
            lines.append(f"{borders}: none")
            continue
        leaves = [each for each in expr.walk() if not each.is_operator]
        shapes = " ".join(str(list(each.shape)).replace(" ", "") for each in leaves)
        held = " ".join(value.name for value in border_values(expr, cut).values())
        lines.append(f"{borders}: {expr} {shapes}: {held}")
    return "\n".join(lines)


def test_subgraphs_as_expressions() -> None:
    for text, most, expected in (
        ("(float[2] x) => (float[2] y) { a = Neg(x)  b = Abs(a)  y = Add(b, a) }",
         3, """\
x: Neg(x0) [2]: a x
a: Abs(x0) [2]: b a
b a: Add(x0, x1) [2] [2]: y b a
a: Add(Abs(x0), x0) [2]: y b a
x: Add(Abs(Neg(x0)), Neg(x0)) [2]: y b a x"""),
        ("(float[2] x) => (float[2] y, float[2] a) { a = Neg(x)  b = Abs(a)  y = Exp(b) }",
         3, """\
x: Neg(x0) [2]: a x
a: Abs(x0) [2]: b a
b: Exp(x0) [2]: y b
a: Exp(Abs(x0)) [2]: y b a"""),
        ("(float[4] x) => (float[2] y) { a, b = Split<num_outputs=2>(x)  y = Add(a, b) }",
         3, """\
a b: Add(x0, x1) [2] [2]: y a b"""),
        ("(float[2] x, bool c) => (float[2] y) { a = If(c) <then_branch = t () => (float[2] p)"
         " { p = Neg(x) }, else_branch = e () => (float[2] q) { q = Exp(x) }>  y = Abs(a) }",
         3, """\
a: Abs(x0) [2]: y a"""),
        ("(float[2] x) => (float[2] y) <float m = {1}> { a = Clip(x, , m)  y = Abs(a) }",
         2, """\
x m: Clip(x0, _, 1.) [2] []: a x m
a: Abs(x0) [2]: y a
x m: Abs(Clip(x0, _, 1.)) [2] []: y a x m"""),
        ("(x) => (y) { a = Neg(x)  y = Abs(a) }",
         2, """\
x: none
a: none
x: none"""),
        ("(float[?,3] x) => (float[?,3] y) { a = Neg(x)  y = Abs(a) }",
         2, """\
x: Neg(x0) [5,3]: a x
a: Abs(x0) [5,3]: y a
x: Abs(Neg(x0)) [5,3]: y a x"""),
        ("(float[N,30,8,9] x) => (float[N,30,8,9] y) { y = Abs(x) }",
         2, """\
x: Abs(x0) [5,7,8,6]: y x"""),
        ("(float[30] x) => (float[30] y) <int64[1] s = {30}, int64[2] t = {8,9}, float[1] f = "
         "{30}> { a = Reshape(x, s)  y = own.Op(a, t, f) }",
         2, """\
x s: Reshape(x0, [5]) [5] [1]: a x s
a t f: Op(x0, [8,9], [30.]) [5] [2] [1]: y a t f
x s t f: Op(Reshape(x0, [5]), [8,9], [30.]) [5] [1] [2] [1]: y a x s t f"""),
        ("(float[8] x) => (float[8] y) <float[8] k = {1,2,3,4,5,6,7,8}> { y = Add(x, k) }",
         2, """\
x k: Add(x0, [1.,2.,3.,4.,5.,6.,7.,8.]) [8] [8]: y x k"""),
        ("(float[9] x) => (float[9] y) <float[9] k = {1,2,3,4,5,6,7,8,9}> { y = Add(x, k) }",
         2, """\
x k: Add(x0, x1) [5] [5]: y x k"""),
        ("(int32[4,4] x) => (int32[4,4] y) <int32[4,4] k = "
         "{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}> { y = Add(x, k) }",
         2, """\
x k: Add(x0, [[1,2,3,4],[5,6,7,8],[9,10,11,12],[13,14,15,16]]) [4,4] [4,4]: y x k"""),
        ("(int32[3,6] x) => (int32[3,6] y) <int32[3,6] k = "
         "{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18}> { y = Add(x, k) }",
         2, """\
x k: Add(x0, x1) [3,6] [3,6]: y x k"""),
        ("(float[2] x, float[2] d = {1,2}) => (float[2] y) { y = Add(x, d) }",
         2, """\
x d: Add(x0, x1) [2] [2]: y x d"""),
        ('(string[2] x) => (string[2] y) <string[2] k = {"a","b"}> { y = StringConcat(x, k) }',
         2, """\
x k: StringConcat(x0, ['a','b']) [2] [2]: y x k"""),
        ("(float[2] x) => (y) { a = own.F(x)  y = Abs(a) }",
         2, """\
x: none
a: none
x: none"""),
    ):  # fmt: skip
        assert read(text, most) == expected, text


def test_a_root_has_a_limited_number_of_subgraphs() -> None:
    negs = "  ".join(f"a{at} = Neg(x)" for at in range(7))
    model = Model.from_proto(parse(
        f"(float[2] x) => (float[2] y) {{ {negs}  b0 = Add(a0, a1)  b1 = Add(a2, a3) "
        "b2 = Add(a4, a5)  c0 = Add(b0, b1)  c1 = Add(b2, a6)  y = Add(c0, c1) }"
    ))  # fmt: skip
    root = model.main.outputs[0].producer
    assert root is not None
    assert [len([*cuts(root, most)]) for most in (1, 2, 3, 5, 99)] == [1, 3, 8, 33, 33]


def test_an_expression_without_one_of_its_nodes() -> None:
    make = Maker()
    search = _GraphSearch(make.meaning.table)
    source = make("Clip", make("Reshape", make("Abs", make("Neg", make.x)), [2, 3]), 0.0)
    found = [str(each) for each in search._without_a_node(source, make.meaning)]
    assert found == [
        "Clip(Reshape(Abs(x), [2,3]), 0.)",
        "Clip(Reshape(Neg(x), [2,3]), 0.)",
        "Clip(Abs(Neg(x)), 0.)",
    ]
    cast = make("Abs", make("Cast", make("Transpose", make.x, perm=[1, 0]), to=11))
    assert [str(each) for each in search._without_a_node(cast, make.meaning)] == []
    absent = [make("Abs", make("Neg", make.x)), None, make.constant(1.0)]
    (source,) = make.meaning.applied("Clip", absent, ())
    found = [str(each) for each in search._without_a_node(source, make.meaning)]
    assert found == ["Clip(Abs(x), _, 1.)", "Clip(Neg(x), _, 1.)"]


def test_constants_of_a_finding_that_the_subgraph_lacks_are_new() -> None:
    make = Maker()
    double, negative = make("Mul", make.x, 2.0), make("Neg", make.x)
    for source, target, expected in (
        (make("Mul", double, 2.0), double, False),
        (make("Abs", negative), double, True),
        (make("Mul", double, 4.0), make("Mul", make.x, 8.0), True),
        (double, negative, False),
        (make("Abs", negative), negative, False),
    ):
        assert has_new_constants(Finding(source, target, "bits")) == expected, (source, target)


def test_sizes_up_to_8_are_those_of_the_model() -> None:
    for shape, expected in (("[2,8]", True), ("[2,9]", False), ("", True), ("[N]", False)):
        model = Model.from_proto(
            parse(f"(float{shape} x) => (float{shape} y) {{ a = Neg(x)  y = Abs(a) }}")
        )
        root = model.main.outputs[0].producer
        assert root is not None
        assert [_has_own_sizes(cut) for cut in cuts(root, 2)] == [expected] * 2, shape
