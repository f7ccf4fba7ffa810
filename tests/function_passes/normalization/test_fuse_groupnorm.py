import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_groupnorm"
CONSTANTS = (
    *("int64[3] groups = {0,2,-1}", "int64[4] back = {0,4,3,3}", "int64[3] mixed = {1,2,-1}"),
    *("float[2] ones = {1,1}", "float[2] zeros = {0,0}", "float[2] twos = {2,2}"),
    *("float[4,1,1] w = {1,2,3,4}", "float[4,1,1] b = {5,6,7,8}", "float[3] row = {1,2,3}"),
    *("int64[3] thirds = {0,3,-1}", "float[1,1,4] along = {1,2,3,4}", "float[3] three = {1,1,1}"),
    "float[3] nothing = {0,0,0}",
    *(
        "float[4] s = {1,2,3,4}",
        "float[4] t = {5,6,7,8}",
        "float one = {2}",
        "float[4] u = {2,2,2,2}",
    ),
)
NORM = "g = Reshape(x, groups) n = InstanceNormalization<epsilon=0.001>(g, ones, zeros)"
THIRDS = "g = Reshape(x, thirds) n = InstanceNormalization<epsilon=0.001>(g, three, nothing)"
REST = "r = Reshape(n, back) m = Mul(r, w) y = Add(m, b)"
MADE = "GroupNormalization<epsilon=0.001, num_groups=2>"


def graph(nodes: str, x: str = "float[N,4,3,3]") -> str:
    return f"({x} x) => ({x} y) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


def test_groups_are_normalised_at_once() -> None:
    assert_rewrites(PASS, graph(f"{NORM} {REST}"), graph(f"y = {MADE}(x, s, t)"), opset=21)


def test_one_scale_for_all_channels() -> None:
    assert_rewrites(
        PASS,
        graph(f"{NORM} {REST}".replace("Mul(r, w)", "Mul(r, one)")),
        graph(f"y = {MADE}(x, u, t)"),
        opset=21,
    )


@pytest.mark.parametrize(
    ("text", "opset", "because"),
    [
        (graph(f"{NORM} {REST}"), 20, "before opset 21 a group has one scale"),
        (
            graph(f"{NORM} {REST}")
            .replace("back = {0,4,3,3}", "back = {0,2,6,3}")
            .replace("[N,4,3,3] y", "[N,2,6,3] y")
            .replace("[4,1,1]", "[1,1,1]")
            .replace("{1,2,3,4}", "{1}")
            .replace("{5,6,7,8}", "{5}"),
            21,
            "output and input may differ in shape",
        ),
        (
            graph(f"{NORM} {REST}".replace("groups", "mixed"), "float[2,4,3,3]").replace(
                "back = {0", "back = {2"
            ),
            21,
            "batch entries are not kept separate",
        ),
        (
            graph(f"{THIRDS} {REST}"),
            21,
            "channels are not split into groups",
        ),
        (
            graph(f"{NORM} {REST}".replace("Mul(r, w)", "Mul(r, row)")),
            21,
            "scale or bias is not per channel",
        ),
        (
            graph(f"{NORM} {REST}".replace("Mul(r, w)", "Mul(r, along)"), "float[N,4,3,4]").replace(
                "back = {0,4,3,3}", "back = {0,4,3,4}"
            ),
            21,
            "scale or bias is not along the channels",
        ),
    ],
)
def test_forms_without_an_equivalent_operator_stay(text: str, opset: int, because: str) -> None:
    assert_unchanged(PASS, text, opset=opset, because=because)


def test_groups_that_are_scaled_stay() -> None:
    assert_unchanged(PASS, graph(f"{NORM} {REST}".replace("g, ones", "g, twos")))
