import onnx

from tests.module_passes.interface.test_const_input_shape import dims
from tests.rollback import assert_undone
from tiered import get_pass
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "const_output_shape"


def test_an_output_gets_the_sizes_that_are_inferred() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float[out_dim_0,?] y) { h = Relu(x) y = Neg(h) }",
        "(float[2,3] x) => (float[2,3] y) { h = Relu(x) y = Neg(h) }",
        runtime="none",
    )


def test_names_that_inference_does_not_know_stay() -> None:
    text = "(float[N,3] x) => (float[out_dim_0,out_dim_1] y) { y = Relu(x) }"
    made = assert_undone(PASS, text)
    assert dims(made.graph.output[0]) == ["out_dim_0", 3]
    assert dims(made.graph.input[0]) == ["N", 3]


def test_value_info_and_outputs_of_bodies_get_them_too() -> None:
    text = "(float[2,3] x, bool c) => (float[K,3] y) { h = Relu(x) y = If(c) <then_branch = t () => (float[A,B] a) { a = Neg(h) }, else_branch = e () => (float[C,D] b) { b = Exp(h) }> }"
    proto = parse(text)
    proto.graph.value_info.append(onnx.helper.make_tensor_value_info("h", 1, ["N", None]))
    made = assert_undone(PASS, proto)
    bodies = [attribute.g for attribute in made.graph.node[1].attribute]
    infos = [*made.graph.value_info, *made.graph.output, *(body.output[0] for body in bodies)]
    assert [dims(info) for info in infos] == [[2, 3]] * 4


def test_an_input_that_is_an_output_stays() -> None:
    assert_unchanged(PASS, "(float[N] x) => (float[N] x) { }", because="no more sizes are known")


def test_without_more_sizes_there_is_nothing_to_do() -> None:
    text = "(float[N,3] x) => (float[N,3] y) { y = Relu(x) }"
    assert_unchanged(PASS, text, because="no more sizes are known")


def test_it_changes_the_interface_and_is_opt_in() -> None:
    info = get_pass(PASS).info
    assert (info.opt_level, info.changes_interface) == (None, True)
