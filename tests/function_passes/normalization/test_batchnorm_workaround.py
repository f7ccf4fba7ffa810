import pytest

from tests.rollback import assert_undone
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "batchnorm_workaround"
OPERANDS = "<float[2] s = {1,2}, float[2] b = {0,1}, float[2] m = {1,2}, float[2] v = {1,4}>"


def model(outputs: str, attributes: str = "", result: str = "float[2,2,3] y") -> str:
    return f"(float[2,2,3] x) => ({result}) {OPERANDS} {{ {outputs} = BatchNormalization{attributes}(x, s, b, m, v) }}"


def test_an_attribute_with_its_default_is_removed() -> None:
    assert_rewrites(PASS, model("y", "<training_mode=0, epsilon=0.5>"), model("y", "<epsilon=0.5>"))


def test_unused_training_outputs_are_removed() -> None:
    before = model("y, p, q", "<training_mode=0>")
    assert_rewrites(PASS, before, model("y"), runtime="reference")
    assert_undone(PASS, before)


@pytest.mark.parametrize("opset", [7, 8])
def test_one_statistic_for_each_channel_is_the_rule(opset: int) -> None:
    assert_rewrites(PASS, model("y", "<spatial=1>"), model("y"), opset=opset)


@pytest.mark.parametrize("opset", [9, 13, 14, 21])
def test_the_inference_form_is_nothing_to_edit(opset: int) -> None:
    assert_unchanged(PASS, model("y"), opset=opset)


def test_batch_statistics_without_users_stay() -> None:
    assert_unchanged(PASS, model("y, p, q", "<training_mode=1>"), because="it is in training mode")


@pytest.mark.parametrize("opset", [7, 9, 13])
def test_before_opset_14_the_outputs_are_the_mode(opset: int) -> None:
    assert_unchanged(
        PASS,
        model("y, p, q, r, t"),
        because="before opset 14 its outputs put it in training mode",
        opset=opset,
    )


def test_a_secondary_output_that_is_read_stays() -> None:
    assert_unchanged(
        PASS,
        model("y, p, q", "<training_mode=0>", "float[2,2,3] y, float[2] p"),
        because="a secondary output is used",
    )


def test_statistics_for_each_place_stay() -> None:
    assert_unchanged(
        PASS,
        "(float[2,2] x) => (float[2,2] y) "
        + OPERANDS
        + " { y = BatchNormalization<spatial=0>(x, s, b, m, v) }",
        because="its statistics are not per channel",
        opset=7,
    )


def test_before_opset_7_nothing_is_done() -> None:
    assert_unchanged(
        PASS,
        model("y", "<is_test=1>"),
        because="before opset 7 is_test selects training mode",
        opset=6,
    )


def test_a_mode_that_is_a_function_parameter_is_unknown() -> None:
    assert_unchanged(
        PASS,
        """<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        g (float[2,2,3] x, float[2] s) => (float[2,2,3] y) { y = local.f<mode=0>(x, s) }
        <domain: "local", opset_import: ["" : 21]>
        f <mode> (v, s) => (u) { u = BatchNormalization<training_mode: int = @mode>(v, s, s, s, s) }""",
        because="attribute 'training_mode' is a function parameter",
    )
