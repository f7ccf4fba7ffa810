"""recompute: cheap tensors again near their later readers, where the peak falls."""

import onnx
import pytest
from hypothesis import given, settings

from tests.extensions.memory.graphs import sized_graphs
from tests.rollback import assert_undone
from tiered import Model, PassContext, UsageError, get_pass, memory_plan
from tiered.runtime import Session, make_inputs
from tiered.support.errors import PassError
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "recompute"

# `a`, of 16 elements, is read by `b` and at the end; between them `c` to `e` reach the peak.
TEXT = """(float[4] x) => (float[16] y) <int64[1] zero = {0}> {
    a = Concat<axis=0>(x, x, x, x)
    b = ReduceMean(a, zero)
    c = Concat<axis=0>(b, b, b, b, b, b, b, b)
    d = Concat<axis=0>(c, c, c, c)
    e = ReduceMean(d, zero)
    y = Add(a, e) }"""


def between(line: str) -> str:
    """Return the model with another line for `a`."""
    return TEXT.replace("a = Concat<axis=0>(x, x, x, x)", line)


def peak(model: onnx.ModelProto) -> int:
    return memory_plan(Model.from_proto(model)).peak


def test_what_the_peak_does_not_read_is_computed_again() -> None:
    after = """(float[4] x) => (float[16] y) <int64[1] zero = {0}> {
        a = Concat<axis=0>(x, x, x, x)
        b = ReduceMean(a, zero)
        c = Concat<axis=0>(b, b, b, b, b, b, b, b)
        d = Concat<axis=0>(c, c, c, c)
        e = ReduceMean(d, zero)
        again = Concat<axis=0>(x, x, x, x)
        y = Add(again, e) }"""
    assert_rewrites(PASS, TEXT, after)
    made = assert_undone(PASS, TEXT)
    assert peak(parse(TEXT)) - peak(made) == 16 * 4
    names = [node.op_type for node in made.graph.node]
    assert names == ["Concat", "ReduceMean", "Concat", "Concat", "ReduceMean", "Concat", "Add"]


def test_common_subexpressions_are_not_merged_again_since_ir_10() -> None:
    made = get_pass(PASS)(parse(TEXT))
    assert get_pass("eliminate_common_subexpr").apply(made) == made
    old = parse(f'<ir_version: 8, opset_import: ["" : 18]> g {TEXT}')
    with PassContext() as ctx:
        copied = get_pass(PASS)(old)
    said = [remark.reason for remark in ctx.remarks]
    assert "copies have no mark before IR 10: passes may merge them" in said
    merged = get_pass("eliminate_common_subexpr").apply(copied)
    assert len(merged.graph.node) == len(old.graph.node) < len(copied.graph.node)


def test_a_chain_is_computed_again_with_its_views() -> None:
    text = between("p = Concat<axis=0>(x, x, x, x) q = Softmax(p) a = Reshape(q, all)").replace(
        "<int64[1] zero = {0}>", "<int64[1] zero = {0}, int64[1] all = {-1}>"
    )
    made = get_pass(PASS)(parse(text))
    assert peak(made) < peak(parse(text))
    assert [node.op_type for node in made.graph.node].count("Softmax") == 2


def test_a_remark_has_the_peak_and_the_cost() -> None:
    ctx = PassContext()
    with ctx:
        get_pass(PASS)(parse(TEXT))
    said = [remark.reason for remark in ctx.remarks]
    assert "the peak was 240 bytes and is 176 now; nodes added: 1, multiply-adds: 0" in said


PRODUCT = """(float[4,1] x) => (float[4,4] y) <float[1,4] w = {1,2,3,4}, int64[1] size = {64}> {
    a = MatMul(x, w)
    b = ReduceMean<keepdims=0>(a)
    d = Expand(b, size)
    e = ReduceMean<keepdims=0>(d)
    y = Add(a, e) }"""


def test_products_need_a_budget() -> None:
    assert_unchanged(PASS, PRODUCT, because="'a' takes more multiply-adds than the budget")
    assert_unchanged(PASS, PRODUCT, max_multiply_adds=15)
    made = get_pass(PASS, max_multiply_adds=16)(parse(PRODUCT))
    assert peak(made) == peak(parse(PRODUCT)) - 64


