"""Problems: borders at sizes, what a proof depends on, and integers that are assumed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest

from tiered import Model
from tiered.certify.problem import (
    ABSTRACT,
    Assumed,
    Border,
    Given,
    Problem,
    Side,
    content_of,
    size_at,
)
from tiered.certify.regions.whole import whole_problem
from tiered.certify.trial_sizes import TrialSizes
from tiered.graph.core.tensor import Tensor
from tiered.graph.shape_inference.symbolic_dims import add, multiply, size_of_dim
from tiered.testing import parse

FLOAT, INT32, INT64 = (int(getattr(onnx.TensorProto, name)) for name in ("FLOAT", "INT32", "INT64"))
N, M = size_of_dim("N"), size_of_dim("M")


def sizes(**held: int) -> TrialSizes:
    made = TrialSizes((7,), 3)
    made.update(held)
    return made


def problem(before: str = "y = Add(x, z)", after: str = "y = Add(z, x)", head: str = "") -> Problem:
    head = head or "(float[N] x, float[N] z) => (float[N] y)"
    models = [Model.from_proto(parse(f"{head} {{ {text} }}")) for text in (before, after)]
    return whole_problem(*models)


# --- borders --------------------------------------------------------------------------------------


def test_sizes_of_dims_are_polynomials() -> None:
    assert size_at(4, sizes()) == 4
    assert size_at(N, sizes(N=5)) == 5
    assert size_at(add(add(multiply(N, 2), M), 3), sizes(N=5, M=2)) == 15
    assert size_at(add(multiply(N, M), -1), sizes(N=5, M=2)) == 9
    assert size_at(N, sizes()) == 7


@pytest.mark.parametrize(
    ("dims", "expected"),
    [((), ()), ((2, N), (2, 5)), ((add(N, -5),), (0,)), ((add(N, -6),), None), ((None, 2), None)],
)
def test_a_border_has_a_shape_at_sizes(dims: Any, expected: Any) -> None:
    assert Border(FLOAT, dims).shape(sizes(N=5)) == expected


def test_a_border_of_unknown_rank_has_that_of_the_sizes() -> None:
    border = Border(FLOAT, None, "x")
    held = sizes(**{"x[0]": 4, "x[2]": 5})
    assert border.shape(held) == (4, 7, 5)
    assert border.names(held) == {"x[0]", "x[1]", "x[2]"}
    assert Border(FLOAT, None).shape(held) is None
    assert Border(FLOAT, None).names(held) == set()
    assert Border(FLOAT, (2, N), "x").shape(sizes(N=5)) == (2, 5)


def test_the_names_of_dims() -> None:
    assert Border(FLOAT, (multiply(N, M), 2, add(N, 1), None)).names(sizes()) == {"N", "M"}
    assert Border(FLOAT, ()).names(sizes()) == set()


@pytest.mark.parametrize(
    ("dims", "text"), [((2, N, None), "float[2,N,?]"), (None, "float[?]"), ((), "float[]")]
)
def test_borders_read_as_types(dims: Any, text: str) -> None:
    assert str(Border(FLOAT, dims)) == text


# --- contents and keys ----------------------------------------------------------------------------


def node(op: str = "Split", outputs: tuple[str, ...] = ("a", "b"), **held: Any) -> onnx.NodeProto:
    return onnx.helper.make_node(op, ["x"], list(outputs), **held)


def test_the_content_of_a_node_is_what_it_computes() -> None:
    plain = content_of(node(axis=1, num_outputs=2))
    assert plain == content_of(node(outputs=("c", "d"), axis=1, num_outputs=2, name="a name"))
    assert plain == content_of(node(num_outputs=2, axis=1))
    others = [node(axis=0, num_outputs=2), node("Other", axis=1, num_outputs=2),
              node(outputs=("a", ""), axis=1, num_outputs=2),
              node(outputs=("a",), axis=1, num_outputs=2),
              node(axis=1, num_outputs=2, domain="own"),
              node(axis=1, num_outputs=2, overload="other")]  # fmt: skip
    assert len({plain, *map(content_of, others)}) == 7
    first, second = (content_of(each, with_outputs=False) for each in (others[2], others[3]))
    assert first == second


def test_equal_problems_have_equal_keys_whatever_their_names() -> None:
    plain = problem()
    renamed = problem("q = Add(p, r)", "q = Add(r, p)", "(float[N] p, float[N] r) => (float[N] q)")
    assert plain.key(()) == problem().key(())
    assert _as_named(plain) == _as_named(renamed)
    others = [
        problem(after="y = Add(x, z)"), problem("y = Sub(x, z)"), problem("y = Add(x, x)"),
        problem(head="(float[M] x, float[N] z) => (float[N] y)"),
        problem(head="(double[N] x, double[N] z) => (double[N] y)"),
        replace(plain, outputs=()), replace(plain, opsets={"": 20}),
        problem("a = Neg(x)  y = Add(x, z)"),
    ]  # fmt: skip
    assert len({plain.key(()), *(each.key(()) for each in others)}) == 9


def _as_named(given: Problem) -> object:
    return given.key(())[:3]  # type: ignore[index]  # a tuple


def test_what_bodies_capture_is_part_of_the_key() -> None:
    head = "(bool c, float[N] x, float[N] z) => (float[N] y)"
    text = """y = If(c)<then_branch = t () => (float[N] p) {{ p = Neg({0}) }},
                        else_branch = e () => (float[N] q) {{ q = Identity(x) }}>"""
    same = problem(text.format("x"), text.format("x"), head)
    other = problem(text.format("z"), text.format("x"), head)
    assert same.key(()) != other.key(())


def test_numbers_of_constants_count_unless_any_will_do() -> None:
    def with_number(value: float) -> Problem:
        head = f"(float[N] x) => (float[N] y) <float k = {{{value}}}>"
        return problem("y = Mul(x, k)", "y = Mul(k, x)", head)

    two, three = with_number(2), with_number(3)
    assert two.key(()) != three.key(())
    assert two.key({"k"}) == three.key({"k"})


def test_large_constants_of_both_sides_may_be_unknowns() -> None:
    large, small = (Tensor.of(np.zeros(size, np.float32)) for size in (ABSTRACT + 1, ABSTRACT))
    other = Tensor.of(np.ones(ABSTRACT + 1, np.float32))
    plain = problem()
    before = Side((), {"same": large, "small": small, "changed": large, "alone": large})
    after = Side((), {"same": large, "small": small, "changed": other, "new": other})
    assert replace(plain, sides=(before, after)).shared() == {"same", "alone"}
    assert ABSTRACT == 16


# --- operators and dims ---------------------------------------------------------------------------


def test_operators_are_those_of_bodies_and_functions_too() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "own": 1]>
        g (bool c, float[N] x) => (float[N] y) {
            y = If(c)<then_branch = t () => (float[N] p) { p = own.F(x) },
                      else_branch = e () => (float[N] q) { q = Exp(x) }> }
        <domain: "own", opset_import: ["": 21]> F (x) => (y) { y = Neg(x) }"""
    model = Model.from_proto(onnx.parser.parse_model(text))
    found = whole_problem(model, model.copy())
    if found.sides[0].nodes:
        assert found.operators == {"If", "Exp", "own::F", "Neg"}
    body = onnx.parser.parse_model(text)
    functions = {("own", "F", ""): body.functions[0]}
    side = Side([*body.graph.node], {}, functions)
    given = replace(problem(), sides=(side, Side((), {})))
    assert given.operators == {"If", "Exp", "own::F", "Neg"}
    assert not given.has_loops


