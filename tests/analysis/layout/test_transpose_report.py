"""The report: what is saved, and what stops each Transpose that stays."""

import pytest

from tests.analysis.layout.test_solve import Body, residual
from tests.recorded import assert_values
from tiered import LayoutReport, Model, get_pass, layout_report
from tiered.analysis.layout import transpose_report
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.analysis.layout.transpose_report import _few
from tiered.testing import parse


def report(text: str, **known: int) -> LayoutReport:
    return layout_report(Model.from_proto(parse(text)), LayoutSizes(known))


def test_it_counts_before_and_after_and_what_greedy_gives() -> None:
    made = report(residual(Body()))
    assert made.transposes == (8, 2)
    assert made.nbytes == (2048, 512)
    assert made.greedy.nbytes > made.nbytes[1]
    assert [each.nbytes for each in made.left] == [256, 256]


def test_the_interface_stops_a_transpose() -> None:
    (left,) = report("(float[2,3] x) => (float[3,2] y) { y = Transpose(x) }").left
    assert (left.above, left.below) == ("graph input 'x'", "graph output 'y'")
    assert left.perm == (1, 0)


def test_an_operator_stops_it_with_its_reason() -> None:
    text = (
        "(float[1,4,4,2] x) => (float[1,2,2,2] y) "
        "{ t = Transpose<perm=[0,3,1,2]>(x)  r = Relu(t)  y = MaxPool<kernel_shape=[3,3]>(r) }"
    )
    (left,) = report(text).left
    assert "MaxPool" in left.below
    assert "the operator fixes its axis order, reached through Relu" in left.below


def test_an_operator_of_unknown_rank_stops_it() -> None:
    text = (  # the dims 4 and 5 contradict each other, so nothing is inferred for their sum
        "(float[1,4,3] x, float[1,5,3] z) => (float[A,B,C] y) { a = Transpose<perm=[0,2,1]>(x) "
        "b = Transpose<perm=[0,2,1]>(z)  c = Add(a, b)  y = Relu(c) }"
    )
    assert any("the rank of a result is not known" in left.below for left in report(text).left)


def test_an_operator_of_the_other_order_stops_it() -> None:
    text = (
        "(float[2,3,4] x) => (float[3,8] y) <int64[2] s = {3,8}> "
        "{ t = Transpose<perm=[1,0,2]>(x)  y = Reshape(t, s) }"
    )
    (left,) = report(text).left
    assert left.below == "Reshape 'y': its axes cannot be in that order"


def test_operands_in_the_same_order_stop_nothing() -> None:
    text = """(float[2,3,4] x, float[3] b) => (float[4,2,3] y) {
        t = Transpose<perm=[2,0,1]>(x)  y = Add(t, b) }"""
    (left,) = report(text).left
    assert left.below == "graph output 'y', reached through Add 'y'"


def test_a_reason_is_not_looked_for_too_far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """(float[2,3,4] x) => (float y) {
        t = Transpose<perm=[2,0,1]>(x)  r = Relu(t)  y = acme.Any(r) }"""
    assert transpose_report.FAR == 200
    near = "Relu 'r': in that order, more bytes would be moved"
    for far, expected in (
        (1, near),
        (2, near),
        (3, "acme::Any 'y': the operator fixes its axis order, reached through Relu 'r'"),
    ):
        monkeypatch.setattr(transpose_report, "FAR", far)
        (left,) = report(text).left
        assert left.below == expected, far


def test_dynamic_dims_count_what_the_user_says() -> None:
    text = "(float[n,3] x) => (float[3,n] y) { y = Transpose(x) }"
    assert report(text).nbytes == (16 * 12, 16 * 12)
    assert report(text, n=2).nbytes == (24, 24)


def test_dims_of_size_one_move_no_bytes() -> None:
    made = report("(float[1,3] x) => (float[3,1] y) { y = Transpose(x) }")
    assert (made.transposes, made.nbytes) == ((1, 1), (0, 0))


def test_calls_of_functions_are_named_with_their_domain() -> None:
    text = "(float[1,2,3,3] x) => (float[1,2,2,2] y) { [pool] y = MaxPool<kernel_shape=[2,2]>(x) }"
    model = Model.from_proto(parse(text))
    get_pass("convert_layout", desired_layouts={"MaxPool": "NHWC"}).apply(model)
    reason = layout_report(model).left[0].below
    assert reason == "tiered.nhwc::MaxPool 'pool': the operator fixes its axis order"


def test_a_few_reasons_are_listed() -> None:
    for reasons, expected in (
        ("", []),
        ("aba", ["a", "b"]),
        ("abc", ["a", "b", "c"]),
        ("abcd", ["a", "b", "c", "and 1 more"]),
        ("abcdce", ["a", "b", "c", "and 2 more"]),
    ):
        assert _few(reasons) == expected


def left_of(text: str, **known: int) -> None:
    """Print the totals of a report, and the Transposes that stay with what blocks them."""
    made = report(text, **known)
    print(*made.transposes, "Transposes of", *made.nbytes, "bytes; greedy", *made.greedy)
    for each in made.left:
        perm = "".join(map(str, each.perm))
        print(f"{each.name} {perm}, {each.nbytes} bytes: above {each.above}; below {each.below}")


def test_what_stops_each_transpose() -> None:
    assert_values(__file__, {"left_of": left_of, "TO": TO, "BACK": BACK})


TO, BACK = "Transpose<perm=[2,0,1]>", "Transpose<perm=[1,2,0]>"
