"""serialize_matmul_add: products with their biases in parts."""

import pytest
from hypothesis import given, settings, strategies as st

from tiered import PassContext, get_pass
from tiered.runtime import Session, make_inputs
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "serialize_matmul_add"
W = "float[2,3] w = {1,2,3,4,5,6}"


def text(bias: str = "float[3]", values: str = "7,8,9") -> str:
    return (
        f"(float[4,2] x) => (float[4,3] y) <{W}, {bias} b = {{{values}}}> "
        "{ p = MatMul(x, w) y = Add(p, b) }"
    )


CUT = """(float[4,2] x) => (float[4,3] y)
    <float[2,2] v = {1,2,4,5}, float[2,1] u = {3,6}, float[2] c = {7,8}, float[1] d = {9}> {
    a = MatMul(x, v) e = Add(a, c) b = MatMul(x, u) f = Add(b, d) y = Concat<axis=-1>(e, f) }"""


@pytest.mark.parametrize("name", ["p", "y", "p/y"])
def test_a_bias_is_cut_with_the_columns(name: str) -> None:
    assert_rewrites(PASS, text(), CUT, split=[f"{name}=2"])


def test_the_largest_weight_decides() -> None:
    assert_rewrites(PASS, text(), CUT, max_bytes=16)


def test_a_bias_before_the_product_and_a_scalar_one() -> None:
    turned = text().replace("Add(p, b)", "Add(b, p)")
    assert_rewrites(PASS, turned, CUT, split=["p=2"])
    scalar = f"(float[4,2] x) => (float[4,3] y) <{W}, float b = {{7}}> {{ p = MatMul(x, w) y = Add(p, b) }}"
    assert_rewrites(
        PASS,
        scalar,
        """(float[4,2] x) => (float[4,3] y)
        <float[2,2] v = {1,2,4,5}, float[2,1] u = {3,6}, float b = {7}> {
        a = MatMul(x, v) e = Add(a, b) c = MatMul(x, u) f = Add(c, b) y = Concat<axis=-1>(e, f) }""",
        split=["p=2"],
    )


def test_rows_leave_a_bias_of_columns_whole() -> None:
    after = f"""(float[4,2] x) => (float[4,3] y) <{W}, float[3] b = {{7,8,9}}, int64[1] zero = {{0}},
        int64[1] two = {{2}}, int64[1] four = {{4}}, int64[1] rows = {{-2}}, int64[1] again = {{2}},
        int64[1] same = {{-2}}> {{
        c = Slice(x, zero, two, rows) d = MatMul(c, w) e = Add(d, b)
        f = Slice(x, again, four, same) g = MatMul(f, w) h = Add(g, b)
        y = Concat<axis=-2>(e, h) }}"""
    assert_rewrites(PASS, text(), after, split=["p=2"], dim="rows")


def test_the_sum_of_the_inner_parts_gets_the_bias_once() -> None:
    after = """(float[4,2] x) => (float[4,3] y) <float[1,3] v = {1,2,3}, float[1,3] u = {4,5,6},
        float[3] b = {7,8,9}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2},
        int64[1] last = {-1}, int64[1] again = {1}, int64[1] same = {-1}> {
        c = Slice(x, zero, one, last) d = MatMul(c, v)
        e = Slice(x, again, two, same) f = MatMul(e, u) g = Add(d, f) y = Add(g, b) }"""
    assert_rewrites(PASS, text(), after, split=["p=2/inner"])


