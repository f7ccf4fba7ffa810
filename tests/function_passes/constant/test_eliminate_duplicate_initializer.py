from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorAnnotation

from tests.small import loaded_apart
from tiered import Model, PassContext, get_pass
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "eliminate_duplicate_initializer"


def test_equal_bits_are_stored_once() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) <float[2] a = {1,2}, float[2] b = {1,2}>"
        " { h = Add(x, a) y = Mul(h, b) }",
        "(float[2] x) => (float[2] y) <float[2] a = {1,2}> { h = Add(x, a) y = Mul(h, a) }",
    )


def test_a_body_reads_the_one_of_the_graph_above() -> None:
    branch = "else_branch = e () => (float[2] q) <float[2] c = {1,2}> { q = Mul(x, c) }> }"
    merged = "else_branch = e () => (float[2] q) { q = Mul(x, a) }> }"
    assert_rewrites(
        PASS,
        "(float[2] x, bool k) => (float[2] y) <float[2] a = {1,2}> { h = Add(x, a) y = If(k) <"
        f"then_branch = t () => (float[2] p) <float[2] b = {{1,2}}> {{ p = Add(h, b) }}, {branch}",
        "(float[2] x, bool k) => (float[2] y) <float[2] a = {1,2}> { h = Add(x, a) y = If(k) <"
        f"then_branch = t () => (float[2] p) {{ p = Add(h, a) }}, {merged}",
    )


def test_text_is_compared_string_by_string() -> None:
    assert_rewrites(
        PASS,
        '(string[2] x) => (bool[2] y) <string[2] a = {"ab","c"}, string[2] b = {"ab","c"}>'
        " { p = Equal(x, a) q = Equal(x, b) y = And(p, q) }",
        '(string[2] x) => (bool[2] y) <string[2] a = {"ab","c"}>'
        " { p = Equal(x, a) q = Equal(x, a) y = And(p, q) }",
    )
    assert_unchanged(
        PASS,
        '(string[2] x) => (bool[2] y) <string[2] a = {"ab","c"}, string[2] b = {"a","bc"}>'
        " { p = Equal(x, a) q = Equal(x, b) y = And(p, q) }",
    )


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("float[2] a = {0,1}", "float[2] b = {-0.0,1}"),
        ("float[2] a = {0,1}", "float[1,2] b = {0,1}"),
        ("float[2] a = {0,1}", "float[2] b = {0,2}"),
        ("int32[2] a = {0,1}", "uint32[2] b = {0,1}"),
        ("float[0] a = {}", "float[0,1] b = {}"),
    ],
)
def test_other_bits_dims_or_dtypes_are_another_tensor(a: str, b: str) -> None:
    assert_unchanged(
        PASS, f"(float[2] x) => (float[2] y) <{a}, {b}> {{ h = Shape(a) k = Shape(b) y = Relu(x) }}"
    )


def test_nan_equals_itself() -> None:
    model = parse(
        "(float[2] x) => (float[2] y) <float[2] a = {1,2}, float[2] b = {1,2}>"
        " { h = Add(x, a) y = Add(h, b) }"
    )
    for tensor in model.graph.initializer:
        tensor.CopyFrom(onnx.numpy_helper.from_array(np.full(2, np.nan, np.float32), tensor.name))
    view = Model.from_proto(model)
    get_pass(PASS).apply(view)
    assert [value.name for value in view.main.initializers] == ["a"]


def test_large_tensors_with_equal_first_elements_are_distinguished() -> None:
    model = parse(
        "(float[1] x) => (float[N] y) <float[1] a = {0}, float[1] b = {0}, float[1] c = {0}>"
        " { h = Add(x, a) k = Add(h, b) y = Add(k, c) }"
    )
    numbers = np.arange(20_000, dtype=np.float32)
    for tensor, last in zip(model.graph.initializer, (0, 1, 0), strict=True):
        numbers[-1] = last
        tensor.CopyFrom(onnx.numpy_helper.from_array(numbers, tensor.name))
    view = Model.from_proto(model)
    get_pass(PASS).apply(view)
    assert [value.name for value in view.main.initializers] == ["a", "b"]


def test_external_data_is_compared_by_its_bytes(tmp_path: Path) -> None:
    model = parse(
        "(float[2] x) => (float[2] y) <float[2] a = {1,2}, float[2] b = {1,2}, float[2] c = {1,3}>"
        " { h = Add(x, a) k = Add(h, b) y = Add(k, c) }"
    )
    view = loaded_apart(model, tmp_path)
    get_pass(PASS).apply(view)
    assert [value.name for value in view.main.initializers] == ["a", "c"]


LARGE = 3 << 16  # float32: the first and last bytes of it are compared before all


def _large(folder: Path, **how: str) -> tuple[list[str], list[str]]:
    """Return the constants that are left of two large ones, and what is said."""
    proto = parse(f"(float[{LARGE}] x) => (float[{LARGE}] y) {{ h = Add(x, a) y = Mul(h, b) }}")
    ones = np.ones(LARGE, np.float32)
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(ones, name) for name in "ab")
    view, ctx = loaded_apart(proto, folder), PassContext.isolated()
    with ctx:
        get_pass(PASS, **how)(view)
    said = [each.reason for each in ctx.report.remarks(1) if "start alike" in each.reason]
    return [value.name for value in view.main.initializers], said


def test_large_constants_are_compared_as_far_as_may_be_read(tmp_path: Path) -> None:
    assert _large(tmp_path) == (["a"], [])
    left, said = _large(tmp_path, max_read="0")
    assert left == ["a", "b"]
    assert said == [
        f"2 constants that start alike, {8 * LARGE} bytes, were not compared to the end: max_read=0"
    ]


def test_a_constant_that_must_stay_replaces_the_others() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y, float[2] b) <float[2] a = {1,2}, float[2] b = {1,2}>"
        " { y = Add(x, a) }",
        "(float[2] x) => (float[2] y, float[2] b) <float[2] b = {1,2}> { y = Add(x, b) }",
    )


def test_two_outputs_keep_their_names() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[2] a, float[2] b) <float[2] a = {1,2}, float[2] b = {1,2}>"
        " { y = Add(x, a) }",
    )


def test_an_overridable_initializer_is_not_constant() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, float[2] b = {1,2}) => (float[2] y) <float[2] a = {1,2}>"
        " { h = Add(x, a) y = Mul(h, b) }",
    )


def test_bodies_side_by_side_cannot_see_each_other() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x, bool k) => (float[2] y) { y = If(k) <"
        "then_branch = t () => (float[2] p) <float[2] a = {1,2}> { p = Add(x, a) },"
        "else_branch = e () => (float[2] q) <float[2] b = {1,2}> { q = Mul(x, b) }> }",
    )


def test_one_that_an_annotation_names_keeps_its_name() -> None:
    model = parse(
        "(float x) => (float y) <float a = {1}, float b = {1}> { h = Add(x, a) y = Mul(h, b) }"
    )
    annotation = TensorAnnotation(tensor_name="x")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="b")
    model.graph.quantization_annotation.append(annotation)
    view = Model.from_proto(model)
    get_pass(PASS).apply(view)
    assert [value.name for value in view.main.initializers] == ["b"]
