"""serialize_matmul: products in parts, by columns, rows or sums."""

import pytest
from hypothesis import given, settings, strategies as st

from tiered import PassContext, UsageError, get_pass
from tiered.runtime import Session, make_inputs
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "serialize_matmul"
W = "float[2,3] w = {1,2,3,4,5,6}"
TEXT = f"(float[4,2] x) => (float[4,3] y) <{W}> {{ y = MatMul(x, w) }}"
FED = "(float[4,2] x, float[2,3] w) => (float[4,3] y) { y = MatMul(x, w) }"


def test_constant_columns_are_cut_at_once_and_need_not_divide() -> None:
    after = """(float[4,2] x) => (float[4,3] y)
        <float[2,2] v = {1,2,4,5}, float[2,1] u = {3,6}>
        { a = MatMul(x, v) b = MatMul(x, u) y = Concat<axis=-1>(a, b) }"""
    assert_rewrites(PASS, TEXT, after, split=["y=2"])
    # A column is of 8 bytes.
    assert_rewrites(PASS, TEXT, after, max_bytes=16)


def test_rows_are_slices() -> None:
    after = f"""(float[4,2] x) => (float[4,3] y) <{W}, int64[1] zero = {{0}}, int64[1] two = {{2}},
        int64[1] four = {{4}}, int64[1] rows = {{-2}}, int64[1] again = {{2}}, int64[1] same = {{-2}}> {{
        a = Slice(x, zero, two, rows) b = MatMul(a, w)
        c = Slice(x, again, four, same) d = MatMul(c, w) y = Concat<axis=-2>(b, d) }}"""
    assert_rewrites(PASS, TEXT, after, split=["y=2"], dim="rows")


def test_parts_of_the_inner_dim_are_added() -> None:
    made = get_pass(PASS, split=["y=2"], dim="inner")(parse(FED))
    assert [node.op_type for node in made.graph.node if node.op_type != "Slice"] == [
        "MatMul", "MatMul", "Add",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "because", "options"),
    [
        (TEXT, "no split into parts is requested", {}),
        (TEXT, "no split into parts is requested", {"max_bytes": 24}),
        (TEXT, "no split into parts is requested", {"split": ["other=2"]}),
        (TEXT, "the dim is shorter than 4 parts", {"split": ["y=4"]}),
        (
            "(float[2] x, float[2,3] w) => (float[3] y) { y = MatMul(x, w) }",
            "a factor is not a matrix of known rank",
            {"split": ["y=2"]},
        ),
        (
            "(float[2,2] x, float[2,N] w) => (float[2,N] y) { y = MatMul(x, w) }",
            "the size of the dim is not known",
            {"split": ["y=2"]},
        ),
        (
            "(float16[2,2] x, float16[2,3] w) => (float16[2,3] y) { y = MatMul(x, w) }",
            "sums of parts would round to half precision",
            {"split": ["y=2"], "dim": "inner"},
        ),
    ],
)
def test_it_declines(text: str, because: str, options: dict[str, object]) -> None:
    assert_unchanged(PASS, text, because=because, **options)  # type: ignore[arg-type]  # of any


@pytest.mark.parametrize("entry", ["y", "y=two", "y=2/depth", "=2", "y=0"])
def test_a_split_names_a_node_and_its_parts(entry: str) -> None:
    with pytest.raises(UsageError, match=f"node=parts or node=parts/dim, not '{entry}'"):
        get_pass(PASS, split=[entry])(parse(TEXT))


def test_a_split_of_no_node_is_a_remark() -> None:
    assert_unchanged(PASS, TEXT, because="no MatMul is named 'z'", split=["z=2"])


def test_a_split_has_a_dim_of_its_own() -> None:
    made = get_pass(PASS, split=["y=2/inner"])(parse(TEXT))
    assert [node.op_type for node in made.graph.node][-1] == "Add"


def test_a_remark_has_the_peak_before_and_after() -> None:
    ctx = PassContext()
    with ctx:
        get_pass(PASS, split=["y=2"])(parse(TEXT))
    # x, the result and its parts: 32 + 48, and 48 more.
    assert "the peak was 80 bytes and is 128 now" in [remark.reason for remark in ctx.remarks]


@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 7), st.integers(2, 5), st.data())
@settings(max_examples=25, deadline=None)
def test_all_parts_are_there(m: int, k: int, n: int, parts: int, data: st.DataObject) -> None:
    dim = data.draw(st.sampled_from(("columns", "rows", "inner")))
    text = f"(float[2,{m},{k}] x, float[{k},{n}] w) => (float[2,{m},{n}] y) {{ y = MatMul(x, w) }}"
    pass_ = get_pass(PASS, split=[f"y={parts}"], dim=dim)
    before = parse(text)
    after = pass_(before)
    feeds = make_inputs(before).feeds
    one, other = (Session(each).run(feeds)["y"] for each in (before, after))
    assert one.shape == other.shape
    assert abs(one - other).max() < 1e-4
    count = sum(node.op_type == "MatMul" for node in after.graph.node)
    assert count == (parts if {"columns": n, "rows": m, "inner": k}[dim] >= parts else 1)
    assert pass_(after) == after
