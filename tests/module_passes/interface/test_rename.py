import onnx
import pytest

from tests.rollback import assert_undone
from tiered import Model, PassContext, UsageError, get_pass, optimize_model
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "rename"
TEXT = "(float[N] x, float[N] z) => (float[N] y) { h = Sub(x, z)  y = Neg(h) }"


def test_inputs_and_outputs_have_new_names() -> None:
    assert_rewrites(
        PASS,
        TEXT,
        "(float[N] image, float[N] z) => (float[N] scores) { h = Sub(image, z)  scores = Neg(h) }",
        runtime="none",
        tensors={"x": "image", "y": "scores"},
    )


def test_names_are_exchanged_and_inner_tensors_make_room() -> None:
    made = assert_undone(PASS, TEXT, tensors={"x": "z", "z": "x", "y": "h"})
    assert [info.name for info in made.graph.input] == ["z", "x"]
    assert list(made.graph.node[0].input) == ["z", "x"]
    assert made.graph.output[0].name == "h"


def test_a_captured_input_is_renamed_in_bodies() -> None:
    made = assert_undone(
        PASS,
        """(float[2] x, bool c) => (float[2] y) {
            y = If(c) <then_branch = t () => (float[2] a) { a = Abs(x) },
                       else_branch = e () => (float[2] b) { b = Neg(x) }> }""",
        tensors={"x": "image"},
    )
    assert made.graph.node[0].attribute[0].g.node[0].input[0] == "image"


def test_dims_are_renamed_everywhere() -> None:
    made = assert_undone(PASS, TEXT, dims={"N": "batch"})
    infos = (*made.graph.input, *made.graph.output)
    assert {info.type.tensor_type.shape.dim[0].dim_param for info in infos} == {"batch"}


@pytest.mark.parametrize("name", ["h", "a"])
def test_inner_tensors_of_the_main_graph_and_of_bodies_make_room(name: str) -> None:
    text = """(float[2] x, bool c) => (float[2] y) {
        h = Neg(x)
        y = If(c) <then_branch = t () => (float[2] a) { a = Abs(h) },
                   else_branch = e () => (float[2] b) { b = Neg(h) }> }"""
    made = assert_undone(PASS, text, tensors={"y": name})
    assert made.graph.output[0].name == name
    onnx.checker.check_model(made, full_check=True)
    ctx = PassContext()
    with ctx:
        get_pass(PASS, tensors={"y": name})(parse(text))
    assert ctx.remarks[-1].reason == f"the inner tensor '{name}' is '{name}_1' now"


@pytest.mark.parametrize("dims", [{"N": "M"}, {"N": "K"}, {"N": "batch", "M": "batch"}])
def test_two_dims_do_not_become_one(dims: dict[str, str]) -> None:
    text = "(float[N] x, float[M,K] z) => (float[N] y) { y = Neg(x) }"
    model = Model.from_proto(parse(text))
    with pytest.raises(UsageError, match="is another dim of the model; 'N' would be equal"):
        get_pass(PASS, dims=dims).apply(model)
    assert_undone(PASS, text, dims={"N": "M", "M": "N"})


def test_the_result_is_compared_by_the_new_names() -> None:
    swap = get_pass(PASS, tensors={"x": "z", "z": "x", "y": "out"})
    result = optimize_model(parse(TEXT), passes=[swap], verify=True)
    assert result.verify is not None
    names = [[o.name for o in each.outputs] for each in result.verify.comparisons]
    assert names == [["out"], ["out"]]


def test_names_that_are_there_are_left_alone() -> None:
    assert_unchanged(PASS, TEXT, because="no names are given")
    assert_unchanged(PASS, TEXT, because="the names are these already", tensors={"x": "x"})


def test_a_second_run_finds_the_new_names() -> None:
    model = Model.from_proto(parse(TEXT))
    for _ in range(2):
        get_pass(PASS, tensors={"x": "a"}).apply(model)
    assert [value.name for value in model.main.inputs] == ["a", "z"]


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"hh": "a"}, "no tensor 'hh'; did you mean 'h'"),
        ({"gone": "x"}, "no tensor 'gone'"),
        ({"x": "z"}, "'z' is an input or output of the model; rename it too"),
        ({"x": "a", "z": "a"}, "two tensors would have one name"),
        ({"x": ""}, "cannot have an empty name"),
    ],
)
def test_names_that_cannot_be(tensors: dict[str, str], message: str) -> None:
    model = Model.from_proto(parse(TEXT))
    with pytest.raises(UsageError, match=message):
        get_pass(PASS, tensors=tensors).apply(model)
