import pytest

from tests.rollback import assert_undone
from tiered import Model, UsageError, get_pass, optimize_model
from tiered.graph.core.edit import Edit
from tiered.support.errors import ModelError
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "drop_unused_inputs"
TEXT = "(float[2] x, float[N] u, float[2] w = {1, 2}, int64 k) => (float[2] y) { y = Neg(x) }"


def test_inputs_without_users_go_with_their_defaults() -> None:
    assert_rewrites(PASS, TEXT, "(float[2] x) => (float[2] y) { y = Neg(x) }", runtime="none")


def test_some_stay() -> None:
    made = assert_undone(PASS, TEXT, keep=["k"])
    assert [info.name for info in made.graph.input] == ["x", "k"]


def test_a_captured_input_and_one_that_is_an_output_are_used() -> None:
    assert_unchanged(
        PASS,
        """(float[2] x, float[2] z, bool c) => (float[2] y, float[2] z) {
            y = If(c) <then_branch = t () => (float[2] a) { a = Abs(x) },
                       else_branch = e () => (float[2] b) { b = Neg(x) }> }""",
        because="every input is used or kept",
    )


def test_the_result_is_compared() -> None:
    result = optimize_model(parse(TEXT), passes=[get_pass(PASS)], verify=True)
    assert result.verify is not None
    assert [[o.name for o in each.outputs] for each in result.verify.comparisons] == [["y"], ["y"]]


def test_an_input_that_is_not_there_is_an_error() -> None:
    with pytest.raises(UsageError, match="the model has no input 'kk'"):
        get_pass(PASS, keep=["kk"])(parse(TEXT))


def test_many_inputs_go_in_one_edit() -> None:
    """Their number must not decide how often the list of all inputs is written."""
    names = ", ".join(f"float u{at}" for at in range(20))
    model = Model.from_proto(parse(f"(float x, {names}) => (float y) {{ y = Neg(x) }}"))
    mark = model.mark()
    get_pass(PASS).apply(model)
    assert [value.name for value in model.main.inputs] == ["x"]
    assert [edit for edit, *_ in model.journal.since(mark)] == [Edit.SET_GRAPH_INPUTS]


def test_an_input_of_another_graph_is_not_removed() -> None:
    model = Model.from_proto(parse(TEXT))
    other = Model.from_proto(parse(TEXT)).main.inputs[1]
    with pytest.raises(ModelError, match="'u' is not an input of graph"):
        model.main.remove_inputs([model.main.inputs[1], other])
    assert len(model.main.inputs) == 4
