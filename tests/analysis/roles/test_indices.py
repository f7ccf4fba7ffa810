"""What computes an index, a shape, an axis or a size, up to operators that select or learn."""

import re

import pytest

from tests.small import parsed
from tiered.analysis.roles.indices import INDICES, index_product_roles, index_roles
from tiered.analysis.roles.role import Role

HEAD = """(float[4] x, float[4,4] m, int64[2] n, float c) => (float[A] y)
    <int64 zero = {0}, int64 one = {1}, float[2] values = {0,1}> """


def found(nodes: str, *, products: bool = False) -> set[str]:
    """Return the outputs of the nodes with a role."""
    model = parsed(f"{HEAD}{{ {nodes} }}")
    roles = (index_product_roles if products else index_roles)(model)
    assert {*roles.values()} <= {Role("index or shape", "it decides where elements are")}
    return {node.output.name for node in roles}


@pytest.mark.parametrize(
    ("line", "is_index"),
    [
        ("Gather(x, i)", True),
        ("Gather(f, n)", False),
        ("Reshape(x, i)", True),
        ("Expand(x, i)", True),
        ("Tile(x, i)", True),
        ("Unsqueeze(x, i)", True),
        ("GatherElements(x, i)", True),
        ("ReduceSum(x, i)", True),
        ("ReduceSum(f, n)", False),
        ("ScatterElements(x, i, x)", True),
        ("ScatterElements(x, n, f)", False),
        ("ConstantOfShape(i)", True),
        ("OneHot(i, one, values)", True),
        ("OneHot(n, i, values)", True),
        ("OneHot(n, one, f)", False),
        ("Pad(x, i)", True),
        ("Pad(x, n, f)", False),
        ("Pad(x, n, , i)", True),
        ("Range(i, one, one)", True),
        ("Range(one, i, one)", True),
        ("Range(one, one, i)", True),
        ("Resize(x, f)", True),
        ("Resize(x, , f)", True),
        ("Resize(x, , , i)", True),
        ("Slice(x, i, n)", True),
        ("Slice(x, n, i)", True),
        ("Slice(x, n, n, i)", True),
        ("Slice(x, n, n, n, i)", True),
        ("Slice(f, n, n)", False),
        ("CumSum(x, i)", True),
        ("CumSum(f, n)", False),
        ("Trilu(m, i)", True),
        ("Identity(f)", False),
        ("Transpose(f)", False),
        ("Add(f, x)", False),
    ],
)
def test_the_operands_that_say_where_elements_are(line: str, is_index: bool) -> None:
    nodes = f"f = Cast<to=1>(n)  i = Cast<to=7>(f)  y = {line}"
    expected = {"f", "i"} if re.search(r"\bi\b", line) else {"f"}
    assert found(nodes) == (expected if is_index else set())


def test_operators_of_a_domain_of_their_own_have_no_such_operand() -> None:
    assert found("f = Cast<to=7>(n)  y = com.microsoft.Gather(x, f)") == set()
    assert INDICES.find(("com.microsoft", "Gather")) is None


def test_both_results_of_topk_need_its_count() -> None:
    nodes = "f = Cast<to=1>(n)  i = Cast<to=7>(f)  v, y = TopK(x, i)"
    assert found(nodes) == {"f", "i"}


def test_arithmetic_is_followed_back() -> None:
    nodes = "a = Add(x, x)  b = Floor(a)  i = Cast<to=7>(b)  z = Neg(x)  y = Gather(z, i)"
    assert found(nodes) == {"a", "b", "i"}


@pytest.mark.parametrize("line", ["ArgMax(a)", "ArgMin(a)", "Shape(a)", "Size(a)", "NonZero(a)"])
def test_indices_that_are_in_range_for_any_data_end_the_search(line: str) -> None:
    assert found(f"a = Neg(x)  s = {line}  i = Identity(s)  y = Gather(x, i)") == {"i"}


@pytest.mark.parametrize("line", ["Less(a, x)", "Equal(a, x)", "IsNaN(a)", "Hardmax(a)"])
def test_what_selects_ends_the_search(line: str) -> None:
    assert found(f"a = Neg(x)  s = {line}  i = Cast<to=7>(s)  y = Gather(x, i)") == {"i"}


def test_the_dtype_of_a_cast_is_no_index() -> None:
    assert found("a = Neg(c)  b = Abs(n)  i = CastLike(a, b)  y = Gather(x, i)") == {"a", "i"}


def test_operators_of_data_are_found_for_few_bits_only_and_end_the_search() -> None:
    nodes = "a = Neg(m)  p = MatMul(a, m)  i = Cast<to=7>(p)  y = Gather(x, i)"
    assert found(nodes) == {"i"}
    assert found(nodes, products=True) == {"i", "p"}


def test_what_is_read_twice_is_looked_at_once_and_constants_have_no_role() -> None:
    nodes = "a = Neg(n)  b = Add(a, a)  i = Add(b, one)  z = Gather(x, i)  y = Gather(z, i)"
    assert found(nodes) == {"a", "b", "i"}


def test_bodies_are_searched_and_what_they_capture() -> None:
    nodes = """i = Neg(n)  cond = Cast<to=9>(c)
        y = If(cond) <then_branch = t () => (float[N] p) { p = Gather(x, i) },
                      else_branch = e () => (float[N] q) { k = Abs(n)  q = Gather(x, k) }>"""
    assert found(nodes) == {"i", "k"}


def test_the_trip_count_of_a_loop_is_a_size() -> None:
    nodes = """t = Neg(one)  k = Cast<to=9>(c)
        y = Loop(t, k, x) <body = b (int64 at, bool go, float[4] v) => (bool more, float[4] w)
            { more = Identity(go)  w = Neg(v) }>"""
    assert found(nodes) == {"t"}