FUNCTION = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
g (float[16] x) => (float[16] y) <int64[1] zero = {0}> {
    a = own.Double(x)
    b = ReduceMean(a, zero)
    d = Concat<axis=0>(b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b)
    e = ReduceMean(d, zero)
    y = Add(a, e) }
<domain: "own", opset_import: ["" : 21]> Double (x) => (y) { y = Add(x, x) }"""


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (TEXT.replace("y) <", "y, float[16] a) <"), "'a' is an output of the graph"),
        (
            between("z = Concat<axis=0>(x, x, x, x) a = RandomNormalLike(z)"),
            "the node of 'a' is random or unknown",
        ),
        (FUNCTION, "the node of 'a' is random or unknown"),
        (
            between(
                "k = Cast<to=9>(zero) a = If(k) <then_branch = t () => (float[16] p) "
                "{ p = Concat<axis=0>(x, x, x, x) }, else_branch = f () => (float[16] q) "
                "{ q = Concat<axis=0>(x, x, x, x) }>"
            ),
            "the node of 'a' has bodies",
        ),
        (
            TEXT.replace(
                "y = Add(a, e)",
                "k = Cast<to=9>(e) y = If(k) <then_branch = t () => (float[16] p) "
                "{ p = Add(a, e) }, else_branch = f () => (float[16] q) { q = Sub(a, e) }>",
            ),
            "a body reads 'a'",
        ),
    ],
)
def test_it_declines(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_what_does_not_lower_the_peak_is_undone() -> None:
    # Instead of `a`, both of its operands would be alive, which cannot be computed again.
    text = """(float[16] x) => (float[16] y) <int64[1] zero = {0}, int64[1] size = {64}> {
        h = RandomNormalLike(x)  i = RandomNormalLike(x)  a = Add(h, i)  b = ReduceMean(a, zero)
        c = Expand(b, size)  d = ReduceMean(c, zero)  y = Mul(a, d) }"""
    assert_unchanged(PASS, text, because="the peak is no lower without 'a'")


def test_sizes_decide() -> None:
    text = TEXT.replace("float[4] x", "float[N] x").replace("float[16] y", "float[M] y")
    assert peak(get_pass(PASS, dims=["N=4"])(parse(text))) < peak(parse(text))
    with pytest.raises(UsageError, match="recompute: a size is name=size, not 'N'"):
        get_pass(PASS, dims=["N"])(parse(text))
    with pytest.raises(UsageError, match="recompute: max_multiply_adds is a number from 0 on"):
        get_pass(PASS, max_multiply_adds=-1)(parse(text))


@given(sized_graphs(nodes=16))
@settings(max_examples=60, deadline=None)
def test_the_peak_never_rises_and_the_bits_stay(text: str) -> None:
    before = parse(text)
    made = get_pass(PASS)(before)
    if made == before:
        return
    assert peak(made) < peak(before)
    assert get_pass(PASS)(made) == made
    feeds = make_inputs(before).feeds
    one, other = Session(before).run(feeds), Session(made).run(feeds)
    assert all(one[name].tobytes() == other[name].tobytes() for name in one)


def test_a_peak_of_the_operands_of_one_node_is_not_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    products = "".join(f"m{at} = Mul(x, c{at}) " for at in range(8))
    constants = ", ".join(f"float c{at} = {{{at}.5}}" for at in range(8))
    names = ", ".join(f"m{at}" for at in range(8))
    text = f"(float[4] x) => (float[4] y) <{constants}> {{ {products} y = Sum({names}) }}"

    def tried(*_: object) -> None:
        raise AssertionError("a copy was tried")

    monkeypatch.setattr("tiered.extensions.memory.recomputation._Recomputation._better", tried)
    with pytest.raises(PassError, match="a copy was tried"):
        get_pass(PASS)(parse(TEXT))
    assert_unchanged(PASS, text, because="the peak is no lower without 'm0'")
