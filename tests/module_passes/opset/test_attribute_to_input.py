import pytest

from tiered import Model, PassContext, get_pass
from tiered.support.errors import OpsetError, UsageError
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "attribute_to_input"
BOTH = """(float[2,3] x) => (float[N,M] y) {
    c = Clip<max = 2.0, min = 0.0>(x)  y = ReduceMax<axes = [1]>(c) }"""


def test_the_attributes_of_one_operator_become_inputs() -> None:
    assert_rewrites(
        PASS,
        BOTH,
        """<ir_version: 10, opset_import: ["" : 11]> g (float[2,3] x) => (float[N,M] y)
        <float low = {0.0}, float high = {2.0}> {
            c = Clip(x, low, high)  y = ReduceMax<axes = [1]>(c) }""",
        opset=9,
        op=("Clip",),
    )


def test_the_attributes_of_all_operators_become_inputs() -> None:
    assert_rewrites(
        PASS,
        BOTH,
        """<ir_version: 10, opset_import: ["" : 18]> g (float[2,3] x) => (float[N,M] y)
        <float low = {0.0}, float high = {2.0}, int64[1] axes = {1}> {
            c = Clip(x, low, high)  y = ReduceMax(c, axes) }""",
        opset=9,
    )


def test_another_node_may_block() -> None:
    text = """(float[2] x, int64[1] i) => (float[2] y, float[1,2] z) <float[2] v = {0, 1}, int64 d = {2}> {
        y = Clip<min = 0.0, max = 1.0>(x)  z = OneHot(i, d, v) }"""
    model = Model.from_proto(parse(text, opset=9))
    with pytest.raises(OpsetError, match="OneHot"):
        get_pass(PASS).apply(model, PassContext.isolated())
    assert model.opset() == 9


@pytest.mark.parametrize(("opset", "op"), [(21, ()), (9, ("Pad",))])
def test_a_model_without_such_attributes_is_left_alone(opset: int, op: tuple[str, ...]) -> None:
    text = BOTH if opset == 9 else "(float[2,3] x) => (float[2,3] y) { y = Softmax(x) }"
    assert_unchanged(
        PASS, text, because="no attribute is an input in a newer opset", opset=opset, op=op
    )


@pytest.mark.parametrize("alias", ["convert_attributes_to_inputs", "ScalarToTensorPass"])
def test_it_has_the_names_of_other_systems(alias: str) -> None:
    assert get_pass(alias).name == PASS


def test_an_operator_that_does_not_exist_is_named() -> None:
    model = Model.from_proto(parse(BOTH, opset=9))
    with pytest.raises(UsageError, match="there is no operator 'Clipp'; did you mean 'Clip'"):
        get_pass(PASS, op=("Clipp",)).apply(model, PassContext.isolated())


def test_an_operator_without_such_attributes_is_named() -> None:
    text = "(float[2,3] x) => (float[2,3] y) { y = Softmax<axis=1>(x) }"
    assert_unchanged(
        PASS, text, because="no attribute of Softmax is an input in any opset", op=("Softmax",)
    )