def test_loops_are_seen() -> None:
    head = "(int64 n, bool c, float[N] x) => (float[N] y)"
    loop = """y = Loop(n, c, x)<body = b (int64 i, bool k, float[N] s) => (bool g, float[N] t) {
        g = Identity(k)  t = OP(s) }>"""
    assert problem(loop.replace("OP", "Neg"), loop.replace("OP", "Abs"), head).has_loops
    assert not problem().has_loops


def test_dims_that_have_some_size_or_are_sums_of_it() -> None:
    borders = {"a": Border(FLOAT, (add(N, M), 2)), "b": Border(FLOAT, (N,)),
               "c": Border(FLOAT, (multiply(M, 2),)),
               "d": Border(FLOAT, None, "d"), "e": Border(FLOAT, (None,))}  # fmt: skip
    given = replace(problem(), borders=borders)
    assert given.summands(3, sizes(N=3, M=5)) == ["N"]
    assert given.summands(8, sizes(N=3, M=5)) in (["N", "M"], ["M", "N"])
    assert given.summands(10, sizes(N=3, M=5)) == []  # twice M
    assert given.summands(99, sizes(N=3, M=5)) == []
    assert given.has_unknown_ranks
    assert not problem().has_unknown_ranks


def test_the_sizes_that_were_used_are_sorted() -> None:
    borders = {"a": Border(FLOAT, (N, M)), "b": Border(FLOAT, None, "b")}
    given = replace(problem(), borders=borders)
    assert given.used(sizes(N=3, M=5)) == {"M": 5, "N": 3, "b[0]": 7, "b[1]": 7, "b[2]": 7}


# --- integers that are assumed --------------------------------------------------------------------


