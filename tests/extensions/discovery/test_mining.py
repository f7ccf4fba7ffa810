"""What could still go in a model."""

import numpy as np
import pytest

from tiered.extensions.discovery.applying import apply_findings, check_same
from tiered.extensions.discovery.mining import Mined, cuts, mine
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
