import numpy as np
import onnx
import pytest

from tests.rollback import assert_undone
from tiered import Model, UsageError, get_pass
from tiered.runtime import Session
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "extract"
TEXT = """(float[N,4] x, float[4] z) => (float[N,2] y, float[N,4] q)
    <float[4,4] w = {1,0,0,0, 0,2,0,0, 0,0,3,0, 0,0,0,4}, float[4,2] v = {1,1,1,1,1,1,1,1}> {
    a = MatMul(x, w)  b = Relu(a)  c = Add(b, z)  y = MatMul(c, v)  q = Neg(a) }"""


def names(infos: object) -> list[str]:
    return [info.name for info in infos]  # type: ignore[attr-defined]  # a protobuf list


def test_the_nodes_between_tensors_stay_with_their_weights() -> None:
    assert_rewrites(
        PASS,
        TEXT,
        """(float[N,4] b, float[4] z) => (float[N,2] y) <float[4,2] v = {1,1,1,1,1,1,1,1}> {
            c = Add(b, z)  y = MatMul(c, v) }""",
        runtime="none",
        inputs=["b"],
        outputs=["y"],
    )


def test_without_outputs_those_that_depend_on_the_inputs_stay() -> None:
    made = assert_undone(PASS, TEXT, inputs=["b"])
    assert (names(made.graph.input), names(made.graph.output)) == (["b", "z"], ["y"])
    made = assert_undone(PASS, TEXT, inputs=["a"])
    assert (names(made.graph.input), names(made.graph.output)) == (["a", "z"], ["y", "q"])


def test_the_order_of_the_names_is_the_order_of_the_interface() -> None:
    made = assert_undone(PASS, TEXT, inputs=["z", "b", "a"], outputs=["q", "y", "c"])
    assert names(made.graph.input) == ["z", "b", "a"]
    assert names(made.graph.output) == ["q", "y", "c"]
    made = assert_undone(PASS, TEXT, outputs=["q", "y"])
    assert names(made.graph.output) == ["q", "y"]


def test_one_output_of_a_node_is_cut_and_the_other_computed() -> None:
    text = "(float[4] x) => (float[2] y) { a, b = Split<num_outputs=2>(x)  y = Add(a, b) }"
    made = assert_undone(PASS, text, inputs=["a"])
    assert names(made.graph.input) == ["a", "x"]
    feeds = {"a": np.array([1, 2], np.float32), "x": np.arange(4, dtype=np.float32)}
    np.testing.assert_array_equal(Session(made).run(feeds)["y"], [3, 5])


def test_a_captured_tensor_is_cut_in_bodies_too() -> None:
    made = assert_undone(
        PASS,
        """(float[2] x, bool c) => (float[2] y) {
            h = Neg(x)
            y = If(c) <then_branch = t () => (float[2] a) { a = Abs(h) },
                       else_branch = e () => (float[2] h2) { h2 = Identity(h) }> }""",
        inputs=["h"],
    )
    assert names(made.graph.input) == ["h", "c"]
    assert [node.op_type for node in made.graph.node] == ["If"]
    onnx.checker.check_model(made, full_check=True)


def test_functions_and_opsets_that_are_not_needed_go() -> None:
    whole = parse(
        """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float[2] x) => (float[2] y) { h = own.twice(x)  y = Neg(h) }
        <domain: "own", opset_import: ["" : 21]> twice (x) => (y) { y = Add(x, x) }"""
    )
    made = get_pass(PASS, inputs=["h"])(whole)
    assert not made.functions
    assert [entry.domain for entry in made.opset_import] == [""]
    assert len(get_pass(PASS, outputs=["h"])(whole).functions) == 1


def test_an_overridable_initializer_stays_one() -> None:
    text = "(float[2] x, float[2] w = {1, 2}, float[2] u = {3, 4}) => (float[2] y) { h = Neg(x)  k = Mul(h, u)  y = Add(k, w) }"
    made = assert_undone(PASS, text, inputs=["k"])
    assert names(made.graph.input) == ["k", "w"]
    assert names(made.graph.initializer) == ["w"]


def test_a_shape_that_is_cut_off_is_no_longer_known() -> None:
    text = "(float[2,3] x, float[6] z) => (float[2,3] y) { s = Shape(x)  y = Reshape(z, s) }"
    made = get_pass(PASS, inputs=["s"], outputs=["y"])(parse(text))
    view = Model.from_proto(made)
    assert view.main.values["y"].elements is None
    assert names(made.graph.input) == ["s", "z"]


def test_a_model_that_is_this_part_stays() -> None:
    assert_unchanged(PASS, TEXT, because="the model is this part", inputs=["x"], outputs=["y", "q"])


def test_without_names_nothing_is_extracted() -> None:
    assert_unchanged(PASS, TEXT, because="no tensors are given")


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ([], ["yy"], "no tensor 'yy'; did you mean 'y'"),
        (["w"], [], "'w' is a weight"),
        ([], ["w"], "'w' is a weight"),
        (["b"], ["q"], "'q' can be computed without 'b'"),
        (["b"], ["b"], "'b' is both an input and an output"),
        (["q"], [], "no output depends on 'q'"),
    ],
)
def test_wrong_names_are_errors(inputs: list[str], outputs: list[str], message: str) -> None:
    model = Model.from_proto(parse(TEXT))
    with pytest.raises(UsageError, match=message):
        get_pass(PASS, inputs=inputs, outputs=outputs).apply(model)
    assert [value.name for value in model.main.outputs] == ["y", "q"]