def assumed(borders: Mapping[str, Border], **held: bool) -> Assumed:
    return Assumed(Given(), borders, **held)


def test_small_integers_are_tried_as_dims_are() -> None:
    given = assumed({"s": Border(INT64, (3,)), "n": Border(INT32, ())})
    tried = TrialSizes((2, 3, 5), 3)
    found = given.at(tried)
    assert (found["s"].tolist(), found["s"].dtype) == ([2, 3, 5], np.int64)
    assert (found["n"].shape, found["n"].dtype) == ((), np.int32)
    assert set(given.names(tried)) == {"s(0)", "s(1)", "s(2)", "n(0)"}


@pytest.mark.parametrize(("size", "is_tried"), [(8, True), (9, False)])
def test_more_integers_are_no_shape(size: int, is_tried: bool) -> None:
    assert (set(assumed({"s": Border(INT64, (size,))}).at(sizes())) == {"s"}) is is_tried


@pytest.mark.parametrize(("rank", "expected"), [(3, [-1, 1, 1]), (2, [1, 1, -1])])
def test_targets_are_shapes_that_any_tensor_takes(rank: int, expected: list[int]) -> None:
    given = assumed({"s": Border(INT64, (3,))}, are_targets=True)
    tried = TrialSizes((2,), rank)
    assert given.at(tried)["s"].tolist() == expected
    assert set(given.names(tried)) == {"s(-1 0)", "s(-1 1)", "s(-1 2)"}
    assert assumed({"s": Border(INT64, (3,))}).names(tried) == []


class Known(Given):
    def at(self, sizes: TrialSizes) -> Mapping[str, Any]:
        return {"s": np.array([9])}


def test_what_is_known_is_not_assumed() -> None:
    given = Assumed(Known(), {"s": Border(INT64, (1,)), "t": Border(INT64, (None,))})
    assert {name: each.tolist() for name, each in given.at(sizes()).items()} == {"s": [9]}
    assert Given().at(sizes()) == {}


def test_a_problem_assumes_its_integers_in_two_ways() -> None:
    borders = {"s": Border(INT64, (2,)), "m": Border(INT64, (2, 2)), "x": Border(FLOAT, (2,)),
               "r": Border(INT64, None), "n": Border(INT32, ())}  # fmt: skip
    places, targets = replace(problem(), borders=borders).assuming()
    assert set(places.given.at(sizes())) == {"s", "n"}
    assert targets.given.at(TrialSizes((2,), 3))["s"].tolist() == [-1, 1]
    assert problem().assuming() == ()
    assert places.used(sizes(**{"s(0)": 4})) == {"s(0)": 4}


def test_other_sizes_count_where_borders_have_values_of_their_own() -> None:
    plain = problem()
    assert not plain.is_fitted_to_values
    plain.fitted[0] = sizes()
    assert not plain.is_fitted_to_values
    known = replace(problem(), given=Known())
    assert not known.is_fitted_to_values
    known.fitted[0] = sizes()
    assert known.is_fitted_to_values


def test_names_of_integers_are_those_of_their_borders() -> None:
    tried = sizes(**{"s": 3, "s(0)": 4, "t(0)": 5, "s(-1 0)": 1})
    for are_targets, names in ((False, ["s(0)"]), (True, ["s(-1 0)"])):
        given = assumed({"s": Border(INT64, (1,))}, are_targets=are_targets)
        assert given.names(tried) == names


def test_a_captured_value_counts_by_what_computes_it() -> None:
    head = "(bool c, float[N] x) => (float[N] y)"
    text = """{0} = Neg(x)  {1} = Exp(x)  y = If(c)<
        then_branch = t () => (float[N] p) {{ p = Abs(a) }},
        else_branch = e () => (float[N] q) {{ q = Add(a, b) }}>"""
    one, other = (problem(text.format(*names), "y = Identity(x)", head) for names in ("ab", "ba"))
    assert one.key(()) != other.key(())


class OfSizes(Given):
    def at(self, sizes: TrialSizes) -> Mapping[str, Any]:
        return {"x": np.array([sizes.rank, sizes.for_ranks])}


def test_known_values_count_at_all_sizes_that_are_tried() -> None:
    plain = problem("y = Neg(x)", "y = Abs(x)", "(float[N] x) => (float[N] y)")
    for dims, count in (((N,), 1), (None, 2)):
        borders = {"x": Border(FLOAT, dims, "x")}
        given = [
            replace(plain, borders=borders, given=OfSizes(), sizes=[TrialSizes((2,), 1), mixed])
            for mixed in (TrialSizes((2,), 2, for_ranks=True), TrialSizes((2,), 3, for_ranks=True))
        ]
        assert len({each.key(()) for each in given}) == count
