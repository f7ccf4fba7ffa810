import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_nop_scatter"


@pytest.mark.parametrize(
    ("shape", "indices"),
    [
        ("[3,4]", "int64[3,1] i = {0,1,2}"),
        ("[3,4]", "int64[3,1] i = {0,-2,2}"),
        ("[3]", "int64[3,1] i = {0,1,2}"),
        ("[2,3]", "int64[2,3,2] i = {0,0,0,1,0,2,1,0,1,1,1,2}"),
        ("[1,N]", "int64[1,1] i = {0}"),
        ("[2,2,N]", "int64[2,2,2] i = {0,0,0,1,1,0,1,1}"),
    ],
)
@pytest.mark.parametrize("dtype", ["float", "int64", "bool"])
def test_updates_of_every_place_are_the_result(shape: str, indices: str, dtype: str) -> None:
    head = f"({dtype}{shape} x, {dtype}{shape} u) => ({dtype}{shape} y)"
    assert_rewrites(
        PASS,
        f"{head} <{indices}> {{ t = ScatterND(x, i, u) y = Identity(t) }}",
        f"{head} {{ y = Identity(u) }}",
    )


@pytest.mark.parametrize("dim", ["N", "?"])
@pytest.mark.parametrize(
    ("column", "constant"),
    [("Unsqueeze(r, c)", "int64[1] c = {-1}"), ("Reshape(r, c)", "int64[2] c = {-1,1}")],
)
def test_places_may_be_counted_up_to_the_size_of_x(dim: str, column: str, constant: str) -> None:
    head = f"(float[{dim},4] x, float[{dim},4] u) => (float[{dim},4] y)"
    assert_rewrites(
        PASS,
        f"{head} <int64 z = {{0}}, int64 one = {{1}}, {constant}> {{ s = Shape(x) n = Gather(s, z)"
        f" r = Range(z, n, one) i = {column} t = ScatterND(x, i, u) y = Relu(t) }}",
        f"{head} {{ y = Relu(u) }}",
    )


def test_the_size_may_be_that_of_an_axis_that_is_brought_to_the_front() -> None:
    head = "(float[4,N] x, float[N,4] u) => (float[N,4] y)"
    assert_rewrites(
        PASS,
        f"{head} <int64 z = {{0}}, int64 one = {{1}}, int64[1] last = {{-1}}>"
        " { s = Shape(x) n = Gather(s, one) r = Range(z, n, one) i = Unsqueeze(r, last)"
        " t = Transpose(x) o = ScatterND(t, i, u) y = Relu(o) }",
        f"{head} {{ y = Relu(u) }}",
    )


@pytest.mark.parametrize(
    ("indices", "updates"),
    [
        ("int64[2,1] i = {0,1}", "[2,4]"),
        ("int64[3,1] i = {0,2,1}", "[3,4]"),
        ("int64[3,1] i = {0,1,1}", "[3,4]"),
        ("int64[3,2] i = {0,0,1,1,2,2}", "[3]"),
        ("int64[1,3,1] i = {0,1,2}", "[1,3,4]"),
    ],
)
def test_other_places_leave_some_of_x_or_change_the_order(indices: str, updates: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[3,4] x, float{updates} u) => (float[3,4] y) <{indices}> {{ y = ScatterND(x, i, u) }}",
        because="the indices are not known to be consecutive",
    )


@pytest.mark.parametrize(
    "nodes",
    [
        # One axis, places of the other.
        "s = Shape(x) n = Gather(s, one) r = Range(z, n, one) i = Unsqueeze(r, last)",
        "s = Shape(x) n = Gather(s, z) r = Range(one, n, one) i = Unsqueeze(r, last)",
        "s = Shape(x) n = Gather(s, z) r = Range(z, n, two) i = Unsqueeze(r, last)",
        "s = Shape(u) n = Gather(s, z) r = Range(z, n, one) i = Unsqueeze(r, last)",
        "s = Shape(x) n = Gather(s, z) r = Range(z, k, one) i = Unsqueeze(r, last)",
        "s = Shape(x) n = Gather(s, z) r = Range(z, n, one) i = Unsqueeze(r, last2)",
    ],
)
def test_another_range_is_not_that_of_the_axis(nodes: str) -> None:
    assert_unchanged(
        PASS,
        "(float[N,M] x, float[K,M] u, int64 k) => (float[N,M] y) <int64 z = {0}, int64 one = {1},"
        " int64 two = {2}, int64[1] last = {-1}, int64[2] last2 = {0,-1}>"
        f" {{ {nodes} y = ScatterND(x, i, u) }}",
        because="the indices are not known to be consecutive",
    )


def test_a_reduction_needs_what_was_there() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, float[2] u) => (float[2] y) <int64[2,1] i = {0,1}>"
        ' { y = ScatterND<reduction="add">(x, i, u) }',
    )


def test_an_unknown_rank_may_have_more_places() -> None:
    assert_unchanged(
        PASS,
        "(float[6] z, int64[R] s, float[3,2] u) => (float[A,B] y) <int64[3,1] i = {0,1,2}>"
        " { x = Reshape(z, s) y = ScatterND(x, i, u) }",
        because="the rank of x is not known",
    )