@pytest.mark.parametrize(
    ("model", "because", "options"),
    [
        (text(), "no split into parts is requested", {}),
        (text(), "no split into parts is requested", {"max_bytes": 24}),
        (text(), "no split into parts is requested", {"split": ["other=2"]}),
        (
            f"(float[4,2] x) => (float[4,3] y) <{W}> {{ y = MatMul(x, w) }}",
            "no Add alone reads the product",
            {"split": ["y=2"]},
        ),
        (
            f"(float[4,2] x) => (float[4,3] y, float[4,3] p) <{W}> {{ p = MatMul(x, w) y = Add(p, p) }}",
            "no Add alone reads the product",
            {"split": ["p=2"]},
        ),
        (
            f"(float[1,2] x, float[5,3] b) => (float[5,3] y) <{W}> {{ p = MatMul(x, w) y = Add(p, b) }}",
            "the dim is shorter than 2 parts",
            {"split": ["p=2/rows"]},
        ),
        (
            f"(float[4,2] x, float[N] b) => (float[4,3] y) <{W}> {{ p = MatMul(x, w) y = Add(p, b) }}",
            "the bias has another size along the dim",
            {"split": ["p=2"]},
        ),
    ],
)
def test_it_declines(model: str, because: str, options: dict[str, object]) -> None:
    assert_unchanged(PASS, model, because=because, **options)  # type: ignore[arg-type]  # of any


def test_a_split_of_no_node_is_a_remark() -> None:
    assert_unchanged(PASS, text(), because="no MatMul before an Add is named 'z'", split=["z=2"])


def test_a_remark_has_the_peak_before_and_after() -> None:
    ctx = PassContext()
    with ctx:
        get_pass(PASS, split=["p=2"])(parse(text()))
    assert any("the peak was 80 bytes and is" in remark.reason for remark in ctx.remarks)


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 6), st.integers(2, 5), st.data())
@settings(max_examples=25, deadline=None)
def test_all_parts_are_there(m: int, k: int, n: int, parts: int, data: st.DataObject) -> None:
    dim = data.draw(st.sampled_from(("columns", "rows", "inner")))
    bias = data.draw(st.sampled_from((f"{n}", f"{m},{n}", f"{m},1", "1", f"2,1,{n}")))
    model = (
        f"(float[2,{m},{k}] x, float[{k},{n}] w, float[{bias}] b) => (float[2,{m},{n}] y) "
        "{ p = MatMul(x, w) y = Add(p, b) }"
    )
    pass_ = get_pass(PASS, split=[f"p={parts}"], dim=dim)
    before = parse(model)
    after = pass_(before)
    feeds = make_inputs(before).feeds
    one, other = (Session(each).run(feeds)["y"] for each in (before, after))
    assert one.shape == other.shape
    assert abs(one - other).max() < 1e-4
    count = sum(node.op_type == "MatMul" for node in after.graph.node)
    assert count == (parts if {"columns": n, "rows": m, "inner": k}[dim] >= parts else 1)
    assert pass_(after) == after


WEIGHTS = "float[2,2] w = {1,2,3,4}, float[2,2] v = {5,6,7,8}"


@pytest.mark.parametrize(
    ("nodes", "products"),
    [
        # The sum of one product is the bias of the next.
        ("a = MatMul(x, w) b = Add(x, a) c = Relu(b) d = MatMul(c, v) y = Add(b, d)", 4),
        ("a = MatMul(x, w) b = Add(x, a) d = MatMul(b, v) y = Add(b, d)", 4),
        # Two products share one Add: one of them has it, and a sum of parts leaves it.
        ("a = MatMul(x, w) b = MatMul(x, v) y = Add(a, b)", 3),
    ],
)
@pytest.mark.parametrize("dim", ["columns", "rows", "inner"])
def test_issue_40_products_feed_each_other(nodes: str, products: int, dim: str) -> None:
    text = f"(float[4,2] x) => (float[4,2] y) <{WEIGHTS}> {{ {nodes} }}"
    split = [f"{name}=2" for name in "abd" if f"{name} = MatMul" in nodes]
    model = parse(text)
    with PassContext(opt_level=4):
        made = get_pass(PASS, split=split, dim=dim)(model)
    count = sum(node.op_type == "MatMul" for node in made.graph.node)
    assert count == (4 if dim == "inner" else products)
    feeds = make_inputs(model).feeds
    expected, actual = (Session(each).run(feeds)["y"] for each in (model, made))
    assert abs(expected - actual).max() <= 1e-5 * abs(expected).max()
