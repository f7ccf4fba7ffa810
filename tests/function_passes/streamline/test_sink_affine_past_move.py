import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "sink_affine_past_move"
CONSTANTS = (
    *("float c = {0.3}", "float[1,1] cc = {0.3}", "float[3,1] rows = {1,2,3}", "int64[1] o = {1}"),
    *("int64[1] i = {0}", "int64[2] shape = {6,4}", "float[2,3,1] both = {1,2,3,4,5,6}"),
    *("int64[1] two = {2}", "float[3,1,1] outer = {1,2,3}"),
)


def graph(nodes: str, out: str, x: str = "float[2,3,4] x") -> str:
    return f"({x}) => (float[{out}] y) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


@pytest.mark.parametrize("step", ["Add", "Div", "Mul", "Sub"])
@pytest.mark.parametrize(
    ("move", "out"),
    [
        ("Transpose<perm=[0,2,1]>({})", "2,4,3"),
        ("Flatten<axis=2>({})", "6,4"),
        ("Reshape({}, shape)", "6,4"),
        ("Slice({}, i, o, o)", "2,1,4"),
        ("Unsqueeze({}, i)", "1,2,3,4"),
    ],
)
def test_one_number(step: str, move: str, out: str) -> None:
    assert_rewrites(
        PASS,
        graph(f"s = {step}(x, cc) y = {move.format('s')}", out),
        graph(f"m = {move.format('x')} y = {step}(m, c)", out),
    )


def test_a_constant_along_an_axis_follows_it() -> None:
    assert_rewrites(
        PASS,
        graph("s = Mul(x, rows) y = Transpose<perm=[1,0,2]>(s)", "3,2,4"),
        graph("m = Transpose<perm=[1,0,2]>(x) y = Mul(m, outer)", "3,2,4"),
    )


def test_a_slice_of_other_axes() -> None:
    assert_rewrites(
        PASS,
        graph("s = Mul(x, rows) y = Slice(s, i, o, two)", "2,3,1"),
        graph("m = Slice(x, i, o, two) y = Mul(m, rows)", "2,3,1"),
    )


def test_old_opsets() -> None:
    assert_rewrites(
        PASS,
        graph("s = Mul(x, c) y = Squeeze<axes=[0]>(s)", "3", "float[1,3] x"),
        graph("m = Squeeze<axes=[0]>(x) y = Mul(m, c)", "3", "float[1,3] x"),
        opset=11,
    )


@pytest.mark.parametrize(
    ("nodes", "out", "x", "because"),
    [
        (
            "s = Mul(x, rows) y = Reshape(s, shape)", "6,4", "float[2,3,4] x",
            "the axis of the constant may not survive",
        ),
        (
            "s = Mul(x, rows) y = Slice(s, i, o, o)", "2,1,4", "float[2,3,4] x",
            "the axis of the constant may not survive",
        ),
        (
            "s = Mul(x, both) y = Transpose(s)", "4,3,2", "float[2,3,4] x",
            "the constant does not vary along one axis alone",
        ),
        (
            "s = Mul(x, cc) y = Transpose(s)", "1,4", "float[4] x",
            "the constant adds dims, or the rank is not known",
        ),
    ],
)  # fmt: skip
def test_what_stays(nodes: str, out: str, x: str, because: str) -> None:
    assert_unchanged(PASS, graph(nodes, out, x), because=because)


def test_a_result_with_other_consumers_stays() -> None:
    nodes = "s = Mul(x, c) t = Transpose(s) u = Transpose(t) y = Add(s, u)"
    assert_unchanged(PASS, graph(nodes, "2,3,4"))
