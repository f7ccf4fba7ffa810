import onnx
import pytest

from tests.rollback import assert_undone
from tiered import Model, UsageError, get_pass
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "add_checkpoints"
CHAIN = (
    "(float[2] x) => (float[2] y) <float[2] w = {1, 2}> { h = Neg(x)  k = Add(h, w)  y = Abs(k) }"
)


def test_tensors_are_appended_to_the_outputs_in_order() -> None:
    assert_rewrites(
        PASS,
        CHAIN,
        """(float[2] x) => (float[2] y, float[2] k, float[2] h) <float[2] w = {1, 2}> {
            h = Neg(x)  k = Add(h, w)  y = Abs(k) }""",
        runtime="none",
        tensors=["k", "h"],
    )


def test_a_captured_tensor_and_the_dims_of_the_model() -> None:
    made = assert_undone(
        PASS,
        """(float[N,2] x, bool c) => (float[N,2] y) {
            h = Neg(x)
            y = If(c) <then_branch = t () => (float[n,2] a) { a = Abs(h) },
                       else_branch = e () => (float[n,2] b) { b = Identity(x) }> }""",
        tensors=["h", "y"],
    )
    assert [info.name for info in made.graph.output] == ["y", "h"]
    assert made.graph.output[1].type.tensor_type.shape.dim[0].dim_param == "N"
    onnx.checker.check_model(made, full_check=True)


def test_the_name_of_poprt_runs_and_a_list_is_verified() -> None:
    made = get_pass("AddCheckpoints", tensors=["h"])(parse(CHAIN))
    assert [info.name for info in made.graph.output] == ["y", "h"]


def test_an_output_is_not_appended_twice() -> None:
    assert_unchanged(PASS, CHAIN, because="all tensors are outputs", tensors=["y"])


def test_without_tensors_nothing_is_added() -> None:
    assert_unchanged(PASS, CHAIN, because="no tensors are given")


BODY = """(float[2] x, bool c) => (float[2] y) {
    [if] y = If(c) <then_branch = t () => (float[2] inner) { inner = Abs(x) },
                    else_branch = e () => (float[2] b) { b = Identity(x) }> }"""


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (CHAIN, "hh", "the main graph has no tensor 'hh'; did you mean 'h'"),
        (BODY, "inner", "'inner' is a tensor of the body 'then_branch' of node 'if'"),
        (
            "(float[2] x) => (float[2] y) { h = com.microsoft.Own(x)  y = Abs(x) }",
            "h",
            "is unknown",
        ),
    ],
)
def test_a_tensor_that_cannot_be_an_output_is_an_error(text: str, name: str, message: str) -> None:
    model = Model.from_proto(parse(text))
    mark = model.mark()
    with pytest.raises(UsageError, match=message):
        get_pass(PASS, tensors=["x", name]).apply(model)
    assert not model.changed_since(mark)
