import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "sink_affine_past_concat"
CONSTANTS = (
    *("float c = {0.3}", "float d = {0.3}", "float e = {0.4}", "float[2,1] rows = {1,2}"),
    *("float[2] columns = {1,2}", "float[2,2] all = {1,2,3,4}"),
)


def graph(nodes: str, out: str = "float[4,2] o") -> str:
    constants = spoken_of(nodes, *CONSTANTS)
    return f"(float[2,2] x, float[2,2] y) => ({out}) {constants} {{ {nodes} }}"


@pytest.mark.parametrize("step", ["Add", "Div", "Mul", "Sub"])
@pytest.mark.parametrize("pair", [("c", "d"), ("columns", "columns")])
def test_one_step_after_the_concat(step: str, pair: tuple[str, str]) -> None:
    first, second = pair
    assert_rewrites(
        PASS,
        graph(f"s = {step}(x, {first}) t = {step}(y, {second}) o = Concat<axis=0>(s, t)"),
        graph(f"s = Concat<axis=0>(x, y) o = {step}(s, {first})"),
    )


CONCAT = "o = Concat<axis=0>(s, t)"


@pytest.mark.parametrize(
    ("nodes", "because"),
    [
        (f"s = Mul(x, c) t = Relu(y) {CONCAT}", "an operand is not made by an affine step"),
        (f"s = Mul(x, c) t = Mul(y, e) {CONCAT}", "the steps differ"),
        (f"s = Mul(x, c) t = Add(y, c) {CONCAT}", "the steps differ"),
        (
            f"s = Mul(x, rows) t = Mul(y, rows) {CONCAT}",
            "the constant varies along the axis of Concat",
        ),
        (
            f"s = Mul(x, all) t = Mul(y, all) {CONCAT}",
            "the constant does not vary along one axis alone",
        ),
    ],
)
def test_what_stays(nodes: str, because: str) -> None:
    assert_unchanged(PASS, graph(nodes), because=because)


def test_other_consumers() -> None:
    nodes = f"s = Mul(x, c) t = Mul(y, c) {CONCAT} r = Relu(s)"
    assert_unchanged(
        PASS,
        graph(nodes, "float[4,2] o, float[2,2] r"),
        because="an operand of Concat has other consumers",
    )
