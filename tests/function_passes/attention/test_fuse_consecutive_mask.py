import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_consecutive_mask"
INPUTS = "float[B,2,S,S] s, float[B,2,S,S] t, float[1,2,S,S] a, float[B,1,1,S] b"
OUTPUTS = "float[B,2,S,S] y, float[B,2,S,S] z"
SCORES = "q = Sqrt(s) r = Sqrt(t)"


def graph(nodes: str, inputs: str = INPUTS, outputs: str = OUTPUTS) -> str:
    return f"({inputs}) => ({outputs}) {{ {SCORES} {nodes} }}"


def layer(scores: str, result: str, axis: int = -1) -> str:
    added = f"{result}1 = Add({scores}, a) {result}2 = Add({result}1, b)"
    return f"{added} {result} = Softmax<axis={axis}>({result}2)"


def fused(scores: str, result: str, axis: str = "") -> str:
    return f"{result}2 = Add({scores}, m) {result} = Softmax{axis}({result}2)"


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize(("axis", "written"), [(-1, ""), (3, "<axis=3>")])
def test_masks_that_two_layers_add_are_added_first(axis: int, written: str, opset: int) -> None:
    assert_rewrites(
        PASS,
        graph(f"{layer('q', 'y', axis)} {layer('r', 'z', axis)}"),
        graph(f"m = Add(a, b) {fused('q', 'y', written)} {fused('r', 'z', written)}"),
        opset=opset,
    )


def test_masks_may_be_the_first_operand() -> None:
    other = layer("r", "z").replace("Add(r, a)", "Add(a, r)").replace("Add(z1, b)", "Add(b, z1)")
    assert_rewrites(
        PASS,
        graph(f"{layer('q', 'y')} {other}"),
        graph(f"m = Add(a, b) {fused('q', 'y')} {fused('r', 'z')}"),
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (graph(f"{layer('q', 'y')} z = Neg(r)"), "no other layer adds both masks"),
        (
            graph(f"{layer('q', 'y')} {layer('r', 'z').replace('Add(z1, b)', 'Add(z1, a)')}"),
            "no other layer adds both masks",
        ),
        (
            graph(f"{layer('q', 'y')} {layer('q', 'z')}"),
            "scores and masks cannot be distinguished",
        ),
        (
            graph(
                f"{layer('q', 'y')} {layer('r', 'z')}",
                INPUTS.replace("B,2,S,S", "1,2,S,S"),
            ),
            "the masks may be larger than the scores",
        ),
    ],
)
def test_masks_that_are_not_shared_or_larger_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_a_sum_with_other_consumers_stays() -> None:
    outputs = f"{OUTPUTS}, float[B,2,S,S] y1"
    assert_rewrites(
        PASS,
        graph(f"{layer('q', 'y')} {layer('r', 'z')}", outputs=outputs),
        graph(f"{layer('q', 'y')} m = Add(a, b) {fused('r', 'z')}", outputs=outputs),
    )
