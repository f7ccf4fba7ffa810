import pytest

from tests.rollback import assert_undone
from tiered import UsageError, get_pass, optimize_model
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "reorder"
TEXT = """(float[2] a, float[3] b = {1, 2, 3}, float[4] c) => (float[2] x, float[3] y, float[4] z) {
    x = Neg(a)  y = Neg(b)  z = Neg(c) }"""


def test_the_named_input_and_output_are_the_first() -> None:
    assert_rewrites(
        PASS,
        "(float[2] a, float[3] b) => (float[2] x, float[3] y) { x = Neg(a) y = Abs(b) }",
        "(float[3] b, float[2] a) => (float[3] y, float[2] x) { x = Neg(a) y = Abs(b) }",
        inputs=["b"],
        outputs=["y"],
    )


def test_named_ones_go_first_and_the_others_follow() -> None:
    made = assert_undone(PASS, TEXT, inputs=["c"], outputs=["z", "x"])
    assert [info.name for info in made.graph.input] == ["c", "a", "b"]
    assert [info.name for info in made.graph.output] == ["z", "x", "y"]
    assert made.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 4


def test_the_order_that_is_there_stays() -> None:
    assert_unchanged(PASS, TEXT, because="the order is the same", inputs=["a", "b"])
    assert_unchanged(PASS, TEXT, because="the order is the same")


def test_the_result_is_compared() -> None:
    result = optimize_model(parse(TEXT), passes=[get_pass(PASS, inputs=["c"])], verify=True)
    assert result.verify is not None
    assert {o.name for each in result.verify.comparisons for o in each.outputs} == {"x", "y", "z"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inputs": ["d"]}, "the model has no input 'd'"),
        ({"outputs": ["a"]}, "the model has no output 'a'"),
        ({"inputs": ["a", "a"]}, "a name is given twice"),
    ],
)
def test_names_that_are_not_there(options: dict[str, list[str]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        get_pass(PASS, **options)(parse(TEXT))
