import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "sink_scale_past_maximum"
CONSTANTS = (
    *("float c = {0.3}", "float[2,1,1] channels = {0.5,3}", "float n = {-1}", "float z = {0}"),
    *("float[4] columns = {1,2,3,4}", "float[2,1,4] both = {1,2,3,4,5,6,7,8}"),
)
POOLS = [
    ("MaxPool<kernel_shape=[2,2], pads=[1,1,1,1]>({})", "1,2,5,5"),
    ("GlobalMaxPool({})", "1,2,1,1"),
]


def graph(nodes: str, out: str = "1,2,4,4") -> str:
    constants = spoken_of(nodes, *CONSTANTS)
    return f"(float[1,2,4,4] x) => (float[{out}] y) {constants} {{ {nodes} }}"


@pytest.mark.parametrize("step", ["Mul", "Div"])
@pytest.mark.parametrize("c", ["c", "channels"])
@pytest.mark.parametrize(("kind", "out"), [("Relu({})", "1,2,4,4"), *POOLS])
def test_scale_after_the_maximum(step: str, c: str, kind: str, out: str) -> None:
    assert_rewrites(
        PASS,
        graph(f"s = {step}(x, {c}) y = {kind.format('s')}", out),
        graph(f"m = {kind.format('x')} y = {step}(m, {c})", out),
    )


def test_a_factor_for_each_column_passes_relu() -> None:
    assert_rewrites(
        PASS,
        graph("s = Mul(x, columns) y = Relu(s)"),
        graph("m = Relu(x) y = Mul(m, columns)"),
    )


@pytest.mark.parametrize(
    ("nodes", "because"),
    [
        ("s = Mul(x, n) y = Relu(s)", "a factor is negative"),
        ("s = Mul(x, z) y = Relu(s)", "a factor is 0 or not finite"),
        ("s = Mul(x, both) y = Relu(s)", "the constant does not vary along one axis alone"),
        (
            "s = Mul(x, columns) y = MaxPool<kernel_shape=[1,1]>(s)",
            "the factors vary along a pooled axis",
        ),
        (
            "s = Mul(x, c) y, i = MaxPool<kernel_shape=[1,1]>(s)",
            "equal products change the indices of MaxPool",
        ),
    ],
)
def test_what_stays(nodes: str, because: str) -> None:
    out = "1,2,4,4] y, int64[1,2,4,4" if ", i" in nodes else "1,2,4,4"
    text = graph(nodes, out).replace("4,4] y) ", "4,4] i) ") if ", i" in nodes else graph(nodes)
    assert_unchanged(PASS, text, because=because)


def test_integers() -> None:
    assert_unchanged(
        PASS,
        "(int32[2] x) => (int32[2] y) <int32 c = {3}> { s = Mul(x, c) y = Relu(s) }",
        because="the constant is not a float",
    )
