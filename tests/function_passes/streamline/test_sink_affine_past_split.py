import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "sink_affine_past_split"
CONSTANTS = (
    *("float c = {0.3}", "float[4,1] rows = {1,2,3,4}", "float[2] columns = {1,2}"),
    *("int64[2] sizes = {1,3}", "int64[1] one = {4}", "float[4,2] all = {1,2,3,4,5,6,7,8}"),
)


def graph(nodes: str, out: str = "float[1,2] y, float[3,2] z") -> str:
    return f"(float[4,2] x) => ({out}) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


@pytest.mark.parametrize("step", ["Add", "Div", "Mul", "Sub"])
@pytest.mark.parametrize("c", ["c", "columns"])
def test_each_part(step: str, c: str) -> None:
    assert_rewrites(
        PASS,
        graph(f"s = {step}(x, {c}) y, z = Split(s, sizes)"),
        graph(f"s, t = Split(x, sizes) y = {step}(s, {c}) z = {step}(t, {c})"),
    )


def test_sizes_as_an_attribute() -> None:
    assert_rewrites(
        PASS,
        graph("s = Mul(x, c) y, z = Split<split=[1,3]>(s)"),
        graph("s, t = Split<split=[1,3]>(x) y = Mul(s, c) z = Mul(t, c)"),
        opset=11,
    )


@pytest.mark.parametrize(
    ("nodes", "out", "because"),
    [
        (
            "s = Mul(x, rows) y, z = Split(s, sizes)", "float[1,2] y, float[3,2] z",
            "the constant varies along the axis of Split",
        ),
        (
            "s = Mul(x, all) y, z = Split(s, sizes)", "float[1,2] y, float[3,2] z",
            "the constant does not vary along one axis alone",
        ),
        ("s = Mul(x, c) y = Split(s, one)", "float[4,2] y", "Split has one part"),
        (
            "s = Mul(x, c) y, z = Split(s, sizes) r = Relu(s)",
            "float[1,2] y, float[3,2] z, float[4,2] r",
            "the operand of Split has other consumers",
        ),
    ],
)  # fmt: skip
def test_what_stays(nodes: str, out: str, because: str) -> None:
    assert_unchanged(PASS, graph(nodes, out), because=because)
