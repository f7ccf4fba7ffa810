from onnx import TensorAnnotation, TensorProto, helper

from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "extract_constant_to_initializer"


def test_a_constant_becomes_an_initializer() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y) { c = Constant<value_floats=[1.0,2.0]>() y = Add(x, c) }",
        "(float[2] x) => (float[2] y) <float[2] c = {1,2}> { y = Add(x, c) }",
    )


def test_each_kind_of_value_keeps_its_dtype_and_rank() -> None:
    for attribute, dtype, initializer in (
        ("value_float=1.5", "float", "float c = {1.5}"),
        ("value_int=7", "int64", "int64 c = {7}"),
        ("value_ints=[7,8]", "int64", "int64[2] c = {7,8}"),
        ('value_string="a"', "string", 'string c = {"a"}'),
        ('value_strings=["a","bc"]', "string", 'string[2] c = {"a","bc"}'),
        ("value = float16[2] {1,2}", "float16", "float16[2] c = {1,2}"),
    ):
        assert_rewrites(
            PASS,
            f"({dtype}[2] x, int64[1] a) => ({dtype}[N] y)"
            f" {{ c = Constant<{attribute}>() r = Reshape(c, a) y = Concat<axis=0>(x, r) }}",
            f"({dtype}[2] x, int64[1] a) => ({dtype}[N] y) <{initializer}>"
            " { r = Reshape(c, a) y = Concat<axis=0>(x, r) }",
            runtime="none",
        )


def test_a_body_gets_an_initializer_of_its_own() -> None:
    branch = "else_branch = e () => (float[2] q) { q = Neg(x) }> }"
    assert_rewrites(
        PASS,
        "(float[2] x, bool c) => (float[2] y) { y = If(c) < then_branch = t () => (float[2] p)"
        f" {{ k = Constant<value_floats=[1.0,2.0]>() p = Add(x, k) }}, {branch}",
        "(float[2] x, bool c) => (float[2] y) { y = If(c) < then_branch = t () => (float[2] p)"
        f" <float[2] k = {{1,2}}> {{ p = Add(x, k) }}, {branch}",
    )


def test_a_function_has_no_initializers() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>'
        ' g (float[2] x) => (float[2] y) { y = d.f(x) } <domain: "d", opset_import: ["" : 21]>'
        " f (a) => (b) { c = Constant<value_floats=[1.0,2.0]>() b = Add(a, c) }",
        because="a local function has no initializers",
    )


def test_before_ir_4_an_initializer_would_be_an_input() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 3, opset_import: ["" : 8]>'
        " g (float[2] x) => (float[2] y) { c = Constant<value = float[2] {1,2}>() y = Add(x, c) }",
        because="before IR 4 each initializer would be an input",
    )


def test_a_constant_without_a_single_value_stays() -> None:
    for attributes in ("", "<value_float=1.0, value_int=1>"):
        assert_unchanged(
            PASS,
            f"(float[2] x) => (float[2] y) {{ c = Constant{attributes}() y = Add(x, c) }}",
            because="it has no single known value",
        )


def test_a_sparse_constant_stays() -> None:
    model = parse("(float[2] x) => (float[2] y) { c = Constant() y = Add(x, c) }")
    values = helper.make_tensor("v", TensorProto.FLOAT, [1], [3.0])
    indices = helper.make_tensor("i", TensorProto.INT64, [1], [1])
    sparse = helper.make_sparse_tensor(values, indices, [2])
    model.graph.node[0].attribute.append(helper.make_attribute("sparse_value", sparse))
    assert_unchanged(PASS, model, because="it is sparse")


def test_issue_19_a_graph_output_may_be_an_initializer() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x) => (float[2] y, float[2] c) { c = Constant<value_floats=[1.0,2.0]>() y = Add(x, c) }",
        "(float[2] x) => (float[2] y, float[2] c) <float[2] c = {1,2}> { y = Add(x, c) }",
    )
    assert_rewrites(
        PASS,
        "(float[2] x, bool b) => (float[2] y) { y = If(b) <then_branch = t () => (float[2] p) { p = Constant<value = float[2] {1,2}>() }, else_branch = e () => (float[2] q) { q = Neg(x) }> }",
        "(float[2] x, bool b) => (float[2] y) { y = If(b) <then_branch = t () => (float[2] p) <float[2] p = {1,2}> { }, else_branch = e () => (float[2] q) { q = Neg(x) }> }",
    )


def test_issue_19_before_ir_4_an_output_needs_a_node() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 3, opset_import: ["" : 8]> g (float[2] x) => (float[2] y, float[2] c) '
        "{ c = Constant<value = float[2] {1,2}>() y = Add(x, c) }",
        because="before IR 4 each initializer would be an input",
    )


def test_a_constant_that_an_annotation_names_stays() -> None:
    model = parse("(float x) => (float y) { c = Constant<value_float=1.0>() y = Add(x, c) }")
    annotation = TensorAnnotation(tensor_name="x")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="c")
    model.graph.quantization_annotation.append(annotation)
    assert_unchanged(PASS, model, because="training info or an annotation names it")


def test_a_constant_without_users_is_left_to_other_passes() -> None:
    assert_unchanged(PASS, "(float x) => (float y) { c = Constant<value_float=1.0>() y = Relu(x) }")
