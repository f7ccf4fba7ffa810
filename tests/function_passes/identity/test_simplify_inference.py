import pytest

from tests.analysis.legalization.compared import assert_close, floats
from tiered import get_pass
from tiered.support.numerics import Numerics
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "simplify_inference"


@pytest.mark.parametrize(
    ("opset", "call"),
    [
        (7, "Dropout(x)"),
        (7, "Dropout<ratio=0.3>(x)"),
        (10, "Dropout<ratio=0.3>(x)"),
        (11, "Dropout(x)"),
        (12, "Dropout(x)"),
        (12, "Dropout(x, r)"),
        (12, "Dropout(x, r, f)"),
        (13, "Dropout<seed=3>(x, r, f)"),
        (22, "Dropout(x,, f)"),
    ],
)
def test_outside_of_training_nothing_is_dropped(opset: int, call: str) -> None:
    operands = {"r": "float r = {0.5}", "f": "bool f = {0}"}
    read = [text for name, text in operands.items() if name in call.split("(")[1]]
    constants = f"<{', '.join(read)}>" if read else ""
    assert_rewrites(
        PASS,
        f"(float[2] x) => (float[2] y) {constants} {{ h = {call} y = Relu(h) }}",
        "(float[2] x) => (float[2] y) { y = Relu(x) }",
        opset=opset,
    )


def test_an_unread_mask_does_not_count() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) { h, mask = Dropout(x) y = Relu(h) }",
        "(float[2] x) => (float[2] y) { y = Relu(x) }",
    )


def test_a_ratio_of_0_drops_nothing_in_training_either() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x, bool t) => (float[2] y) <float r = {0}> { h = Dropout(x, r, t) y = Relu(h) }",
        "(float[2] x, bool t) => (float[2] y) { y = Relu(x) }",
    )


def test_an_output_keeps_its_name() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) { h = Relu(x) y = Dropout(h) }",
        "(float[2] x) => (float[2] y) { y = Relu(x) }",
    )


def test_before_opset_7_an_attribute_says_that_it_is_a_test() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) { h = Dropout<is_test=1>(x) y = Relu(h) }",
        "(float[2] x) => (float[2] y) { y = Relu(x) }",
        opset=6,
        runtime="none",
    )
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[2] y) { y = Dropout(x) }",
        because="is_test is 0",
        opset=6,
    )


@pytest.mark.parametrize("opset", [10, 13])
def test_a_mask_that_is_used_stays(opset: int) -> None:
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[2] y, bool[2] m) { y, m = Dropout(x) }",
        because="the mask is used",
        opset=opset,
    )


def test_the_masks_of_opset_7_are_floats_and_stay_too() -> None:
    assert_unchanged(
        PASS, "(float[2] x) => (float[2] y, float[2] m) { y, m = Dropout(x) }", opset=7
    )


def test_training_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[2] y) <float r = {0.5}, bool t = {1}> { y = Dropout(x, r, t) }",
        because="it is in training mode",
    )
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[2] y) <bool t = {1}> { y = Dropout(x,, t) }",
        because="it is in training mode",
    )


def test_what_the_caller_decides_is_not_known() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, bool t) => (float[2] y) { y = Dropout(x,, t) }",
        because="training_mode is not a constant",
    )
    assert_unchanged(
        PASS,
        "(float[2] x, bool t = {0}) => (float[2] y) { y = Dropout(x,, t) }",
        because="training_mode is not a constant",
    )


def test_a_ratio_that_can_be_overridden_is_no_0() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, float r = {0}) => (float[2] y) <bool t = {1}> { y = Dropout(x, r, t) }",
        because="it is in training mode",
    )


@pytest.mark.parametrize(
    "call",
    [
        "BatchNormalization(x, c, c, c, c)",
        "InstanceNormalization(x, s, s)",
        "GroupNormalization<num_groups=1>(x, s, s)",
        "LayerNormalization(x, w)",
        "LpNormalization(x)",
        "MeanVarianceNormalization<axes=[0,2]>(x)",
    ],
)
def test_norms_are_expanded_on_demand(call: str) -> None:
    text = (
        (
            "(float[2,2,3] x, float[2] s, float[3] w) => (float[2,2,3] y) <float[2] c = {1,2}> "
            f"{{ d = Dropout(x) y = {call} }}"
        )
        .replace("(x,", "(d,")
        .replace("(x)", "(d)")
        .replace("Dropout(d)", "Dropout(x)")
    )
    feeds = {"x": floats(2, 2, 3), "s": floats(2), "w": floats(3)}
    found = assert_close(PASS, text, feeds, expand_norms=True)
    assert not any(name.endswith("Normalization") or name == "Dropout" for name in found)
    assert_unchanged(PASS, text.replace("d = Dropout(x)", "d = Relu(x)"))


def test_a_norm_that_cannot_be_expanded_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3] x, float[3] s) => (float[2,3] y, float[2,1] m) "
        "{ y, m = LayerNormalization(x, s) }",
        because="mean or deviation is an output",
        expand_norms=True,
    )


def test_the_mode_sets_class_and_level() -> None:
    made = get_pass(PASS, expand_norms=True)
    assert (made.info.numerics, made.info.opt_level) == (Numerics.REASSOCIATING, 3)
    plain = made.with_options(expand_norms=False)
    assert plain.info.numerics is Numerics.EXACT
    assert get_pass(PASS).info.opt_level == 0
